"""Searches whose model our own server serves: answers of no use, prompts that are too long, and one good answer."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch
from tests.cli.test_runs import call, data
from tests.hub import hub_model, hub_tokenizer
from tests.loopback import serving
from tests.recipes.recipe_runs import PROGRAMS, TASKS
from tests.run.lives import view_of
from tokenizers import AddedToken

from evolvent.core.ledger import Ledger
from evolvent.engine.huggingface import local_engine
from evolvent.lineage.runs import RunView
from evolvent.models.load import load_policy
from evolvent.serve.app import bind, create_app

STEPS = {  # until a system has asked its model for candidates; most evaluate the seed program first
    "agent-symbolic-learning": 2, "alphaevolve": 2, "auto-evolve": 2, "auto-research-specialists": 2,
    "creativegame": 1, "data-evolve": 2, "dgm": 2, "evomas": 2, "execution-grounded-research": 2,
    "guided-evolution": 2, "hgm": 2, "loongflow": 2, "meta-ttl": 2, "robophd": 2, "rtv-pdr": 1, "se-agent": 1,
    "self-evolving-recsys": 2, "shinka-evolve": 2, "thetaevolve": 2, "vad-cfr": 2,
}  # fmt: skip
SMALL = {"meta-ttl": "program:text-games:games=2,episodes=2,limit=4"}
WRITERS = [  # of these the model writes diffs and programs in Python, for any task
    "alphaevolve", "auto-research-specialists", "execution-grounded-research", "guided-evolution", "loongflow",
    "self-evolving-recsys", "shinka-evolve", "thetaevolve", "vad-cfr",
]  # fmt: skip
BETTER = """def point():
    x = 3.0
    y = 1.0
    return x, y
"""
USEFUL = f"""Nearer to the top.

<<<<<<< SEARCH
    x = 1.0
=======
    x = 3.0
>>>>>>> REPLACE

Or, all of it anew:

```python
{BETTER}```
"""


class Counted:
    """An application, and what it has answered to POSTs: (status, reply)."""

    def __init__(self, app: Any) -> None:
        self.app, self.url, self.answers = app, "", list[tuple[int, Any]]()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        said: list[Any] = []

        async def noted(message: Any) -> None:
            said.append(message)
            await send(message)

        await self.app(scope, receive, noted)
        if scope["type"] == "http" and scope["method"] == "POST":
            text = b"".join(message.get("body", b"") for message in said)
            self.answers.append((said[0]["status"], json.loads(text)))

    def model(self) -> str:
        """Its address, for a run from whose beginning on it counts."""
        self.answers.clear()
        return f"{self.url}#served"

    @property
    def statuses(self) -> set[int]:
        """Of all replies."""
        return {status for status, _ in self.answers}

    @property
    def usage(self) -> dict[str, int]:
        """What it says that it has done, in the ledger's units."""
        made = [reply["usage"] for status, reply in self.answers if status == 200]
        prefilled, sampled = (sum(u[name] for u in made) for name in ("prompt_tokens", "completion_tokens"))
        return {"model_calls": len(made), "prefilled": prefilled, "sampled": sampled}


def write_model(folder: Path, answer: str = "") -> Path:
    """A Llama model with room for long prompts. Its weights are random, and so are the ten tokens or so that it writes;
    or it knows one answer by heart, which is a token."""
    tokenizer = hub_tokenizer("chatml")
    end = tokenizer.convert_tokens_to_ids("<|im_end|>")
    tokenizer.add_tokens([AddedToken(answer or "<never>", normalized=False)])
    known = len(tokenizer) - 1
    one = {"num_hidden_layers": 1, "num_attention_heads": 1, "num_key_value_heads": 1}
    model = hub_model("llama", len(tokenizer), **one, max_position_embeddings=32_768)
    embedding, head = model.model.embed_tokens.weight, model.lm_head.weight
    with torch.no_grad():
        embedding[:, 0] = 10.0  # most of every state, so that the head can rely on it
        head[:, 0] = 0.0
        head[end, 0] = 0.65
        if answer:
            embedding[known, 0] = -10.0
            head[known, 0], head[end, 0] = 20.0, -20.0  # first the answer, and after it the end
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@contextmanager
def served(model: str | Path) -> Iterator[Counted]:
    """What `evolvent serve` makes of a model."""
    policy = load_policy(str(model))
    app = Counted(create_app(policy, local_engine(policy, Ledger()), "served"))
    with serving(app) as app.url:  # type: ignore[arg-type]
        yield app


