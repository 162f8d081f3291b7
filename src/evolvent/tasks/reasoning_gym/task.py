"""The `rg/...` tasks: a data set of reasoning-gym under our splits, wordings and verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from evolvent.core.errors import UserError, VerifierError
from evolvent.core.records import Problem
from evolvent.tasks.base import Demo, Piece, Score, Split, check_levels, key_of, one_user, split_of
from evolvent.tasks.extract import final_answer
from evolvent.tasks.reasoning_gym import verify
from evolvent.tasks.reasoning_gym.compact import COMPACT, LONGEST_PROMPT, WORDINGS
from evolvent.tasks.reasoning_gym.identity import identity
from evolvent.tasks.reasoning_gym.source import Source, check_name, levels_of

TRIES = 400  # 0.9**400 is 5e-19: a split that is not hit by then has no problem
COMPACT_TRIES = 4000  # the same, for levels that keep one item in nine
ASKED = "\n\nEnd with your final answer, and nothing else, between <answer> and </answer>."
PLAIN_ROOM = 2048  # characters for a solution in plain wording, beside the answer itself
PROBES = 4  # items that are made to see how long answers get

Item = Mapping[str, Any]  # metadata of an item, with its `question` and `answer`


class Manner(Protocol):
    """How problems of one wording are asked and judged."""

    levels: tuple[str, ...]
    tries: int  # items that are made to find a problem of a split

    def source(self, level: str) -> Source: ...
    def prompt(self, item: Item, level: str) -> str | None: ...
    def extract(self, completion: str, level: str) -> str | None: ...
    def judge(self, item: Item, answer: str) -> bool: ...
    def partial(self, item: Item, answer: str) -> float: ...
    def gold(self, item: Item, level: str) -> str | None: ...
    def room(self, level: str, source: Source) -> int: ...


class Compact:
    """The short wording; see `compact`."""

    tries = COMPACT_TRIES

    def __init__(self, name: str) -> None:
        if name not in WORDINGS:
            raise UserError(
                f"rg/{name} has no compact wording; take one of {', '.join(COMPACT)}, or a model that reads plain text"
            )
        self.name, self.words = name, WORDINGS[name]
        self.shapes = self.words.shapes
        self.levels = tuple(self.shapes)

    def source(self, level: str) -> Source:
        return Source.of_settings(self.name, self.shapes[level].settings)

    def prompt(self, item: Item, level: str) -> str | None:
        shape = self.shapes[level]
        if shape.fits and not shape.fits(item):
            return None
        prompt = self.words.prompt(item) + (":" if shape.chain else "=")
        return prompt if len(prompt) <= LONGEST_PROMPT else None

    def extract(self, completion: str, level: str) -> str | None:
        answer = final_answer(completion)
        if answer is not None and self.shapes[level].chain:
            answer = answer.rsplit("=", 1)[1] if "=" in answer else None
        return answer or None

    def judge(self, item: Item, answer: str) -> bool:
        return self.words.judge(item, answer) if self.words.judge else answer == self.words.answer(item)

    def partial(self, item: Item, answer: str) -> float:
        return 0.0

    def gold(self, item: Item, level: str) -> str | None:
        answer = self.words.answer(item)
        return f"{self.words.chain(item)}={answer}" if self.shapes[level].chain and self.words.chain else answer

    def room(self, level: str, source: Source) -> int:
        return self.shapes[level].room + 2


class Plain:
    """reasoning-gym's own question, and one sentence on where to put the answer."""

    tries = TRIES

    def __init__(self, name: str) -> None:
        self.name, self.levels = name, levels_of(name)
        self.verifier: Any = None

    def source(self, level: str) -> Source:
        source = Source.of_level(self.name, level)
        self.verifier = self.verifier or source.dataset
        return source

    def prompt(self, item: Item, level: str) -> str | None:
        return item["question"].strip() + ASKED if verify.usable(self.name, item) else None

    def extract(self, completion: str, level: str) -> str | None:
        return final_answer(completion)

    def judge(self, item: Item, answer: str) -> bool:
        return verify.is_right(self.name, item, answer)

    def partial(self, item: Item, answer: str) -> float:
        return verify.part_credit(self.name, self.verifier, item, answer)

    def gold(self, item: Item, level: str) -> str | None:
        answer = verify.written(self.name, item)
        return None if answer is None else f"<answer>{answer}</answer>"

    def room(self, level: str, source: Source) -> int:
        answers = [verify.written(self.name, item) or item["answer"] or "" for item in source.first(PROBES)]
        return PLAIN_ROOM + 2 * max(map(len, answers), default=0)


