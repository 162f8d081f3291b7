"""Solutions written out as trajectories: who wrote what, with which weight, and that the verifier accepts them."""

from __future__ import annotations

import numpy as np
import pytest
from tests.toys import Digits, random_policy, role_of

from evolvent.core.errors import UserError
from evolvent.core.records import Problem, Request, Trajectory
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.judge.verify import Verify
from evolvent.rollout.demonstrate import Demonstrations
from evolvent.tasks.arith import Arith
from evolvent.tasks.base import Demo, Piece
from evolvent.tasks.calc import Calc


def demonstrated(task: object, count: int = 5) -> tuple[Role, list[Trajectory]]:
    """Judged demonstrations."""
    role = role_of(random_policy(1, 16), task)
    s = Step(0, role)
    groups = Demonstrations()([Request(role.task.draw("train", s.rng(i)), 1) for i in range(count)], s)
    Verify()(groups, s)
    return role, [t for g in groups for t in g.trajectories]


def text(role: Role, t: Trajectory, keep: np.ndarray) -> str:
    """What stands where `keep` is True."""
    return role.policy.format.decode(t.tokens[keep])


@pytest.mark.parametrize("task", [Arith(("2x2-chain",)), Arith(("1x1",)), Calc(("2x3",))])
def test_the_verifier_accepts_them(task: object) -> None:
    role, rows = demonstrated(task)
    assert [t.outcome for t in rows] == [1.0] * 5
    assert role.ledger.of("sampled") == 0
    assert len({t.uid for t in rows}) == 5


def test_tool_replies_are_masked_and_turns_end_as_sampled_ones_do() -> None:
    role, rows = demonstrated(Calc(("1x2",)))
    eos = role.policy.format.eos
    for t in rows:
        lines = t.problem.data["lines"]
        calls = [line.split("=")[0] for line in lines]
        written = "".join(f"[{c}]" for c in calls) + f"={t.problem.data['answer']}"
        assert text(role, t, t.mask) == written
        assert text(role, t, ~t.mask) == t.problem.prompt[0].content + "".join(x.split("=")[1] for x in lines)
        assert np.flatnonzero(t.tokens == eos).tolist() == [len(t.tokens) - 1]
        assert t.mask[-1]
        assert [s.kind for s in t.segments] == ["prompt", *["policy", "tool"] * len(lines), "policy"]
        assert [s.stop for s in t.segments[:-1]] == [s.start for s in t.segments[1:]]


class Weighted(Digits):
    """A solution in pieces: two of one turn, a reply, and a last turn."""

    def gold(self, problem: Problem) -> Demo:
        return [Piece("12"), Piece("3", weight=5.0), Piece("ab", policy=False), Piece("45", weight=0.0), Piece("6")]


def test_pieces_keep_their_weights() -> None:
    _, (t,) = demonstrated(Weighted(), 1)
    body = len(t.problem.prompt[0].content) + 1  # the opening token
    #          1    2    3    end  a    b    4    5    6    end
    wanted = [1.0, 1.0, 5.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0]
    assert t.info["weights"].tolist() == [0.0] * body + wanted
    assert t.mask.tolist() == [False] * body + [True] * 4 + [False] * 2 + [True] * 4
    assert t.completion == "456"


def test_a_task_without_solutions_is_refused() -> None:
    class Unsolved(Digits):
        def gold(self, problem: Problem) -> None:  # type: ignore[override]
            return None

    with pytest.raises(UserError, match="gold"):
        demonstrated(Unsolved())