@pytest.fixture(scope="module")
def babbling(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Counted]:
    with served(write_model(tmp_path_factory.mktemp("babbling"))) as server:
        yield server


@pytest.fixture(scope="module")
def knowing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Counted]:
    with served(write_model(tmp_path_factory.mktemp("knowing"), USEFUL)) as server:
        yield server


@pytest.fixture(scope="module")
def tiny() -> Iterator[Counted]:
    with served("tiny") as server:
        yield server


def marked(names: Any, quick: set[str]) -> list[Any]:
    """All of them, most for the slow tests."""
    return [pytest.param(name, marks=[pytest.mark.slow] * (name not in quick)) for name in names]


def command(recipe: str, world: str, model: str, folder: Path, steps: int) -> list[object]:
    """A short run, as it is typed. It sets one thread, as all tests do."""
    _, *files = world.split(":")
    what = ["--task", files[0], "--seed-program", files[1]] if files[0].endswith(".py") else ["--task", world]
    short = ["--budget", f"{steps} steps", "--profile", "short", "--no-final", "--threads", "1"]
    return ["run", recipe, *what, "--model", model, *short, "--store", folder, "--name", "run"]


def values(view: RunView, seeds: bool) -> list[float | None]:
    """Of the programs that a search begins with, or of those that it has made."""
    return [c["evaluation"]["value"] for c in view.candidates.values() if (c["operator"] == "seed") == seeds]


