"""The closed loop of each category: observe a sample, propose a strategy, evaluate it, learn from that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from evolvent.core.errors import UserError
from evolvent.core.records import Group, Request
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.engine.absent import AbsentPolicy
from evolvent.search.archive import archive_of
from evolvent.search.asking import Prompts, ask
from evolvent.search.candidate import Candidate, ranked
from evolvent.search.curation.pools import (
    CATEGORY,
    LOST,
    Experience,
    Strategy,
    assembled,
    best,
    diagnosed,
    generation,
    strategies,
)
from evolvent.search.loop import programs_of
from evolvent.search.parents import ParentRule, Pool
from evolvent.tasks.evaluation import INSTANCE, Evaluation
from evolvent.tasks.worlds.curation.corpus import sample
from evolvent.tasks.worlds.curation.issues import KINDS, observe
from evolvent.tasks.worlds.curation.judge import read_comments
from evolvent.tasks.worlds.curation.texts import CATEGORIES

WORLD = "program:data-curation"


def among_best(pool: Pool, rng: np.random.Generator, *, size: int = 3) -> Candidate:
    """Any of the `size` best."""
    order = ranked(pool.members)[:size]
    return order[int(rng.integers(len(order)))]


@dataclass
class Strategies:
    """Propose: one strategy a step, for the category whose turn it is, until each has had its `generations`; after
    that nothing is proposed (DataEvolve, arXiv 2603.14420).

    A step observes `observed` raw documents, another sample each time, and takes what is wrong with them into the
    experience pool of the category, without repeats; so it does with what the judge found left or lost, if `learn`.
    The parent is one of the category's strategies by `parent` (the pool's values are scores of this category). It is
    evaluated within a program that has the best strategy of every other category. A model observes, where there is
    one, and statistics where there is none. `samples`: each generation is evaluated on a sample of its own; without,
    on all documents.

    Metrics: `issues` (in the pool of the category), `fresh` (new ones of this step), `parent_score`, `progress` (1 if
    the new strategy has a higher score than its parent), `generation`.
    """

    generations: int = 30
    observed: int = 8
    learn: bool = True
    parent: ParentRule = among_best
    others: int = 2
    samples: bool = True
    prompts: str = ""
    experience: dict[str, Experience] = field(default_factory=dict, init=False)

    def setup(self, role: Role) -> None:
        """The world of data curation, numbers that make sense, a prompt that can be read."""
        if programs_of(role).world.name != WORLD:
            raise UserError(f"this recipe cleans documents of categories; give --task {WORLD}, not {role.task.name}")
        if min(self.generations, self.observed, self.others) < 0:
            raise UserError("propose.generations, .observed and .others must be at least 0")
        Prompts(self.prompts).check(["curation/observe"])
        self.experience = {category: Experience() for category in CATEGORIES}

    def __call__(self, s: Step) -> Iterator[list[Request]]:
        """One round of one request, or of none."""
        history, problem = archive_of(s.role).history, s.role.task.draw("train", s.rng("problem"))
        if not history:
            yield [Request(problem, 1)]
            return
        pool = archive_of(s.role).pool()  # an error where the seed program is not valid
        turn = min(CATEGORIES, key=lambda c: generation(history, c))
        number = generation(history, turn) + 1
        if number > self.generations:
            yield []
            return
        fresh = sum(self.experience[turn].add(*issue) for issue in self._observe(turn, number, s))
        found = {category: strategies(history, category) for category in CATEGORIES}
        parent = self._parent(found[turn], pool, s.rng("parent"))
        chosen = {category: best(rows) for category, rows in found.items()} | {turn: parent}
        shown = [c for c in ranked(r.candidate for r in _by_score(found[turn])) if c.uid != parent.candidate.uid]
        data = {
            CATEGORY: turn,
            "generation": number,
            "instance": f"train-{turn}" + f":{2 * number}" * self.samples,
            "base": assembled(chosen),
            "scores": {c: chosen[c].score for c in CATEGORIES},
            "issues": self.experience[turn].data(),
            "diagnosis": diagnosed(parent.candidate, turn),
        }
        uses = tuple(str(c.uid) for c in (parent.candidate, *shown[: self.others]))
        s.log("issues", len(self.experience[turn].issues))
        s.log("fresh", fresh)
        s.log("generation", number)
        s.log("parent_score", parent.score)
        yield [Request(replace(problem, data={**problem.data, **data}), 1, uses=uses)]
        for t in (t for g in s.fresh for t in g.valid):
            evaluation: Evaluation = t.info["evaluation"]
            score = evaluation.metrics.get(f"{INSTANCE}train-{turn}", -np.inf)
            s.log("progress", evaluation.value is not None and score > parent.score)
            if self.learn and evaluation.value is not None:
                for side, what, _, example in read_comments(evaluation.feedback):
                    self.experience[turn].add(LOST + what if side == "lost" else what, example)

    def _parent(self, found: Sequence[Strategy], pool: Pool, rng: np.random.Generator) -> Strategy:
        """By the parent rule, with scores of this category for values."""
        members = [_valued(one.candidate, one.score) for one in found]
        children = np.array([sum(c.parents[:1] == (m.uid,) for c in pool.history) for m in members], float)
        drawn = self.parent(Pool(members, children, members[0], members[-1], pool.history), rng)
        return next(one for one in found if one.candidate.uid == drawn.uid)

    def _observe(self, category: str, number: int, s: Step) -> list[tuple[str, str]]:
        """Issues of a fresh sample: (kind, example)."""
        if not self.observed:
            return []
        texts = sample(category, "train", 2 * number + 1, self.observed)
        if isinstance(s.role.policy, AbsentPolicy):
            return observe(texts)
        known = self.experience[category].issues
        prompt = Prompts(self.prompts).render(
            "curation/observe", category=category, texts=texts, known=known, kinds=KINDS
        )
        [answer] = ask([prompt], s.role.task.draw("train", s.rng("problem")), s, "observe")
        return [] if answer.error else read_issues(answer.completion)

    def state_dict(self) -> dict[str, Any]:
        """The experience pools."""
        return {"experience": {category: pool.data() for category, pool in self.experience.items()}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go back to a saved state."""
        self.experience = {category: Experience.of(data) for category, data in state["experience"].items()}


