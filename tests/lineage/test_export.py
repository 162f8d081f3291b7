"""The model that the best program of a search stands for, as it is typed and as others read it."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from tests.cli.test_runs import call

from evolvent.core.errors import UserError
from evolvent.lineage.descent import best_of, text_of
from evolvent.lineage.export import export_model_of_program, plain_texts, task_of_models
from evolvent.models.load import load_policy
from evolvent.run.session import begin
from evolvent.run.spec import RunSpec
from evolvent.tasks.worlds.adapters.model import evolved


def test_the_model_of_a_search_over_adapters(
    tmp_path: Path, sandboxed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    where = "--store", tmp_path / "runs"
    spec = RunSpec("hill-climbing", "program:adapters:10", "none", "25 evaluations", seed=0)
    view = begin(spec, tmp_path / "runs", "run", logs=(), final=False).view
    task = task_of_models(view)
    genome = task.genome(text_of(best_of(view)))
    assert genome
    for name, more in (("model", ()), ("adapter", ("--adapter",))):
        said = call(capsys, "export", "run", tmp_path / name, *more, *where)
        assert f"Wrote the {name} that candidate {best_of(view)['uid']} of run stands for to" in said
        policy = load_policy(str(tmp_path / name))
        tokens = torch.tensor([[*policy.format.prompt(()), *policy.format.encode("1,2>3:1+2")]])
        select = torch.ones_like(tokens, dtype=torch.bool)
        select[:, 0] = False
        with torch.no_grad():
            ours, theirs = (p.logits(tokens, select).log_softmax(-1) for p in (evolved(genome), policy))
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
        card = (tmp_path / name / "README.md").read_text()
        assert text_of(best_of(view)).strip() in card
        assert "search `hill-climbing` on `program:adapters:10`, seed 0, from `tiny`" in card
    with pytest.raises(UserError, match="nothing is overwritten"):
        export_model_of_program(view, task, tmp_path / "model", adapter=False)
    call(capsys, "export", "run", tmp_path / "best.py", *where)
    assert (tmp_path / "best.py").read_text() == text_of(best_of(view))


@given(st.dictionaries(st.text(min_size=1), st.text(), min_size=1))
@example({"a": 'say """so"""\n\\n\\', "b\n": "\ttab\r\n\x7f", "c": ""})
def test_texts_are_read_from_a_file_as_they_were(texts: dict[str, str]) -> None:
    assert tomllib.loads(plain_texts(texts, Path("texts.toml"))) == texts
    assert json.loads(plain_texts(texts, Path("texts.json"))) == texts


def test_texts_in_a_file_of_another_kind() -> None:
    assert plain_texts({"a": "one\n"}, Path("a.md")) == "one\n"
    with pytest.raises(UserError, match=r"2 text\(s\) cannot be written to a.md; take .toml, .json, .py"):
        plain_texts({"a": "", "b": ""}, Path("a.md"))
