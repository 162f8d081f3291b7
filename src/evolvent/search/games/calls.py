"""Generation calls: each makes one version of one lineage, in up to three iterations that are planned and reflected on.

arXiv 2604.19926, section 3: planner -> stages -> validate and repair -> evaluate -> reflect -> go on or stop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from evolvent.core.errors import UserError, unknown
from evolvent.core.records import Problem, Request, Trajectory
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.engine.absent import AbsentPolicy
from evolvent.search.games.judge import record
from evolvent.search.games.memory import Memory, Tried
from evolvent.search.games.plan import Entry, Plan
from evolvent.search.games.planner import planned, replanned
from evolvent.search.games.speak import Planning
from evolvent.search.games.versions import games_of, versions_of
from evolvent.tasks.base import key_of, one_user
from evolvent.tasks.worlds.grid_games.differ import Mechanic, mechanics, parts
from evolvent.tasks.worlds.grid_games.language import Game, GameError
from evolvent.tasks.worlds.grid_games.world import game

SAVED = ("best", "last")


@dataclass
class Calls:
    """Propose: a step is one call. The lineage with the fewest versions has its turn, the first of equals.

    A call makes up to `iterations` versions, the later ones refinements of the one with the highest reward so far. It
    stops when the reward reaches `enough`, or the reflecting model says so. `saved`, the `best` or the `last`, becomes
    the lineage's next version; the report saves the last. What gets `success` is written back to the archive.

    window       its parent is the one with the highest reward of so many latest versions; 1: always the latest
    plan         whether a plan comes before the game; without, whoever writes adds what it likes
    adds         entries of the archive in a plan
    change       probability that a rule is to change, where no model plans
    temperature  of the draw of entries, where no model plans
    memory       the three layers
    speak        what a model is asked beside the versions

    Metrics: `iterations`; of the version that is saved `reward`, `judged` (the judge's score), `realised`,
    `structural`, `novel`, `cosmetic`, `passed` (the runtime test); `repairs` of the call; `again`, the share of
    mechanics in its plans that this lineage has planned before and never realised; `lessons` of all lineages, `found`
    (archive).
    """

    iterations: int = 3
    enough: float = 0.8
    saved: str = "best"
    success: float = 0.4
    window: int = 2
    plan: bool = True
    adds: int = 2
    change: float = 0.5
    temperature: float = 0.05
    memory: Any = Memory
    speak: Any = Planning

    def setup(self, role: Role) -> None:
        """A task of grid games, an archive of versions, numbers in range, a known name: `UserError`."""
        games_of(role)
        versions_of(role)
        if self.saved not in SAVED:
            raise unknown("word", self.saved, SAVED, f"propose.saved is {' or '.join(SAVED)}")
        if min(self.iterations, self.adds, self.window) < 1 or not 0 <= self.change <= 1 or not self.temperature > 0:
            raise UserError(
                "propose.iterations, .adds and .window must be at least 1, .change from 0 to 1, .temperature above 0; "
                f"got {self.iterations}, {self.adds}, {self.window}, {self.change} and {self.temperature}"
            )

    def __call__(self, s: Step) -> Iterator[list[Request]]:
        """One round for each iteration."""
        task, archive, memory, speak = games_of(s.role), versions_of(s.role), self.memory, self.speak
        lines = {name: archive.lineage(task, name) for name in task.names}
        name = min(task.names, key=lambda n: len(lines[n]))
        parent = lines[name][parent_of(archive.rewards(name), self.window)]
        before, known = game(parent), {m for text in lines[name] for m in mechanics_of(text)}
        failed = never_realised(archive.records(name))
        memory.begin()
        made: list[Trajectory] = []
        plan, again, wanted, repairs = Plan(planned=False), 0, 0, 0
        for number in range(self.iterations):
            if self.plan:
                plan = self._plan(name, parent, known, plan, number, speak, s)
                memory.use(e.name for e in plan.add)
                again += sum(e.name in failed for e in plan.add)
                wanted += len(plan.add)
            best = max(made, key=score_of, default=None)
            job = {
                "lineage": name, "generation": len(lines[name]), "iteration": number, "before": parent,
                "base": best.info["program"] if best else parent, "plan": plan.as_dict(),
                "missing": [e for e, share in zip(*planned_of(best), strict=True) if share < 1] if best else [],
                "won": not best or best.info["verdict"].report.won > 0,
                "issues": list(best.info["verdict"].issues) if best else [],
            }  # fmt: skip
            key = key_of("grid-games", [name, len(lines[name]), number, parent])
            yield [Request(Problem(key, one_user(task.world.goal), job, name, task.name), 1)]
            new = [t for g in s.fresh for t in g.valid if "signals" in t.info]
            if not new:
                break  # it was an error
            made += new
            repairs += new[-1].info["repairs"]
            if self._reflect(name, plan, new[-1], number, speak, s):
                break
        if made:
            self._end(made, before, s)
            s.log("again", again / max(1, wanted))
            s.log("repairs", repairs)

    def _plan(self, name: str, parent: str, known: set[Mechanic], plan: Plan, number: int, speak: Any, s: Step) -> Plan:
        memory, rng, before = self.memory, s.rng("plan"), game(parent)
        if not isinstance(s.role.policy, AbsentPolicy):
            return speak.plan(name, parent, known, memory, plan if number else None, self.adds, s)
        if not number:
            return planned(before, known, memory, name, rng, self.adds, self.change, self.temperature)
        last = memory.run[-1] if memory.run else Tried(tuple(e.name for e in plan.add), (0.5,) * len(plan.add), 0.0)
        return replanned(plan, last, before, known, memory, name, rng, self.temperature)

    def _reflect(self, name: str, plan: Plan, t: Trajectory, number: int, speak: Any, s: Step) -> bool:
        """Draw lessons from an iteration; whether the call ends."""
        reward, realised, memory = score_of(t), t.info["realised"], self.memory
        t.info["record"] = record(t)
        names = tuple(e.name for e in plan.add)
        memory.tried(Tried(names, realised.add, reward, t.info["verdict"].issues))
        stop, texts = reward >= self.enough, {}
        if not isinstance(s.role.policy, AbsentPolicy):
            stop, texts = speak.reflect(t, number, stop, s)
        for e, share in zip(plan.add, realised.add, strict=True):
            memory.learn(name, e.name, e.words, reward, share == 0, texts.get(e.name, ""))
        for text, done in zip(plan.change, realised.change, strict=True):
            memory.learn(name, f"change {text}", frozenset(text.split()), reward, not done)
        return stop or number + 1 == self.iterations

    def _end(self, made: list[Trajectory], before: Game, s: Step) -> None:
        """Say which version is saved; what succeeded goes to the archive."""
        t = max(made, key=score_of) if self.saved == "best" else made[-1]
        t.info["saved"] = True
        signals, after = t.info["signals"], t.info["verdict"].game
        if after is not None and signals.runs and score_of(t) >= self.success:
            self.memory.write_back(entries_of(after, before, t.problem.data["lineage"]))
        s.log("iterations", len(made))
        s.log("reward", score_of(t))
        s.log("judged", t.info["score"])
        for metric in ("realised", "structural", "novel", "cosmetic"):
            s.log(metric, getattr(signals, metric))
        s.log("passed", signals.runs)
        s.log("lessons", sum(map(len, self.memory.lessons.values())))
        s.log("found", len(self.memory.found))


def score_of(t: Trajectory) -> float:
    """The reward of a version."""
    return t.rewards["value"].value


def parent_of(rewards: Sequence[float], window: int) -> int:
    """The place in a lineage of the version that the next one is made of: the highest reward of the latest few, the
    later of equals; 0, the seed game, where there is no other."""
    places = range(max(1, len(rewards) + 1 - window), len(rewards) + 1)
    return max(places, key=lambda i: (rewards[i - 1], i), default=0)


def mechanics_of(text: str) -> set[Mechanic]:
    """The mechanics of a version; none of what nobody can read."""
    try:
        return {*mechanics(game(text))}
    except GameError:
        return set()


def planned_of(t: Trajectory) -> tuple[list[str], list[float]]:
    """Names of the entries that a version was to add, and the shares of them that are there."""
    return [e["name"] for e in t.problem.data["plan"]["add"]], list(t.info["realised"].add)


def never_realised(records: list[dict[str, Any]]) -> set[str]:
    """Names of entries that were planned in some iterations of a lineage and realised in none."""
    tried = [pair for r in records for pair in zip(r["planned"], r["realised"], strict=True)]
    return {name for name, _ in tried} - {name for name, share in tried if share > 0}


def entries_of(after: Game, before: Game, lineage: str) -> list[Entry]:
    """The rules of a version that its parent has not, as entries of the archive."""
    had, found = {*mechanics(before)}, []
    for (kind, i), m in parts(after, exact=False):
        if kind != "rules" or m in had:
            continue
        r = after.rules[i]
        used = {n for n in (r.who, r.what, *(v for e in r.effects for v in e[1:])) if n in after.objects}
        objects = {
            n: {"symbol": k.symbol, "colour": k.colour, "is": ["solid"] * k.solid, "place": int(n in (r.who, r.what))}
            for n, k in after.objects.items()
            if n in used and not k.player
        }
        player = next((n for n, k in after.objects.items() if k.player), "")
        data = {
            "on": r.on, "who": "player" if r.who == player else r.who,
            **({"what": "player" if r.what == player else r.what} if r.what else {}),
            "if": [["player" if v == player else v for v in c] for c in r.conditions],
            "do": [["player" if v == player else v for v in e] for e in r.effects],
        }  # fmt: skip
        counters = {n: v for n, v in after.counters.items() if any(n in e for e in (*r.effects, *r.conditions))}
        found.append(Entry(f"found in {lineage}: {m}", "", ("found",), objects, counters, (data,)))
    return found
