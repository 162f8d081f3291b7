"""Texts that a user's file evaluates: adapters, functions, what is refused, and searches over them."""

from __future__ import annotations

import json
import os
import re
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.loopback import Answering, Scripted, chat_reply

import evolvent as ev
from evolvent.core.errors import UserError
from evolvent.lineage.descent import believed
from evolvent.lineage.export import export_program
from evolvent.tasks.registry import load_task
from evolvent.tasks.texts.module import read, written
from evolvent.tasks.texts.task import MOST_RECORDS, TextsTask, reflection, verdict_of

ADAPTER = '''
"""Sums, as a number only."""

from gepa.core.adapter import EvaluationBatch, GEPAAdapter

trainset = [{"input": f"{a}+1", "answer": str(a + 1)} for a in range(6)]
valset = [{"input": f"{a}+2", "answer": str(a + 2)} for a in range(4)]
seed_candidate = {"system": "Answer.", "style": "Be kind."}


class Sums(GEPAAdapter[dict, dict, str]):
    def evaluate(self, batch, candidate, capture_traces=False):
        good = "number only" in candidate["system"]
        outputs = [row["answer"] if good else f"It is {row['answer']}." for row in batch]
        scores = [float(out == row["answer"]) for out, row in zip(outputs, batch)]
        return EvaluationBatch(outputs, scores, list(zip(batch, outputs)) if capture_traces else None)

    def make_reflective_dataset(self, candidate, eval_batch, components_to_update):
        return {
            name: [
                {"Inputs": row["input"], "Generated Outputs": out, "Feedback": f"wanted {row['answer']}"}
                for row, out in eval_batch.trajectories
            ]
            for name in components_to_update
        }
'''


def task_in(folder: Path, code: str, texts: str = "") -> TextsTask:
    """The task of a file with this code."""
    path = folder / "judge_texts.py"
    path.write_text(textwrap.dedent(code))
    made = load_task(f"texts:{path}" + (f":{folder / texts}" if texts else ""))
    assert isinstance(made, TextsTask)
    return made


def test_an_adapter_of_gepa(tmp_path: Path) -> None:
    task = task_in(tmp_path, ADAPTER)
    assert task.instances("train") == tuple(f"train-{i}" for i in range(6))
    assert len(task.instances("gate")) == 4
    assert "Sums, as a number only." in task.world.goal
    assert "1" not in task.world.goal  # no example is told
    better = written({"system": "The number only.", "style": ""})
    names = ["train-1", "train-4"]
    seed, best, gate = task.evaluate([task.seed_program, better, better], [names, names, ["gate-3"]])
    assert (seed.value, best.value, gate.value) == (0.0, 1.0, 1.0)
    assert set(seed.metrics) == {"instance/train-1", "instance/train-4"}
    assert "system, train-4 (0):\n  Inputs: 4+1\n  Generated Outputs: It is 5.\n  Feedback: wanted 5" in seed.feedback
    assert gate.feedback == ""  # nobody learns from what choices rest on


def test_no_examples_are_asked_for(tmp_path: Path) -> None:
    task = task_in(tmp_path, ADAPTER)
    assert [e.value for e in task.evaluate([task.seed_program, "x = 1"], [(), ()])] == [0.0, None]


def test_texts_are_not_run(tmp_path: Path) -> None:
    task = task_in(tmp_path, ADAPTER)
    mark = tmp_path / "ran"
    bad = f'open("{mark}", "w")\n' + task.seed_program
    [found] = task.evaluate([bad])
    assert found.value is None
    assert "is no text" in found.feedback
    assert not mark.exists()
    [broken] = task.evaluate(["texts['system'] = '"])
    assert broken.status == "unreadable"


def test_a_function_of_all_texts(tmp_path: Path) -> None:
    (tmp_path / "prompts.toml").write_text('a = "one two"\nb = """\nthree\n"""\n')
    code = 'def evaluate(texts):\n    return {"score": len(texts["a"].split()), "note": "b is " + texts["b"]}\n'
    task = task_in(tmp_path, code, "prompts.toml")
    [found] = task.evaluate([task.seed_program])
    assert (found.value, found.feedback) == (2.0, "train-0: note: b is three\n")
    assert task.instances("train") == ("train-0",)  # one example, the whole