def read_issues(text: str) -> list[tuple[str, str]]:
    """The issues of an answer, one a line: `- kind: example`."""
    found = []
    for line in text.split("\n"):
        kind, colon, example = line.strip().partition(":")
        if kind[:2] in ("- ", "* ") and colon and example.strip():
            found.append((kind[2:].strip().lower(), example.strip()))
    return found


def _by_score(found: Sequence[Strategy]) -> list[Strategy]:
    return [Strategy(_valued(one.candidate, one.score), one.generation, one.score) for one in found]


def _valued(candidate: Candidate, score: float) -> Candidate:
    return replace(candidate, evaluation=replace(candidate.evaluation, value=score))


@dataclass
class OneCategory:
    """Around a judge: a new strategy is evaluated on the sample of its own category only; the scores of the other
    categories are those of the strategies that it stands beside."""

    inner: Any

    def __call__(self, groups: Sequence[Group], s: Step) -> None:
        """Evaluate what the round has made."""
        for t in (t for g in groups for t in g.valid if CATEGORY in t.problem.data):
            data = t.problem.data
            known = {f"{INSTANCE}train-{c}": x for c, x in data["scores"].items() if c != data[CATEGORY]}
            t.info |= {"instances": (data["instance"],), "earlier": Evaluation(sum(known.values()) / len(known), known)}
            own = {name: data[name] for name in (CATEGORY, "generation", "instance")}
            t.info["notes"] = {**t.info.get("notes", {}), **own}
        self.inner(groups, s)
