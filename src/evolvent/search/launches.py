"""Two loops: many candidates are looked at by a cheap proxy, the best of them tested on what counts, which takes time.

TwoLoops   propose   the inner loop's children, and the tests of the outer loop that are due
OnProxy    roll out  new candidates are evaluated on the proxy only, and read the journal
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from evolvent.core.errors import UserError, unknown
from evolvent.core.random import identifiers
from evolvent.core.ranges import Count, Nonnegative, Share, Whole
from evolvent.core.records import Group, Message, Request
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.engine.absent import AbsentPolicy
from evolvent.search.archive import archive_of
from evolvent.search.asking import Prompts
from evolvent.search.blackboard import signed
from evolvent.search.candidate import Candidate
from evolvent.search.changes import change, shown
from evolvent.search.loop import Children, again, programs_of
from evolvent.tasks.evaluation import INSTANCE

PROXY = "proxy/"
DROPS = ("switch", "stop", "ignore")
PERSONAS = ("optimiser", "architecture", "reward")


@dataclass
class TwoLoops:
    """Propose: each step has `children` of the inner loop, and the tests of the outer loop whose results are due
    (arXiv 2602.10226).

    Inner loop: with probability `build` a child is made from one of the `best` candidates by the proxy, else from the
    model that is launched. Filter: of those not tested yet who do better by the proxy than the launched model, the
    highest goes on, as long as less than `slots` tests run. Outer loop: a test goes through the world's `stages` in
    turn; the result of each is known `delay` steps later. It ends where the candidate fails, or is worse than the
    launched model on the same instances by more than `guard`. Who is through all of them and better is launched.

    Gauge: the rank correlation (Spearman) of proxy and value over the latest `window` candidates that were tested on
    all stages. Below `aligned`, with at least `enough` of them, `drop` says what happens: `switch` to the world's next
    proxy (or `stop`, if there is none), `stop` looking at the proxy, which leaves the choice of tests to chance, or
    `ignore`. The gauge is an addition to the paper.

    A world without proxies has no inner loop: what is evaluated is evaluated wholly. With no `slots` nothing is tested.
    Metrics: `alignment`, `proxy` (the number of the one in use, from 0; -1: none), `tests` (that ran), `guarded` and
    `launched` (how many so far), `true` (value of the launched model).
    """

    children: Children = 8
    build: Share = 0.5
    best: Count = 5
    slots: Whole = 2
    delay: Whole = 2
    guard: Nonnegative = 0.02
    window: Annotated[int, Field(ge=3)] = 12
    enough: Annotated[int, Field(ge=3)] = 6
    aligned: Annotated[float, Field(ge=-1, le=1)] = 0.2
    drop: str = "switch"
    launched: list[int] = field(default_factory=lambda: [0], init=False)
    running: list[list[int]] = field(
        default_factory=list, init=False
    )  # uid, stage, step of the result, asked for or not
    ended: list[list[Any]] = field(default_factory=list, init=False)  # uid, why: launched, no gain, guard, failed
    place: int = field(default=0, init=False)  # of the proxy in use; -1: none
    since: int = field(default=0, init=False)  # of `ended`: those that the gauge looks at

    def setup(self, role: Role) -> None:
        """Stages that make up all of the value: `UserError` otherwise."""
        task = programs_of(role)
        if task.world.proxies and {n for stage in task.world.stages for n in stage} != {*task.instances("train")}:
            raise UserError(
                f"the stages of {task.name} are not all of its instances, so its value would never be whole"
            )

    def __call__(self, s: Step) -> Iterator[list[Request]]:
        """One round of requests."""
        archive, task = archive_of(s.role), programs_of(s.role)
        problem = task.draw("train", s.rng("problem"))
        if not archive.history:
            yield [Request(problem, 1)]
            return
        archive.pool()
        history, world = archive.history, task.world
        self._settle(history, world.stages, s.t)
        self._gauge(history, world.proxies, s)
        self._start(history, world.proxies, s)
        requests = []
        for i in range(self.children):
            rng = s.rng("parent", i)
            good = self._known(history, world.proxies)[: self.best]
            parent = history[self.launched[-1]]
            if good and rng.random() < self.build:
                parent = good[int(rng.integers(len(good)))]
            requests.append(Request(problem, 1, uses=(str(parent.uid),)))
        base, name = history[self.launched[-1]], self.proxy(world.proxies)
        if name and PROXY + name not in base.evaluation.metrics:
            (number,) = identifiers(1, s.role.seed, *s.path, s.round, "base", name)
            requests.append(again(base, problem, [name], number))
        tests = 0
        for test in self.running:
            uid, stage, due, asked = test
            if due <= s.t and not asked:
                (number,) = identifiers(1, s.role.seed, *s.path, s.round, "test", uid, stage)
                requests.append(again(history[uid], problem, world.stages[stage], number))
                test[3] = 1
                tests += 1
        s.log("tests", tests)
        s.log("proxy", self.place)
        s.log("guarded", sum(why in ("guard", "failed") for _, why in self.ended))
        s.log("launched", len(self.launched) - 1)
        s.log("true", history[self.launched[-1]].value)
        yield requests

    def proxy(self, proxies: Sequence[str]) -> str:
        """The name of the proxy that new candidates are evaluated on; empty in a world without."""
        return proxies[max(self.place, 0)] if proxies else ""

    def _known(self, history: Sequence[Candidate], proxies: Sequence[str]) -> list[Candidate]:
        """Valid candidates that the proxy in use was measured of, the best by it first."""
        if not proxies:
            return sorted((c for c in history if c.valid), key=lambda c: c.merit, reverse=True)
        name = PROXY + self.proxy(proxies)
        found = [c for c in history if c.valid and name in c.evaluation.metrics]
        return sorted(found, key=lambda c: (-c.evaluation.metrics[name], c.uid))

    def _settle(self, history: Sequence[Candidate], stages: Sequence[Sequence[str]], t: int) -> None:
        """What follows from the results that are there."""
        going = []
        for uid, stage, due, asked in self.running:
            if not asked:
                going.append([uid, stage, due, asked])
                continue
            c, base = history[uid], history[self.launched[-1]]
            if c.valid and not {INSTANCE + name for name in stages[stage]} <= {*c.evaluation.metrics}:
                going.append([uid, stage, due, 0])  # the evaluation was lost
            elif not c.valid:
                self.ended.append([uid, "failed"])
            elif _on(c, base, c) < _on(base, c, base) - self.guard:
                self.ended.append([uid, "guard"])
            elif stage + 1 < len(stages):
                going.append([uid, stage + 1, t + self.delay, 0])
            elif c.value > base.value:
                self.ended.append([uid, "launched"])
                self.launched.append(uid)
            else:
                self.ended.append([uid, "no gain"])
        self.running = going

    def _start(self, history: Sequence[Candidate], proxies: Sequence[str], s: Step) -> None:
        """Tests of the best by the proxy that have not been tested, in the free slots."""
        if not proxies:
            return
        tested = {uid for uid, *_ in self.running} | {uid for uid, _ in self.ended}
        name = PROXY + self.proxy(proxies)
        base = history[self.launched[-1]].evaluation.metrics.get(name, float("-inf"))
        found = [c for c in self._known(history, proxies) if c.uid not in tested and c.parents]
        if self.place < 0:
            found = [found[i] for i in s.rng("chosen").permutation(len(found)).tolist()]
        else:
            found = [c for c in found if c.evaluation.metrics[name] > base]
        for c in found[: max(0, self.slots - len(self.running))]:
            self.running.append([c.uid, 0, s.t + self.delay, 0])

    def _gauge(self, history: Sequence[Candidate], proxies: Sequence[str], s: Step) -> None:
        """The alignment, and what follows where it is lost."""
        if not proxies:
            return
        name, least = PROXY + self.proxy(proxies), self.aligned
        whole = [history[uid] for uid, _ in self.ended[self.since :]]
        pairs = [
            (c.evaluation.metrics[name], c.value)
            for c in whole
            if c.valid and c.evaluation.complete and name in c.evaluation.metrics
        ][-self.window :]
        rho = alignment(pairs)
        if rho is None:
            return
        s.log("alignment", rho)
        if self.drop == "ignore" or self.place < 0 or len(pairs) < self.enough or rho >= least:
            return
        self.since = len(self.ended)
        more = self.drop == "switch" and self.place + 1 < len(proxies)
        self.place = self.place + 1 if more else -1

    def check(self, system: object) -> None:
        """A known `drop`."""
        if self.drop not in DROPS:
            raise unknown("drop", self.drop, DROPS, f"propose.drop is {', '.join(DROPS)}")

    def state_dict(self) -> dict[str, Any]:
        """What is launched and tested, and the proxy."""
        return {
            "launched": list(self.launched), "running": [list(test) for test in self.running],
            "ended": [list(end) for end in self.ended], "place": self.place, "since": self.since,
        }  # fmt: skip

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go back to a saved state."""
        self.launched, self.running = list(state["launched"]), [list(test) for test in state["running"]]
        self.ended = [list(end) for end in state["ended"]]
        self.place, self.since = state["place"], state["since"]


