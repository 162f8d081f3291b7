"""One solution, improved batch by batch, with a gate that takes a step back: the loop of agent symbolic learning.

arXiv 2406.18532, with the numbers of its code (aiwaves-cn/agents).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from evolvent.core.errors import UserError, unknown
from evolvent.core.random import identifiers, stream
from evolvent.core.records import Problem, Request, Trajectory
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.engine.absent import AbsentPolicy
from evolvent.search.archive import Archive, archive_of
from evolvent.search.candidate import Candidate
from evolvent.search.loop import again, written
from evolvent.search.teams.evolve import value_on
from evolvent.search.teams.judge import QUESTIONS, teams_of
from evolvent.tasks.evaluation import Evaluation
from evolvent.tasks.worlds.workflow.diagnose import faults_in
from evolvent.tasks.worlds.workflow.team import TeamError, read

LEVELS = ("pipeline", "node", "prompt")  # of optimizers, from the top down
ORDERS = ("in_turn", "random", "top_down", "bottom_up")
LEARN_FROM, OPTIMIZERS, ALL, ACCEPTED = "learn from", "optimizers", "all optimizers", "accepted"


@dataclass
class Train:
    """Propose: the solution's trajectories on a batch have been judged; the optimizers change it, and the new one is
    executed on the next batch.

        order     which optimizers have a step: pipeline, node, prompt `in_turn` (who has nothing to change hands the
                  turn on), one at `random`, all `top_down` or all `bottom_up`
        rollback  if score(new, this batch) < score(old, the batch before), the old one is executed on this batch, too,
                  and stays if it is better there
        stop      the mean score was above `threshold` for `patience` steps, or has not risen for as many (`flat`);
                  then nothing is changed any more. Both are off unless asked for

    A score is the mean value of the batch. Without a model each call that a model would have had counts as one model
    call, so that budgets can be in `calls`. Metrics: `score`, `rolled_back`, `stopped`, and of the questions of the
    batch `early` (share that is answered wrong by a fault before the last node) and `final` (by the last node alone).
    """

    batch: int = 24
    optimizers: tuple[str, ...] = LEVELS
    order: str = "in_turn"
    rollback: bool = True
    threshold: float = 0.0
    flat: bool = False
    patience: int = 3
    batches: int = field(default=0, init=False)  # that were drawn
    current: int = field(default=0, init=False)  # the solution's place in the history
    scores: list[float] = field(default_factory=list, init=False)  # of the solution, batch by batch

    def setup(self, role: Role) -> None:
        """A task of teams; names and numbers that make sense."""
        teams_of(role)
        for name in self.optimizers:
            if name not in LEVELS:
                raise unknown("optimizer", name, LEVELS, f"propose.optimizers has {', '.join(LEVELS)}")
        if self.order not in ORDERS:
            raise unknown("order", self.order, ORDERS, f"propose.order is one of {', '.join(ORDERS)}")
        if not self.optimizers or self.batch < 1 or self.patience < 1:
            raise UserError("propose.optimizers names at least one, and propose.batch and .patience are at least 1")

    def __call__(self, s: Step) -> Iterator[list[Request]]:
        """The new solution on the next batch; then perhaps the old one."""
        archive, task = archive_of(s.role), teams_of(s.role)
        problem = task.draw("train", s.rng("problem"))
        names = self.names(s.role)
        self.batches += 1
        if not archive.history:
            t = written(identifiers(1, s.role.seed, *s.path)[0], Request(problem, 1), task.seed_program, "seed")
            t.info |= {"instances": tuple(names), "notes": {ACCEPTED: True}}
            yield [Request(problem, 1, resume=(t,))]
            self._take(0, score_of(t.info.get("evaluation"), names), t.info.get("evaluation"), names, s)
            return
        old = archive.history[self.current]
        stopped = self.stopped()
        s.log("stopped", stopped)
        if stopped:
            yield [again(old, problem, names, identifiers(1, s.role.seed, *s.path, "again")[0])]
            self._take(self.current, score_of(latest(s), names), latest(s), names, s)
            return
        yield [self._request(old, problem, names, s)]
        [made] = [t for g in s.fresh for t in g.trajectories]
        evaluation: Evaluation | None = made.info.get("evaluation")
        score = score_of(evaluation, names)
        back = False
        if (self.rollback and score < self.scores[-1]) or evaluation is None or evaluation.value is None:
            yield [again(old, problem, names, identifiers(1, s.role.seed, *s.path, "back")[0])]
            before = score_of(latest(s), names)
            back = before > score
            if back:
                score, evaluation = before, latest(s)
        s.log("rolled_back", back)
        made.info.setdefault("notes", {})[ACCEPTED] = not back
        self._take(self.current if back or made.error else len(archive.history), score, evaluation, names, s)

    def names(self, role: Role) -> list[str]:
        """The next batch: questions in an order that is drawn for each time they are through."""
        whole = teams_of(role).instances("train")
        found: list[str] = []
        for place in range(self.batches * self.batch, (self.batches + 1) * self.batch):
            epoch, i = divmod(place, len(whole))
            found.append(whole[int(stream(role.seed, "batch", epoch).permutation(len(whole))[i])])
        return list(dict.fromkeys(found))

    def _request(self, old: Candidate, problem: Problem, names: Sequence[str], s: Step) -> Request:
        steps = s.t - 1
        data = {
            **problem.data,
            QUESTIONS: tuple(names),
            LEARN_FROM: tuple(self._before(s.role)),
            OPTIMIZERS: tuple(turn(self.order, self.optimizers, steps, s)),
            ALL: self.order in ("top_down", "bottom_up"),
        }
        return Request(replace(problem, data=data), 1, uses=(str(old.uid),))

    def _before(self, role: Role) -> list[str]:
        """The batch before the one that was drawn last."""
        return replace_batches(self, self.batches - 2).names(role)

    def _take(self, uid: int, score: float, evaluation: Evaluation | None, names: Sequence[str], s: Step) -> None:
        """The solution from now on, and what is known of it."""
        self.current = uid
        self.scores.append(score)
        s.log("score", max(score, -1.0))
        found = faults_in(evaluation.feedback) if evaluation else {}
        text = program_of(uid, s)
        last = last_of(text)
        early = sum(bool(faults) and faults[-1].node != last for name, faults in found.items() if name in names)
        wrong = sum(name in names for name in found)
        s.log("early", early / len(names))
        s.log("final", (wrong - early) / len(names))

    def stopped(self) -> bool:
        """Whether training is over."""
        n = self.patience
        if self.threshold > 0 and len(self.scores) >= n and min(self.scores[-n:]) > self.threshold:
            return True
        recent = self.scores[-n - 1 :]
        return self.flat and len(recent) > n and all(b <= a for a, b in pairwise(recent))

    def state_dict(self) -> dict[str, Any]:
        """Where it is."""
        return {"batches": self.batches, "current": self.current, "scores": list(self.scores)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go back to a saved state."""
        self.batches, self.current, self.scores = state["batches"], state["current"], list(state["scores"])