def test_a_function_of_an_example(tmp_path: Path) -> None:
    code = """
        trainset = ["a", "b", "c"]

        async def evaluate(texts, example):
            return float(example in texts["prompt"]), f"looked for {example}"
    """
    (tmp_path / "prompt.txt").write_text("ab")
    task = task_in(tmp_path, code, "prompt.txt")
    [found] = task.evaluate([task.seed_program])
    assert found.value == pytest.approx(2 / 3)
    assert found.feedback.splitlines()[0] == "train-2: feedback: looked for c"  # the worst first


def test_openevolves_evaluator_of_a_prompt(tmp_path: Path) -> None:
    code = """
        from openevolve.evaluation_result import EvaluationResult

        def evaluate(prompt_path):
            text = open(prompt_path).read()
            assert prompt_path.endswith("prompt.md")
            return EvaluationResult(metrics={"combined_score": float(len(text))}, artifacts={"hint": "longer"})
    """
    (tmp_path / "prompt.md").write_text("four")
    task = task_in(tmp_path, code, "prompt.md")
    [found] = task.evaluate([task.seed_program])
    assert (found.value, found.feedback) == (4.0, "train-0: hint: longer")


def test_what_a_function_raises_is_the_texts_and_what_an_adapter_raises_is_not(tmp_path: Path) -> None:
    function = 'def evaluate(texts):\n    return len(texts["prompt"].format(x=1))\nseed_candidate = {"prompt": "{y}"}\n'
    [found] = task_in(tmp_path, function).evaluate([written({"prompt": "{y}"})])
    assert (found.value, found.status) == (None, "error")
    assert "KeyError: 'y'" in found.feedback
    adapter = ADAPTER.replace('good = "number', 'raise ConnectionError("no model")\n        good = "number')
    [lost] = task_in(tmp_path, adapter).evaluate([written({"system": "", "style": ""})])
    assert lost.status == "lost"
    assert "ConnectionError: no model" in lost.feedback


@pytest.mark.parametrize("fault", ["os._exit(3)", "time.sleep(60)", "os.kill(os.getpid(), 11)"])
def test_a_file_that_ends_or_hangs_is_lost_and_comes_back(tmp_path: Path, fault: str) -> None:
    code = f"""
        import os, time
        TIMEOUT = 1.0
        seed_candidate = {{"prompt": "fine"}}

        def evaluate(texts):
            if texts["prompt"] == "bad":
                {fault}
            return 1.0
    """
    task = task_in(tmp_path, code)
    bad, fine = task.evaluate([written({"prompt": "bad"}), task.seed_program])
    assert bad.status == "lost"
    assert "\n" not in bad.feedback
    assert fine.value == 1.0


def test_several_at_once(tmp_path: Path) -> None:
    code = 'import time\nseed_candidate = {"p": "x"}\ndef evaluate(texts):\n    time.sleep(0.3)\n    return 1.0\n'
    task = task_in(tmp_path, code)
    task.evaluate([task.seed_program])
    task.workers = 4
    begun = time.monotonic()
    task.evaluate([task.seed_program] * 4)  # three more processes start
    task.evaluate([task.seed_program] * 4)
    assert time.monotonic() - begun < 8 * 0.3
    task.close()


def test_numbers_that_are_none() -> None:
    found = verdict_of([{"score": 1.0, "speed": 2.0}, {"score": 0.0, "speed": 4.0}], ["train-0", "train-1"], {})
    assert (found.value, found.metrics["speed"]) == (0.5, 3.0)
    found = verdict_of([{"score": 1.0}, {"score": float("nan")}], ["train-0", "train-1"], {})
    assert found.value is None
    assert found.feedback.startswith("train-1: the evaluator gave score = nan")


def test_what_is_told_has_an_end() -> None:
    records = {"p": [{"Feedback": "x" * 3000}] * 40}
    told = reflection({f"train-{i}": i / 40 for i in range(40)}, {}, records)
    assert len(told) < MOST_RECORDS + 1000
    assert told.startswith("p, train-0 (0):")
    assert told.endswith("more)")


