"""With a model: it writes the SQL of all agents, and new agents, as whole texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from evolvent.core.errors import VerifierError
from evolvent.core.records import Group, Request
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.engine.absent import AbsentPolicy
from evolvent.rollout.sample import Sample
from evolvent.search.asking import Prompts, ask
from evolvent.search.write import Write
from evolvent.tasks.worlds.sql.world import Written, sql_of

SQL = "contests/sql"
BLOCK = re.compile(r"```(?:sql|sqlite)?[ \t]*\n(.*?)```", re.DOTALL | re.IGNORECASE)


@dataclass
class WriteAgents(Write):
    """Roll out: a model writes new agents, as `Write` does, by what a request's memory says of ratings and failures;
    and it is who writes the SQL of all agents, with `answer`'s settings.
    """

    answer: Any = Sample
    asks_model: ClassVar = True
    role: Role | None = field(default=None, init=False)
    step: Step | None = field(default=None, init=False)
    asked: int = field(default=0, init=False)  # times that queries were asked for in this step

    def setup(self, role: Role) -> None:
        """The role's model writes the SQL from now on, if there is one."""
        task = sql_of(role.task)
        Prompts(self.prompts).check([SQL])
        if not isinstance(role.policy, AbsentPolicy):
            self.role, task.writer = role, self.queries

    def __call__(self, requests: Sequence[Request], s: Step) -> list[Group]:
        """As `Write`; the queries of this step are asked for in its name."""
        self.step, self.asked = s, 0
        return super().__call__(requests, s)

    def queries(self, asked: Sequence[tuple[str, str, str]]) -> list[Written]:
        """A query for each question, report and instructions; an answer without a block of SQL has none.
        `VerifierError` where a request failed."""
        assert self.role is not None
        s = self.step or Step(0, self.role, [self.role.policy_actor()])
        self.asked += 1
        wording = Prompts(self.prompts)
        texts = [wording.render(SQL, question=q, report=report, instructions=told) for q, report, told in asked]
        problem = self.role.task.draw("train", s.rng("problem"))
        found: list[Written] = []
        for t in ask(texts, problem, s, f"sql-{s.round}-{self.asked}", self.answer):
            blocks = BLOCK.findall(t.completion)
            if t.error is not None:
                raise VerifierError(f"the model did not answer: {t.error}")
            found.append((blocks[-1].strip(), "") if blocks else (None, "the answer has no block of SQL"))
        return found