def replace_batches(part: Train, batches: int) -> Train:
    """The part as it was when so many batches had been drawn; only for what is read from that."""
    earlier = Train(batch=part.batch)
    earlier.batches = batches
    return earlier


def turn(order: str, optimizers: Sequence[str], steps: int, s: Step) -> list[str]:
    """Which optimizers have their turn after so many steps, the first one first; in turn, who comes after it, too."""
    mine = [level for level in LEVELS if level in optimizers]
    match order:
        case "in_turn":
            return [*mine[steps % len(mine) :], *mine[: steps % len(mine)]]
        case "random":
            return [mine[int(s.rng("optimizer").integers(len(mine)))]]
        case "bottom_up":
            return mine[::-1]
    return mine


def score_of(evaluation: Evaluation | None, names: Sequence[str]) -> float:
    """The mean value on a batch; -inf for what is not valid."""
    if evaluation is None or evaluation.value is None:
        return float("-inf")
    return value_on(Candidate(0, {}, evaluation), names)


def latest(s: Step) -> Evaluation | None:
    """What the round has found."""
    found = [t.info.get("evaluation") for g in s.fresh for t in g.valid]
    return found[0] if found else None


def program_of(uid: int, s: Step) -> str:
    """The text of a candidate that is in the archive, or is about to be."""
    history = archive_of(s.role).history
    if uid < len(history):
        return history[uid].text
    made = (t.info["program"] for g in [*s.groups, *s.fresh] for t in g.valid if "candidate" not in t.info)
    return next(made, "")  # nothing where its evaluation was lost


def last_of(text: str) -> str:
    """The node that gives the answer; nobody, where the text is no team."""
    try:
        return read(text).last
    except TeamError:
        return ""


def accepted(history: Sequence[Candidate]) -> Candidate | None:
    """The solution in the end: the latest that was not taken back."""
    return next((c for c in reversed(history) if c.valid and c.notes.get(ACCEPTED)), None)


def scripted_call(role: Role, calls: int) -> None:
    """Charge calls that a model would have had, where there is none."""
    if isinstance(role.policy, AbsentPolicy):
        role.ledger.charge(model_calls=calls)


__all__ = ["Archive", "Train", "Trajectory", "accepted", "turn"]