@pytest.mark.parametrize(
    ("code", "texts", "told"),
    [
        ("x = 1\n", "", r"^\w+\.py has nothing that evaluates; add def evaluate\(texts\)"),
        ("def evaluate(texts): return 1\n", "", "has no texts to begin with"),
        ("def evaluate(texts): return 1\nseed_candidate = {'a': 3}\n", "", "seed_candidate should have a text"),
        ("def evaluate(texts): return 1\nseed_candidate = []\n", "", "seed_candidate should have a text"),
        ("def evaluate(texts, example): return 1\nseed_candidate = {'a': 'b'}\n", "", "there is none; add trainset"),
        ("def evaluate(texts, *, example): return 1\nseed_candidate = {'a': 'b'}\n", "", "by their places"),
        ("def evaluate(): return 1\nseed_candidate = {'a': 'b'}\n", "", "should take the texts"),
        ("def evaluate(path): return 1\nseed_candidate = {'a': 'b', 'c': 'd'}\n", "", "reads one text"),
        ("import nothing_of_the_kind\n", "", "does not import: line 1: ModuleNotFoundError"),
        (
            "class A:\n    def evaluate(self): pass\nseed_candidate = {'a': 'b'}\n",
            "",
            "has an adapter, and no examples",
        ),
        ("class A:\n    def __init__(self, x): pass\n    def evaluate(self): pass\n", "", "made without arguments"),
        ("adapter = 3\n", "", r"^\w+\.py: adapter is an int without evaluate"),
        ("trainset = 3\ndef evaluate(texts, example): pass\n", "", "trainset is an int"),
        ("TIMEOUT = 'long'\ndef evaluate(texts): return 1\n", "", "TIMEOUT is 'long'"),
        ("def evaluate(texts): return 1\n", "none.toml", "there is no file"),
        ("def evaluate(texts): return 1\n", "bad.toml", "cannot be read"),
        ("def evaluate(texts): return 1\n", "bad.json", "should have a text for each name"),
        ("def evaluate(texts): return 1\n", "marked.txt", "has EVOLVE-BLOCK marks"),
        ("def evaluate(texts): return 1\n", "odd.rs", "holds no texts"),
        ("def evaluate(texts): return 1\n", "empty", "has no .txt or .md files"),
        ("def evaluate(texts): return 1\n", "two", "has two texts called a; rename a.md"),
        ("def evaluate(texts): return 1\n", "twice.json", "a name stands there twice"),
        ("def evaluate(texts): return 1\n", "half.json", "half of a surrogate pair"),
    ],
)
def test_what_is_refused(tmp_path: Path, code: str, texts: str, told: str) -> None:
    (tmp_path / "bad.toml").write_text("a = ")
    (tmp_path / "bad.json").write_text("[1]")
    (tmp_path / "marked.txt").write_text("# EVOLVE-BLOCK-START")
    (tmp_path / "odd.rs").write_text("fn main() {}")
    (tmp_path / "empty").mkdir()
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "a.md").write_text("a")
    (tmp_path / "two" / "a.txt").write_text("a")
    (tmp_path / "twice.json").write_text('{"a": "b", "a": "c"}')
    (tmp_path / "half.json").write_text('{"a": "\\ud800"}')
    with pytest.raises(UserError, match=told) as refused:
        task_in(tmp_path, code, texts)
    assert "\n" not in str(refused.value)


def test_a_folder_of_texts(tmp_path: Path) -> None:
    (tmp_path / "prompts").mkdir()
    for name in ("plan.md", "answer.txt", "notes.rst"):
        (tmp_path / "prompts" / name).write_text(name)
    task = task_in(tmp_path, "def evaluate(texts): return 1\n", "prompts")
    assert task.texts(task.seed_program) == {"answer": "answer.txt", "plan": "plan.md"}


