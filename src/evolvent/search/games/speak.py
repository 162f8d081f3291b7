"""What a model is asked beside the versions themselves: plans before, reflection afterwards."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evolvent.core.errors import UserError
from evolvent.core.records import Trajectory
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.core.written import read_written
from evolvent.search.asking import Prompts, ask_once
from evolvent.search.games.memory import RULES, Memory, overlap
from evolvent.search.games.plan import Plan, kept, plan_of
from evolvent.search.games.planner import forbidden, words_of
from evolvent.tasks.worlds.grid_games.differ import Mechanic, mechanics
from evolvent.tasks.worlds.grid_games.language import GameError
from evolvent.tasks.worlds.grid_games.world import game

OBJECT = re.compile(r"\{.*\}", re.DOTALL)


@dataclass
class Planning:
    """Plans and reflections of a model.

    shown    entries of the archive that a planner reads of each kind: relevant, underexplored, overused, forbidden
    prompts  folder with `games/plan.md` and `games/reflect.md` of your own
    """

    shown: int = 6
    prompts: str = ""

    def plan(
        self,
        lineage: str,
        parent: str,
        known: set[Mechanic],
        memory: Memory,
        last: Plan | None,
        adds: int,
        s: Step,
    ) -> Plan:
        """The plan that a model makes for a version; what it says nothing of is kept. An answer that is no plan is
        asked for once more, with what was wrong; then there is none."""
        before, error = game(parent), ""
        words = words_of(before)
        entries = {e.name: e for e in memory.entries()}
        barred, groups = forbidden(known, memory, lineage), memory.groups()
        near = sorted((e for n, e in entries.items() if n not in barred), key=lambda e: -overlap(e.words, words))
        shown = {
            "relevant": near[: self.shown],
            "underexplored": [entries[n] for n in groups["underexplored"] if n not in barred][: self.shown],
            "overused": [entries[n] for n in groups["overused"]][: self.shown],
            "forbidden": [entries[n] for n in sorted(barred) if n in entries][: self.shown],
        }
        for attempt in range(2):
            text = Prompts(self.prompts).render(
                "games/plan", game=parent, mechanics=[str(m) for m in mechanics(before)], shown=shown, rules=RULES,
                lessons=[x for _, x in memory.retrieve(lineage, words)], run=memory.run, last=last, adds=adds,
                error=error,
            )  # fmt: skip
            [t] = ask_once([text], s.role.task.draw("train", s.rng("problem")), s, f"plan-{s.round}-{attempt}")
            try:
                if t.error is not None:
                    break
                return kept(plan_of({**object_of(t.completion), "planned": True}), before)
            except GameError as reason:
                error = str(reason)
        return Plan(planned=False)

    def reflect(self, t: Trajectory, number: int, stop: bool, s: Step) -> tuple[bool, dict[str, str]]:
        """Whether to stop, and lessons by the name of what was planned; where a model says nothing, `stop` and none."""
        text = Prompts(self.prompts).render(
            "games/reflect", plan=t.problem.data["plan"], realised=t.info["realised"], signals=t.info["signals"],
            reward=t.rewards["value"].value, issues=t.info["verdict"].issues, difference=t.info["difference"],
        )  # fmt: skip
        [answer] = ask_once([text], t.problem, s, f"reflect-{number}")
        try:
            said = {} if answer.error is not None else object_of(answer.completion)
        except GameError:
            said = {}
        lessons = said.get("lessons", {})
        texts = {str(k): str(v) for k, v in lessons.items()} if isinstance(lessons, dict) else {}
        verdict = str(said.get("verdict", "")).lower()
        return {"stop": True, "continue": False}.get(verdict, stop), texts

    def setup(self, role: Role) -> None:
        """Prompts that can be read, and a number in range: `UserError`."""
        if self.shown < 0:
            raise UserError(f"propose.speak.shown must be at least 0, got {self.shown}")
        Prompts(self.prompts).check(("games/plan", "games/reflect"))


def object_of(answer: str) -> Mapping[str, Any]:
    """The JSON object in an answer. `GameError` where there is none."""
    match = OBJECT.search(answer)
    try:
        made = read_written(match[0]) if match else None
    except ValueError as reason:
        raise GameError(f"the answer holds no JSON object: {reason}") from None
    if not isinstance(made, dict):
        raise GameError("the answer holds no JSON object")
    return made
