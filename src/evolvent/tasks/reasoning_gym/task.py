"""The `rg/...` tasks: a data set of reasoning-gym under our splits, wordings and verdicts."""

from __future__ import annotations

from typing import Any

import numpy as np
from reasoning_gym.factory import DATASETS, create_dataset

from evolvent.core.errors import UserError, unknown
from evolvent.core.records import Problem
from evolvent.tasks.base import Demo, Piece, Score, Split, key_of, one_user, split_of
from evolvent.tasks.extract import final_answer
from evolvent.tasks.reasoning_gym.compact import COMPACT, LONGEST_PROMPT, WORDINGS
from evolvent.tasks.reasoning_gym.identity import identity

SEEDS = 2**62  # items are drawn from seeds below this, so neighbouring seeds do not meet; the key would tell
TRIES = 400  # 0.9**400 is 5e-19: a split that was not hit by then has no problem


class Source:
    """One data set under one configuration; items are drawn by seed from one object, which is cheap."""

    def __init__(self, name: str, settings: dict[str, Any]) -> None:
        self.dataset = create_dataset(name, seed=0, size=SEEDS, **settings)

    def item(self, seed: int) -> dict[str, Any]:
        """The item of a seed: its metadata, with `question` and `answer` among them."""
        item = self.dataset[seed]
        return {**item["metadata"], "question": item["question"], "answer": item["answer"]}


class ReasoningGym:
    """A data set in the short wording that the seed models read. Levels are `1` to `4`."""

    def __init__(self, dataset: str, levels: tuple[str, ...] = ("1",), wording: str = "compact") -> None:
        if dataset not in DATASETS:
            raise unknown("reasoning-gym data set", dataset, DATASETS, "list them with `evolvent tasks`")
        if dataset not in WORDINGS:
            raise UserError(
                f"rg/{dataset} has no compact wording; take one of {', '.join(COMPACT)}, "
                "or a model that reads plain text"
            )
        self.dataset, self.words, self.wording = dataset, WORDINGS[dataset], "compact"
        for level in levels:
            if level not in ("1", "2", "3", "4"):
                raise UserError(f"task `rg/{dataset}` has no compact level `{level}`; try 1, 2, 3 or 4")
        self.categories = tuple(levels)
        self.family = f"rg/{dataset}"
        self.name = f"{self.family}:{','.join(levels)}"
        self.levels = {level: self.words.levels[int(level) - 1] for level in levels}
        self.sources = {level: Source(dataset, shape.settings) for level, shape in self.levels.items()}
        self.max_tokens = max(shape.room for shape in self.levels.values()) + 2

    def draw(self, split: Split, rng: np.random.Generator, category: str | None = None) -> Problem:
        """A random problem of the split."""
        category = category or self.categories[int(rng.integers(len(self.categories)))]
        shape, source = self.levels[category], self.sources[category]
        for _ in range(TRIES):
            meta = source.item(int(rng.integers(SEEDS)))
            if shape.fits and not shape.fits(meta):
                continue
            key = key_of(self.family, identity(self.dataset, meta))
            if split_of(key) != split:
                continue
            prompt = self.words.prompt(meta) + (":" if shape.chain else "=")
            if len(prompt) > LONGEST_PROMPT:
                continue
            return Problem(key, one_user(prompt), {"meta": meta, "chain": shape.chain}, category, self.name)
        raise UserError(f"task `{self.name}`: {TRIES} draws at level {category} gave no {split} problem")

    def score(self, problem: Problem, completion: str) -> Score:
        """1 if the final answer is right, else 0. In a chain, the answer is what follows the last `=`."""
        answer = final_answer(completion)
        if answer is not None and problem.data["chain"]:
            answer = answer.rsplit("=", 1)[1] if "=" in answer else None
        if not answer:
            return Score(0.0, None)
        meta = problem.data["meta"]
        right = self.words.judge(meta, answer) if self.words.judge else answer == self.words.answer(meta)
        return Score(float(right), answer)

    def gold(self, problem: Problem) -> Demo:
        """The chain, where one is asked for, and the answer."""
        meta, answer = problem.data["meta"], self.words.answer(problem.data["meta"])
        if problem.data["chain"] and self.words.chain:
            return [Piece(f"{self.words.chain(meta)}={answer}")]
        return [Piece(answer)]