ANNOTATED = """
    from typing import TypedDict
    from gepa.core.adapter import Candidate, EvaluationBatch, GEPAAdapter, ProposalFn

    class Row(TypedDict):
        word: str

    trainset = [{"word": "a"}, {"word": "b"}]
    seed_candidate = {"one": "a", "two": "b"}

    class Base(GEPAAdapter[Row, Row, str]):
        propose_new_texts: ProposalFn | None = None

        def evaluate(self, batch: list[Row], candidate: Candidate, capture_traces=False) -> EvaluationBatch[Row, str]:
            words = [row["word"] for row in batch]
            return EvaluationBatch(words, [word in candidate["one"] for word in words], batch)

    class Mine(Base):
        def make_reflective_dataset(self, candidate, eval_batch, components_to_update):
            assert len(components_to_update) == 1
            [name] = components_to_update
            if name == "two":
                raise ValueError("no valid predictions")
            return {name: [{"Feedback": row["word"]} for row in eval_batch.trajectories]}
"""


def test_an_adapter_as_gepas_own_are(tmp_path: Path) -> None:
    task = task_in(tmp_path, ANNOTATED)
    [found] = task.evaluate([task.seed_program])
    assert found.value == 0.5
    assert "one, train-1 (0):\n  Feedback: b" in found.feedback
    assert "two:\n  nothing to reflect on: ValueError: no valid predictions" in found.feedback


def test_a_function_goes_before_classes(tmp_path: Path) -> None:
    code = (
        "class Helper:\n    def evaluate(self): pass\nseed_candidate = {'a': 'b'}\ndef evaluate(profile): return True\n"
    )
    task = task_in(tmp_path, code)
    assert [e.value for e in task.evaluate([task.seed_program])] == [1.0]


def test_a_score_and_what_there_is_to_say_by_name(tmp_path: Path) -> None:
    code = """
        seed_candidate = {"p": ""}
        trainset = [1, 2]

        def evaluate(candidate, example=None, state=None):
            return 0.25 * example, {"Input": example, "scores": {"speed": example}}
    """
    task = task_in(tmp_path, code)
    [found] = task.evaluate([task.seed_program])
    assert (found.value, found.metrics["speed"]) == (0.375, 1.5)
    assert found.feedback.startswith("train-0: feedback: Input: 1\n")


def test_async_functions_wait_together(tmp_path: Path) -> None:
    code = """
        import asyncio
        seed_candidate = {"p": ""}
        trainset = list(range(20))

        async def evaluate(texts, example):
            await asyncio.sleep(0.2)
            return example
    """
    task = task_in(tmp_path, code)
    begun = time.monotonic()
    [found] = task.evaluate([task.seed_program])
    assert found.value == 9.5
    assert time.monotonic() - begun < 20 * 0.2


@pytest.mark.parametrize("fault", ["ConnectionRefusedError('no')", "TimeoutError()"])
def test_a_service_that_cannot_be_reached_is_not_the_texts_fault(tmp_path: Path, fault: str) -> None:
    task = task_in(tmp_path, f'seed_candidate = {{"p": ""}}\ndef evaluate(texts):\n    raise {fault}\n')
    assert task.evaluate([task.seed_program])[0].status == "lost"


def test_a_key_that_was_not_handed_on_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "abc")
    task = task_in(tmp_path, 'seed_candidate = {"p": ""}\ndef evaluate(texts):\n    raise ValueError("missing key")\n')
    [found] = task.evaluate([task.seed_program])
    assert "MY_API_KEY" in found.feedback
    assert "EVOLVENT_PASS=" in found.feedback
    assert "abc" not in found.feedback


def test_secrets_are_handed_on_only_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "abc")
    code = (
        'import os\nseed_candidate = {"p": ""}\ndef evaluate(texts):\n    return float("SOME_API_KEY" in os.environ)\n'
    )
    task = task_in(tmp_path, code)
    assert task.evaluate([task.seed_program])[0].value == 0.0
    monkeypatch.setenv("EVOLVENT_PASS", "SOME_API_KEY")
    task = task_in(tmp_path, code)
    assert task.evaluate([task.seed_program])[0].value == 1.0


def rewriting(a: Answering) -> None:
    """A model that adds the right words to a text, once it has read what is wanted."""
    prompt = "\n".join(message["content"] for message in a.body["messages"])
    [program, *_] = [part for part in re.findall(r"```python\n(.*?)```", prompt, re.DOTALL) if "texts = {}" in part]
    texts = read(program)
    texts["system"] += " The number only." if "wanted" in prompt else " What?"
    a.say(chat_reply(f"```python\n{written(texts)}```"))


