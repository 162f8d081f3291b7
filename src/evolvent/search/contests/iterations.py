"""Iterations of RoboPhD: a new agent is born and tried, then it and incumbents answer the same questions.

Iterations   propose   who is born of whom, and who takes part in a contest
Judged       judge     what everybody is evaluated on; the accuracy in a contest becomes a metric
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from evolvent.core.errors import UserError
from evolvent.core.random import identifiers, stream
from evolvent.core.records import Group, Message, Problem, Request
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.search.archive import archive_of
from evolvent.search.asking import Prompts
from evolvent.search.candidate import Candidate
from evolvent.search.contests.entrants import challengers, incumbents
from evolvent.search.contests.failures import read_failures
from evolvent.search.contests.ratings import (
    CONTEST,
    Contest,
    Rating,
    best_contest,
    contests_of,
    elo,
    leader,
    settings_of,
)
from evolvent.search.loop import again
from evolvent.tasks.evaluation import INSTANCE, Evaluation
from evolvent.tasks.worlds.sql.world import Sql, grouped, sql_of

BIRTH, REVISION = "contests/birth", "contests/revision"
ASKED = "instances"  # in the data of a request's problem: what a new agent is tried on
REVISED = "revised"  # there: whose child the agent to be revised is
KINDS = ("evolve", "challenge", "select")


@dataclass
class Iterations:
    """Propose: iteration after iteration, each in a step or a few (arXiv 2601.01126).

        birth     a new agent of the leader, who is the parent, and the `top` best by rating beside it; it is tried on
                  the questions of the iteration before, `trials` times with questions further back, and revised each
                  time that it does worse there than its parent, or than the mean of those who were asked them
        contest   `agents` agents, the new one and incumbents, on `questions` questions about each of `databases`
                  databases, all drawn; whoever is more accurate beats whoever is less

    The first contest is the seed program's alone. From iteration `begin` on an iteration is one with a birth
    (`evolve`), a round of challengers, rarely seen agents rated above `above` (`challenge`), or a contest of incumbents
    only (the rest).
    Trials do not count for ratings. `rating` is `elo`, or another rule of `search.contests.ratings`.

    Metrics of contests: `leader` and `incumbents` (accuracy of who led before, where it takes part; mean of those who
    are not new), `luck` (how much more the leader had in its best contest before), `newborn` (accuracy), `predicted`
    (share of pairs of known agents in which the higher rated one is the more accurate one; half of it where ratings are
    equal), `kind` (0 evolve, 1 challenge, 2 select). Of births: `tried` (accuracy of the new agent on trial less that
    of its parent, or of the mean), `revised`.
    """

    agents: int = 3
    databases: int = 5
    questions: int = 30
    trials: int = 1
    top: int = 2
    begin: int = 12
    evolve: float = 0.7
    challenge: float = 0.15
    above: float = 1500.0
    rating: Rating = elo
    prompts: str = ""
    iteration: int = field(default=0, init=False)  # that is under way, from 1
    newborn: int | None = field(default=None, init=False)
    tried: int = field(default=0, init=False)  # trials of the newborn
    known: int = field(default=0, init=False)  # candidates before the latest birth; 0: nobody is being born

    def setup(self, role: Role) -> None:
        """A world of questions about databases, and as many as are asked for."""
        task = sql_of(role.task)
        there = grouped(task.instances("train"))
        least = min(map(len, there.values()))
        if not 1 <= self.databases <= len(there) or not 1 <= self.questions <= least:
            raise UserError(
                f"propose.databases goes from 1 to {len(there)} and propose.questions from 1 to {least} "
                f"in {task.name}, got {self.databases} and {self.questions}"
            )
        mine, last = settings_of(self.rating), settings_of(archive_of(role).final)
        for name in mine.keys() & last.keys():
            if mine[name] != last[name]:
                raise UserError(
                    f"propose.rating.{name} is {mine[name]:g} and keep.final.{name} {last[name]:g}: who wins would "
                    "not be who leads; set both alike"
                )

    def check(self, system: object) -> None:
        """Numbers in range, prompts that can be read."""
        if self.agents < 2 or self.trials < 0 or self.top < 0 or self.begin < 1:
            raise UserError("propose.agents must be at least 2, .begin 1, .trials and .top 0")
        if min(self.evolve, self.challenge) < 0 or self.evolve + self.challenge > 1:
            raise UserError("propose.evolve and .challenge are shares, and together at most 1")
        Prompts(self.prompts).check([BIRTH, REVISION])

    def __call__(self, s: Step) -> Iterator[list[Request]]:
        """One round of requests."""
        archive, task = archive_of(s.role), sql_of(s.role.task)
        problem = task.draw("train", s.rng("problem"))
        if not archive.history:
            yield [Request(problem, 1)]
            return
        archive.pool()
        history = archive.history
        contests = contests_of(history)
        if self.iteration == 0:
            self.iteration = 1
        elif self.known:  # somebody was to be born in the step before
            request = self._after_birth(history, contests, problem, s)
            if request is not None:
                yield [request]
                return
        elif self.kind(s.role.seed) == "evolve":
            self.known, self.newborn, self.tried = len(history), None, 0
            yield [self._birth(history, contests, problem, s)]
            return
        yield from self._contest(history, contests, problem, s)

    def kind(self, seed: int) -> str:
        """Of the iteration that is under way."""
        if self.iteration < self.begin:
            return "select" if self.iteration == 1 else "evolve"
        u = stream(seed, "kind", self.iteration).random()
        return KINDS[0] if u < self.evolve else KINDS[1] if u < self.evolve + self.challenge else KINDS[2]

    def asked(self, task: Sql, seed: int, iteration: int) -> list[str]:
        """The questions of an iteration: drawn databases, and drawn questions about each."""
        rng, there = stream(seed, "contest", iteration), grouped(task.instances("train"))
        names = list(there)
        found = []
        for i in rng.permutation(len(names))[: self.databases].tolist():
            mine = there[names[i]]
            found += [mine[k] for k in sorted(rng.permutation(len(mine))[: self.questions].tolist())]
        return found

    def _birth(self, history: Sequence[Candidate], contests: Sequence[Contest], problem: Problem, s: Step) -> Request:
        """A new agent, of the leader and those next to it."""
        ratings = self.rating(contests)
        parent = leader(history, ratings)
        assert parent is not None
        order = sorted((u for u in ratings if history[u].valid and u != parent.uid), key=lambda u: (-ratings[u], u))
        beside = [history[uid] for uid in order[: self.top]]
        return self._made(BIRTH, [parent, *beside], {}, contests, problem, s)

    def _made(
        self, name: str, parents: Sequence[Candidate], more: Mapping[str, Any], contests: Sequence[Contest],
        problem: Problem, s: Step,
    ) -> Request:  # fmt: skip
        """A request for an agent that is tried on the questions of an earlier iteration, if trials are left."""
        back = self.iteration - 1 - self.tried
        names = self.asked(sql_of(s.role.task), s.role.seed, back) if self.tried < self.trials and back > 0 else []
        ratings = self.rating(contests)
        rows = [(c, ratings.get(c.uid), read_failures(c.evaluation.feedback)) for c in parents]
        text = Prompts(self.prompts).render(name, rows=rows, contests=contests)
        asked = replace(problem, data={**problem.data, ASKED: names, **more})
        uses = tuple(str(c.uid) for c in parents)
        return Request(asked, 1, memory=(Message("system", text),), uses=uses)

    def _after_birth(
        self, history: Sequence[Candidate], contests: Sequence[Contest], problem: Problem, s: Step
    ) -> Request | None:
        """A revision of the newborn, if it did worse on trial than its parent; else it is ready."""
        if len(history) > self.known:
            self.newborn = history[-1].uid
        if self.newborn is None or self.tried >= self.trials or self.iteration - 1 - self.tried < 1:
            self.known = 0
            return None
        one, mates = history[self.newborn], contests[self.iteration - 2 - self.tried]
        names = self.asked(sql_of(s.role.task), s.role.seed, self.iteration - 1 - self.tried)
        accuracy = on(one.evaluation, names) if one.valid else 0.0
        gain = accuracy - mates.get(one.parents[0], float(np.mean(list(mates.values()))))
        self.tried += 1
        s.log("tried", gain)
        s.log("revised", gain < 0 or not one.valid)
        if gain >= 0 and one.valid:
            self.known = 0
            return None
        self.known = len(history)
        parents = [one if one.valid else history[one.parents[0]], *(history[uid] for uid in one.parents)]
        return self._made(REVISION, _once(parents), {REVISED: one.parents[0]}, contests, problem, s)

    def _contest(
        self, history: Sequence[Candidate], contests: Sequence[Contest], problem: Problem, s: Step
    ) -> Iterator[list[Request]]:
        """The contest of the iteration, and what it shows."""
        ratings, kind = self.rating(contests), self.kind(s.role.seed)
        known = [uid for uid in ratings if history[uid].valid]
        rng = stream(s.role.seed, "entrants", self.iteration)
        new = [self.newborn] if self.newborn is not None and history[self.newborn].valid else []
        new = new or ([0] if not contests else [])
        if kind == "challenge":
            chosen = challengers(contests, known, ratings, self.agents, self.above, rng)
        else:
            chosen = []
        if not chosen:
            chosen = [*new, *incumbents(contests, known, ratings, self.agents - len(new), rng)]
        names = self.asked(sql_of(s.role.task), s.role.seed, self.iteration)
        requests = []
        for uid in chosen:
            (number,) = identifiers(1, s.role.seed, *s.path, s.round, "contest", uid)
            request = again(history[uid], problem, names, number)
            request.resume[0].info["contest"] = self.iteration
            requests.append(request)
        yield requests
        found = {t.info["candidate"]: t.info["accuracy"] for g in s.fresh for t in g.valid if "accuracy" in t.info}
        self._log(found, contests, new, leader(history, ratings), s)
        s.log("kind", KINDS.index(kind))
        self.iteration += 1
        self.newborn, self.known = None, 0

    def _log(
        self, found: Contest, before: Sequence[Contest], new: Sequence[int], first: Candidate | None, s: Step
    ) -> None:
        ratings, best = self.rating(before), best_contest(before)
        old = [uid for uid in found if uid in ratings]
        if old:
            s.log("incumbents", float(np.mean([found[uid] for uid in old])))
        if first is not None and first.uid in found and first.uid in ratings:
            s.log("leader", found[first.uid])
            s.log("luck", best[first.uid] - found[first.uid])
        for uid in new:
            if uid in found and ratings:
                s.log("newborn", found[uid])
        right = agreement(found, ratings)
        if right is not None:
            s.log("predicted", right)

    def state_dict(self) -> dict[str, Any]:
        """Where the iteration is."""
        return {"iteration": self.iteration, "newborn": self.newborn, "tried": self.tried, "known": self.known}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go back to a saved state."""
        self.iteration, self.newborn = state["iteration"], state["newborn"]
        self.tried, self.known = state["tried"], state["known"]