@pytest.mark.parametrize("name", marked(STEPS, {"alphaevolve", "robophd"}))
def test_answers_of_no_use_are_paid_and_improve_nothing(
    name: str, babbling: Counted, tmp_path: Path, sandboxed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    world, folder = SMALL.get(name) or TASKS.get(name, PROGRAMS), tmp_path / "runs"
    told = data(capsys, *command(name, world, babbling.model(), folder, STEPS[name]))
    assert (told["status"], told["steps"]) == ("finished", STEPS[name])
    assert babbling.statuses == {200}
    assert min(babbling.usage.values()) > 0
    assert {unit: told["spent"]["method"][unit] for unit in babbling.usage} == babbling.usage
    view = view_of(folder, "run")
    assert view.errors == {}
    before, after = values(view, seeds=True), values(view, seeds=False)
    assert None not in before
    assert max(before) == max(v for v in [*before, *after] if v is not None)  # type: ignore[type-var]
    if name in WRITERS:
        assert after == [None] * len(after)
        assert {c["evaluation"]["status"] for c in view.candidates.values() if c["parents"]} == {"unusable"}
        assert (folder / "run/best.py").read_text() == view.candidates[0]["payload"]["program"]


@pytest.mark.parametrize("name", marked(WRITERS, {"alphaevolve"}))
def test_a_good_answer_becomes_the_best_program(
    name: str, knowing: Counted, tmp_path: Path, task: str, capsys: pytest.CaptureFixture[str]
) -> None:
    told = data(capsys, *command(name, task, knowing.model(), tmp_path / "runs", 2))
    assert {reply["choices"][0]["message"]["content"] for _, reply in knowing.answers} == {USEFUL}
    assert {unit: told["spent"]["method"][unit] for unit in knowing.usage} == knowing.usage
    view = view_of(tmp_path / "runs", "run")
    assert values(view, seeds=True) == [-8.0]
    assert -4.0 in values(view, seeds=False)
    assert BETTER in (tmp_path / "runs/run/best.py").read_text()


@pytest.mark.parametrize("name", ["alphaevolve", "creativegame", "se-agent"])
def test_prompts_that_the_model_has_no_room_for_end_the_run_with_a_sentence(
    name: str, tiny: Counted, tmp_path: Path, sandboxed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    world, folder = TASKS.get(name, PROGRAMS), tmp_path / "runs"
    said = call(capsys, *command(name, world, tiny.model(), folder, 20), "--quiet", code=2)
    assert "maximum context length is 512 tokens, and the prompt has" in said
    assert "mend that, then carry on with `evolvent resume run" in said
    assert tiny.statuses == {400}
    view = view_of(folder, "run")
    assert view.status == "failed"
    assert view.errors
    assert values(view, seeds=False) == []
    assert None not in values(view, seeds=True)
    assert all(spent["model_calls"] == 0 for spent in view.spent.values())  # a refusal costs nothing


@pytest.mark.parametrize("name", marked(["robophd", "evomas", "agent-symbolic-learning"], {"robophd"}))
def test_requests_that_fail_while_a_candidate_is_evaluated_are_no_verdict_on_it(
    name: str, tiny: Counted, tmp_path: Path, sandboxed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = call(capsys, *command(name, TASKS[name], tiny.model(), tmp_path / "runs", 20), "--quiet", code=2)
    assert "maximum context length is 512" in said


@pytest.mark.slow
def test_what_the_last_evaluation_asks_for_is_in_the_account_of_the_evidence(
    babbling: Counted, tmp_path: Path, sandboxed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = command("robophd", "program:sql:3", babbling.model(), tmp_path / "runs", 1)
    told = data(capsys, *(word if word != "--no-final" else "--final" for word in typed))
    spent = {unit: sum(account.get(unit, 0) for account in told["spent"].values()) for unit in babbling.usage}
    assert spent == babbling.usage
    assert told["spent"]["evidence"]["model_calls"] > 0


@pytest.mark.parametrize("name", marked(["robophd", "evomas", "agent-symbolic-learning", "auto-evolve"], {"robophd"}))
def test_where_evaluations_ask_the_model_the_best_are_evaluated_anew_only_if_asked_for(
    name: str, babbling: Counted, tmp_path: Path, sandboxed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = command(name, TASKS[name], babbling.model(), tmp_path / "runs", STEPS[name])
    typed = [word for word in whole if word != "--no-final"]
    before = call(capsys, *typed, "--dry-run")
    assert "evaluations ask the model, too" in before
    assert "only with --final" in before
    said = call(capsys, *typed, "--no-report")
    assert "Not evaluated anew" in said
    assert view_of(tmp_path / "runs", "run").rescored is None
    assert f" {babbling.usage['model_calls']:,.0f} model calls, " in said


@pytest.mark.slow
def test_the_two_commands(tmp_path: Path, task: str) -> None:
    """`evolvent serve` and `evolvent run`, each a process of its own, with the paper's settings."""
    folder = write_model(tmp_path / "model", USEFUL)
    with bind(port=0) as free:
        port = str(free.getsockname()[1])
    address, evolvent = f"http://127.0.0.1:{port}", [sys.executable, "-m", "evolvent"]
    typed = command("alphaevolve", task, f"{address}/v1#known", tmp_path / "runs", 2)
    plain = [str(word) for word in typed if word not in ("--profile", "short")]
    serve = [*evolvent, "serve", str(folder), "--port", port, "--name", "known"]
    with subprocess.Popen(serve) as server:
        try:
            deadline = time.monotonic() + 120
            while not answers(f"{address}/health"):
                assert server.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.1)
            run = subprocess.run([*evolvent, *plain], capture_output=True, text=True, timeout=120)
        finally:
            server.terminate()
    assert run.returncode == 0, run.stderr
    assert "Traceback" not in run.stderr
    assert "Best value -4 (seed program -8)" in run.stdout
    assert BETTER in (tmp_path / "runs/run/best.py").read_text()


def answers(url: str) -> bool:
    """Whether a server does."""
    try:
        return httpx.get(url).status_code == 200
    except httpx.TransportError:
        return False