class ReasoningGym:
    """A data set of reasoning-gym as a task.

    dataset  its name in reasoning-gym; `UserError` for one that is unknown or refused
    levels   compact: `1` to `4` and most often `5`; plain: `default` (reasoning-gym's settings) and `1`, `2`, ...
             (its curriculum)
    wording  `compact` (for the seed models, 12 data sets) or `plain` (for instructed models)
    """

    def __init__(self, dataset: str, levels: tuple[str, ...] = (), wording: str = "compact") -> None:
        check_name(dataset)
        self.dataset, self.wording, self.family = dataset, wording, f"rg/{dataset}"
        self.manner: Manner = Compact(dataset) if wording == "compact" else Plain(dataset)
        known = self.manner.levels

        def parse(level: str) -> None:
            if level not in known:
                raise ValueError

        self.categories = check_levels(self.family, levels or known[:1], parse, ", ".join(known))
        self.name = f"{self.family}:{','.join(self.categories)}"
        self.sources = {level: self.manner.source(level) for level in self.categories}

    @cached_property
    def max_tokens(self) -> int:
        """Characters that a solution may have; the answers of a few items tell, in plain wording."""
        return max(self.manner.room(level, source) for level, source in self.sources.items())

    def draw(self, split: Split, rng: np.random.Generator, category: str | None = None) -> Problem:
        """A random problem of the split.

        Items that reasoning-gym fails to make, or that cannot be asked, are passed over. `UserError` if a
        split has no problem, `VerifierError` if no item could be made at all.
        """
        category = category or self.categories[int(rng.integers(len(self.categories)))]
        source, tries, failure = self.sources[category], self.manner.tries, None
        seen: set[str] = set()
        for _ in range(tries):
            try:
                item = source.item(int(rng.integers(source.seeds)))
            except Exception as reason:  # whatever the generator raises, another item may be fine
                failure = reason
                continue
            key = key_of(self.family, identity(self.dataset, item))
            seen.add(key)
            if split_of(key) == split and (prompt := self.manner.prompt(item, category)) is not None:
                return Problem(key, one_user(prompt), {"item": item, "level": category}, category, self.name)
        if failure is not None and not seen:
            raise VerifierError(f"reasoning-gym failed {tries} times to make an item of {self.name}: {failure!r}")
        raise UserError(
            f"task `{self.name}` has no {split} problem at level {category} ({tries} draws, {len(seen)} distinct); "
            "take another level"
        )

    def score(self, problem: Problem, completion: str) -> Score:
        """1 if the final answer is right, else 0. Shaping `partial`: reasoning-gym's part credit, where it is
        sound.

        In a compact chain the answer is what follows the last `=`.
        """
        item, right, partial = problem.data["item"], False, 0.0
        answer = self.manner.extract(completion, problem.data["level"])
        try:
            if answer is not None:
                right = self.manner.judge(item, answer)
                partial = 1.0 if right else self.manner.partial(item, answer)
        except Exception as reason:
            raise VerifierError(f"the verifier of {self.name} failed: {reason!r}") from reason
        return Score(float(right), answer, {"partial": partial} if self.wording == "plain" else {})

    def gold(self, problem: Problem) -> Demo | None:
        """The answer that reasoning-gym gives, after a chain where one is asked for; None where it gives
        none."""
        text = self.manner.gold(problem.data["item"], problem.data["level"])
        return None if text is None else [Piece(text)]