def _once(candidates: Sequence[Candidate]) -> list[Candidate]:
    return list({c.uid: c for c in candidates}.values())


def on(evaluation: Evaluation, names: Sequence[str]) -> float:
    """The mean value on some instances; what is missing is 0."""
    return float(np.mean([evaluation.metrics.get(INSTANCE + name, 0.0) for name in names]))


def agreement(found: Contest, ratings: Mapping[int, float]) -> float | None:
    """Of the pairs of rated agents that differ in a contest, the share in which the higher rated one is the better one;
    equal ratings count half. None without such a pair."""
    uids = [uid for uid in found if uid in ratings]
    points = []
    for i, a in enumerate(uids):
        for b in uids[i + 1 :]:
            if found[a] != found[b]:
                points.append(0.5 + 0.5 * np.sign(ratings[a] - ratings[b]) * np.sign(found[a] - found[b]))
    return float(np.mean(points)) if points else None


@dataclass
class Judged:
    """Around a judge: the seed program only has to work, a new agent is tried on its request's questions, and in
    contests everybody is evaluated on the contest's, also once more. The feedback is that of the latest evaluation.

    An agent that fails in a contest has accuracy 0 there; where the evaluation was lost, it did not take part.
    """

    inner: Any

    def __call__(self, groups: Sequence[Group], s: Step) -> None:
        """Evaluate what the round has made."""
        rows = [t for g in groups for t in g.valid]
        for t in rows:
            if "candidate" not in t.info:
                t.info["instances"] = tuple(t.problem.data.get(ASKED, ()))
            elif "earlier" in t.info:
                t.info["earlier"] = replace(t.info["earlier"], feedback="")
        self.inner(groups, s)
        for t in rows:
            if t.error is None and "contest" in t.info:
                e = t.info["evaluation"]
                t.info["accuracy"] = on(e, t.info["instances"]) if e.value is not None else 0.0
                metrics = {**e.metrics, f"{CONTEST}{t.info['contest']}": t.info["accuracy"]}
                t.info["evaluation"] = replace(e, metrics=metrics)