@pytest.mark.parametrize("recipe", ["gepa", "openevolve", "hill-climbing"])
def test_a_search_over_texts(tmp_path: Path, recipe: str, capsys: pytest.CaptureFixture[str]) -> None:
    task = task_in(tmp_path, ADAPTER)
    settings = {"rollout.write.kinds": {"diff": 0.0, "rewrite": 1.0, "cross": 0.0}} if recipe != "gepa" else {}
    with Scripted(rewriting) as server:
        result = ev.run(recipe, task.name, f"{server.url}#m", "6 steps", settings=settings, store=tmp_path / "runs")
    assert result.view.rescored
    assert result.view.rescored["split"] == "gate"  # there is no testset
    assert result.view.rescored["choice"] == "gate"
    assert result.view.rescored["value"] == 1.0
    export_program(result.view, tmp_path / "best.json")
    best = json.loads((tmp_path / "best.json").read_text())
    assert "number only" in best["system"]
    assert best["style"] == "Be kind."
    with pytest.raises(UserError, match="cannot be written to best.txt"):
        export_program(result.view, tmp_path / "best.txt")


def answering_with(text: str) -> Callable[[Answering], None]:
    """A model that writes this where the text `system` is asked for, and of any other that it stays."""

    def act(a: Answering) -> None:
        prompt = "\n".join(message["content"] for message in a.body["messages"])
        assert "Write this text and no other" in prompt
        a.say(chat_reply(text if 'texts["system"] = """..."""' in prompt else 'texts["style"] = "Be brief."'))

    return act


@pytest.mark.parametrize(
    "answer",
    [
        "The number only.",
        "Better:\n```\nThe number only.\n```\nIt says what is wanted.",
        '```python\ntexts["system"] = """The number only."""\n```',
        'I change one line.\n```python\n"""Prompts."""\n\ntexts = {}\ntexts["system"] = "The number only."\n```',
    ],
)
def test_one_text_is_asked_for_and_may_be_written_as_it_is(tmp_path: Path, answer: str) -> None:
    task = task_in(tmp_path, ADAPTER)
    with Scripted(answering_with(answer)) as server:
        result = ev.run("gepa", task.name, f"{server.url}#m", "5 steps", store=tmp_path / "runs", logs=())
    written_ones = [read(c["payload"]["program"]) for c in result.view.candidates.values()]
    assert {"system": "The number only.", "style": "Be kind."} in written_ones
    assert [share for _, share in result.curve("unusable")][1] == 0  # of the first child; later it changes nothing


def test_a_whole_is_one_example(tmp_path: Path) -> None:
    code = """
        seed_candidate = {"system": "", "style": ""}

        def evaluate(texts):
            return len(texts["system"]), "wanted: words"
    """
    task = task_in(tmp_path, code)
    with Scripted(rewriting) as server:
        result = ev.run("gepa", task.name, f"{server.url}#m", "4 steps", store=tmp_path / "runs")
    assert result.view.rescored
    assert result.view.rescored["value"] >= len(" The number only.")


def test_texts_need_somebody_who_writes(tmp_path: Path) -> None:
    task = task_in(tmp_path, ADAPTER)
    with pytest.raises(UserError, match="only a model can write"):
        ev.run("gepa", task.name, "none", "2 steps", store=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_a_file_that_was_changed(tmp_path: Path) -> None:
    task: Any = task_in(tmp_path, ADAPTER)
    before = task.fingerprint
    assert task_in(tmp_path, ADAPTER).fingerprint == before
    assert task_in(tmp_path, ADAPTER + "\n# changed\n").fingerprint != before
    assert os.path.basename(task.file.path) == "judge_texts.py"


@pytest.mark.parametrize("tests", [True, False])
def test_a_figure_of_what_was_chosen_by_says_so(tmp_path: Path, tests: bool) -> None:
    task = task_in(tmp_path, ADAPTER + "testset = valset[:2]\n" * tests)
    with Scripted(rewriting) as server:
        result = ev.run("gepa", task.name, f"{server.url}#m", "3 steps", store=tmp_path / "runs")
    assert result.view.rescored
    said = believed(result.view.rescored)
    assert ("on the test split" in said) == tests
    assert ("on the examples that it was chosen by (there are no" in said) == (not tests)