def alignment(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Spearman's rank correlation; None for less than three pairs, or where one side does not vary."""
    from scipy.stats import spearmanr

    if len(pairs) < 3 or any(len({pair[i] for pair in pairs}) < 2 for i in (0, 1)):
        return None
    return float(spearmanr(*np.array(pairs).T).statistic)


def _on(whose: Candidate, one: Candidate, other: Candidate) -> float:
    """A candidate's mean over the instances that both have been evaluated on."""
    both = {n for n in one.evaluation.metrics if n.startswith(INSTANCE)} & {*other.evaluation.metrics}
    return float(np.mean([whose.evaluation.metrics[name] for name in sorted(both)]))


def highest_proxy(history: Sequence[Candidate]) -> Candidate | None:
    """The best by the first proxy that anybody has a value of, as if that were what counts; None if nobody has."""
    names = sorted({n for c in history for n in c.evaluation.metrics if n.startswith(PROXY)}, reverse=True)
    found = [c for c in history if c.valid and names and names[0] in c.evaluation.metrics]
    return max(found, key=lambda c: (c.evaluation.metrics[names[0]], -c.uid)) if found else None


def loops_of(role: Role) -> TwoLoops:
    """The proposer of a role. `UserError` if it is another one."""
    for part in role.parts.values():
        if isinstance(part, TwoLoops):
            return part
    raise UserError("OnProxy needs to know which proxy is in use; put evolvent.search.launches:TwoLoops at propose")


@dataclass
class OnProxy:
    """Around a roll-out: new candidates are evaluated on the proxy in use; with a model each is asked for in one of
    the `personas`, which look at optimisation, architecture and rewards, and reads the journal: the last `recent`
    candidates with hypothesis, edit, proxy and what the outer loop found, failures included; 0 leaves it out.

    prompts  folder with a `journal.md` of your own
    """

    inner: Any
    personas: tuple[str, ...] = PERSONAS
    recent: Whole = 20
    prompts: str = ""

    def __call__(self, requests: Sequence[Request], s: Step) -> list[Group]:
        """The groups of the inner part."""
        loops, world = loops_of(s.role), programs_of(s.role).world
        drawn = [self.personas[int(s.rng("persona", i).integers(len(self.personas)))] for i in range(len(requests))]
        if not isinstance(s.role.policy, AbsentPolicy):
            history = archive_of(s.role).history
            requests = [
                replace(r, memory=(*r.memory, self._told(p, history, loops))) if r.uses and not r.resume else r
                for r, p in zip(requests, drawn, strict=True)
            ]
        groups = self.inner(requests, s)
        for request, group, persona in zip(requests, groups, drawn, strict=True):
            for t in group.valid if request.uses and not request.resume else ():
                if world.proxies:
                    t.info["instances"] = (loops.proxy(world.proxies),)
                notes = signed(t)
                t.info["notes"] = {**notes, "persona": persona} if "hypothesis" in notes else notes
        return groups

    def _told(self, persona: str, history: Sequence[Candidate], loops: TwoLoops) -> Message:
        ends = dict(loops.ended)
        latest = [c for c in history if c.parents][-self.recent :] if self.recent else []
        rows = [(c, shown(change(history[c.parents[0]].text, c.text)), ends.get(c.uid, "")) for c in latest]
        base = history[loops.launched[-1]]
        return Message("system", Prompts(self.prompts).render("journal", persona=persona, rows=rows, base=base))

    def check(self, system: object) -> None:
        """Somebody to ask, and a prompt that can be read."""
        if not self.personas:
            raise UserError("rollout.on_proxy.personas must name at least one")
        Prompts(self.prompts).check(("journal",))
