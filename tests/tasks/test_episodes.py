"""Foreign environments on the real path: sampled by a model, judged by `verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.toys import random_policy, role_of

from evolvent.core.records import Request, Trajectory
from evolvent.core.step import Step
from evolvent.judge.verify import Verify
from evolvent.rollout.sample import Sample
from evolvent.tasks.adapters.gymnasium_text import GymTask
from evolvent.tasks.adapters.verifiers_v0 import VerifiersTask
from evolvent.tasks.user import UserTask


class Talk:
    """Ends at a turn without digits, cut at one with digits after the first; breaks at one with an x."""

    turn_end, max_turns, max_tokens = "e", 3, 40

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[str, dict[str, Any]]:
        self.turns = 0
        return f"{seed}:", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if "x" in action:
            raise RuntimeError("broken")
        self.turns += 1
        cut = any(c.isdigit() for c in action) and self.turns > 1
        return "<ok>", 0.25, not any(c.isdigit() for c in action), cut, {}


def rolled(task: Any, n: int = 96) -> list[Trajectory]:
    """Trajectories of an untrained model on one problem, judged."""
    role = role_of(random_policy(spread=1.0), task)
    s = Step(0, role, [role.policy_actor()])
    problem = task.draw("train", s.rng("problem"))
    groups = Sample()([Request(problem, n)], s)
    Verify()(groups, s)
    return groups[0].trajectories


def test_gymnasium() -> None:
    rows = rolled(GymTask("talk", Talk))
    ended = {stop: [t for t in rows if t.stop == stop and t.error is None] for stop in ("env", "turns", "length")}
    assert all(ended.values()), "every way to end should be there: the test shows nothing otherwise"
    assert all(t.outcome == pytest.approx(0.25 * t.info["gym"]["turns"]) for t in ended["env"])
    assert all(t.terminated for t in ended["env"])
    assert not any(t.terminated for t in ended["turns"])
    assert all(t.outcome == 0 for t in ended["length"])
    cut = [t for t in ended["turns"] if t.info["gym"]["truncated"]]
    assert all(t.outcome > 0 for t in cut)
    broken = [t for t in rows if t.error is not None]
    assert broken
    assert all("broken" in str(t.error) and not t.rewards for t in broken)


def test_verifiers() -> None:
    class Environment:
        max_turns = 3
        rubric = type("Rubric", (), {"funcs": [lambda state: float(state["turn"] == 2)], "weights": [1.0]})()

        def get_dataset(self) -> list[dict[str, str]]:
            return [{"question": f"{i}:", "answer": "x"} for i in range(20)]

        def env_response(self, messages: Any, state: Any) -> Any:
            return [{"role": "user", "content": "<ok>"}]

        def is_completed(self, messages: Any, state: Any) -> bool:
            return len(messages) >= 4

    task = VerifiersTask("talk", Environment())
    task.turn_end = "e"  # type: ignore[attr-defined]
    task.max_tokens = 60
    rows = rolled(task)
    assert not any(t.error for t in rows)
    two = [t for t in rows if t.turns == 2]
    assert two
    assert all(t.outcome == float(t.turns == 2) for t in rows)


def test_a_users_environment(tmp_path: Path) -> None:
    path = tmp_path / "talk.py"
    path.write_text(
        "MAX_TURNS, MAX_TOKENS, TURN_END = 3, 60, 'e'\n"
        "def problems(): return [{'prompt': f'{i}:'} for i in range(20)]\n"
        "class Talk:\n"
        "    def __init__(self): self.state = {'turns': 0}\n"
        "    def respond(self, turn):\n"
        "        if 'x' in turn: raise RuntimeError('broken')\n"
        "        self.state['turns'] += 1\n"
        "        return None if self.state['turns'] == 2 else '<ok>'\n"
        "def environment(): return Talk()\n"
        "def reward(state): return float(bool(state) and state['turns'] == 2)\n"
    )
    task = UserTask(path)
    rows = rolled(task)
    task.close()
    done = [t for t in rows if t.stop == "env"]
    assert done
    assert all(t.outcome == 1 and t.turns == 2 for t in done)
    assert all(t.outcome == 0 for t in rows if t.stop == "length")
    assert any("broken" in str(t.error) for t in rows)
