"""Between attempts: what the last ones were, in fields, and what the next one is told; by a model, or by rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evolvent.core.records import Message, Problem, Request, Trajectory
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.engine.absent import AbsentPolicy
from evolvent.search.asking import Prompts, ask_once
from evolvent.search.attempts.strategy import RULES, Toolbox
from evolvent.search.attempts.summary import Summary, by_rule, with_words
from evolvent.search.attempts.work import Scripted, bugs_of

FOLDER = "attempts/"  # of the prompts
WORDS = {"revision": 200, "recombination": 250, "refinement": 200}  # the longest strategy


@dataclass
class Remember:
    """Summaries and strategies.

    words    whether a model summarises attempts; without, only what can be computed is in the fields
    prompts  folder with prompts of your own, in `attempts/`
    """

    words: bool = True
    prompts: str = ""

    def setup(self, role: Role) -> None:
        """Prompts that can be read."""
        Prompts(self.prompts).check([FOLDER + name for name in ("summary", "distilled", *WORDS)])

    def bug(self, s: Step) -> Problem:
        """The bug of a step: one after the other, and again from the first one."""
        task = bugs_of(s.role)
        return task.problem(task.names[s.t % len(task.names)])

    def request(self, problem: Problem, strategy: str) -> Request:
        """One attempt, with a strategy if there is one."""
        return Request(problem, 1, memory=(Message("system", strategy),) if strategy else ())

    def summaries(self, made: Sequence[tuple[Trajectory, str, str]], s: Step) -> list[Summary]:
        """What attempts (trajectory, operator, strategy) have come to."""
        words = self.words and not isinstance(s.role.policy, AbsentPolicy)
        task = bugs_of(s.role)
        found: list[Summary] = []
        for t, operator, prefix in made:
            source, before = task.source(t.problem), task.before(t.problem.data["bug"])
            found.append(by_rule(t.info["made"], source, t.info["visible"], before, operator, prefix))
        if not words or not made:
            return found
        texts = [
            Prompts(self.prompts).render(f"{FOLDER}summary", summary=x, trace=t.info["made"].trace)
            for x, (t, _, _) in zip(found, made, strict=True)
        ]
        answers = ask_once(texts, made[0][0].problem, s, f"summary-{s.round}")
        return [x if a.error else with_words(x, a.completion) for x, a in zip(found, answers, strict=True)]

    def strategies(self, operator: str, pool: Sequence[Summary], count: int, problem: Problem, s: Step) -> list[str]:
        """So many strategies by one operator; empty where there is nothing to go by."""
        if isinstance(s.role.policy, AbsentPolicy):
            made = [RULES[operator](pool, toolbox(s.role), s.rng("strategy", i)) for i in range(count)]
            return ["" if strategy is None else strategy.text() for strategy in made]
        shown = readable(operator, pool)
        if not shown:
            return [""] * count
        text = Prompts(self.prompts).render(FOLDER + operator, pool=pool, shown=shown)
        if operator == "distilled":  # read by the attempt itself
            return [text] * count
        answers = ask_once([text] * count, problem, s, f"{operator}-{s.round}")
        return ["" if a.error else " ".join(a.completion.split()[: WORDS[operator]]) for a in answers]


def readable(operator: str, pool: Sequence[Summary]) -> list[Summary]:
    """Whom a model is shown by an operator: what the rule of the same name reads; nobody if it has nothing to go by."""
    match operator:
        case "revision":
            return [s for s in pool if not s.solved][-1:]
        case "recombination":
            return list(pool[-2:]) if len(pool) > 1 else []
        case "refinement":
            return [max(pool, key=lambda s: (s.passed, s.left))] if pool else []
        case "distilled":
            return list(pool)
    return []


def toolbox(role: Role) -> Toolbox:
    """What the scripted agent draws from."""
    return next(part for part in role.parts.values() if isinstance(part, Scripted)).box
