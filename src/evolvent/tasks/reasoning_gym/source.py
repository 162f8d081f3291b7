"""Items of reasoning-gym by seed: one object a configuration, no overlap of seeds, the same item on every
machine.

Measured in reasoning-gym 0.1.25: items come from Random(seed + index), so neighbouring seeds share them;
making a data set can cost far more than an item (letter tables, word graphs); five data sets iterate over
sets of strings, so that their items change with the interpreter's hash seed. Hence: the object is made once,
an item is asked for by an index below 2**62, and those sets are put in order.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from decimal import localcontext
from io import StringIO
from typing import Any

import numpy as np
from reasoning_gym.factory import CURRICULA, DATASETS, create_dataset

from evolvent.core.errors import UserError, unknown

SEEDS = 2**62
DEFAULT_LEVEL = "default"

# Refused, with the reason that the user is given.
REFUSED = {
    "codeio": "it runs program text of its data file inside this process, and where it asks for an input it accepts "
    "one of the many that are right",
    "composite": "it only mixes other data sets; name several tasks instead",
    "propositional_logic": "its verifier gives full marks for a premise repeated in other words, so there is nothing "
    "to learn",
}
NAMES = tuple(sorted(set(DATASETS) - set(REFUSED)))

# Steps of its curricula that it refuses itself, or that take more than five seconds an item, or for ever.
NO_LEVEL = {
    "arc_1d": {"4"},
    "caesar_cipher": {"3", "4"},
    "jugs": {"3", "4"},
    "knight_swap": {"1", "2", "3", "4", "5"},
    "modulo_grid": {"2"},
    "rubiks_cube": {"5"},
    "sokoban": {"1"},
    "survo": {"3", "4"},
    "zebra_puzzles": {"6"},
}

# Data sets that decide in the constructor what the items are: a new object for every item, of this size.
FRESH = {"acre": 5, "gsm_symbolic": 1, "list_functions": 1}
FEWER_SEEDS = {"pool_matrix": 2**32}  # it seeds numpy
GLOBAL_RANDOM = {"list_functions", "pool_matrix"}  # they draw from the interpreter's own generators
PRINTS = {"bf"}  # a dot for every item


class Ordered:
    """A set of letters that is iterated in alphabetical order, with the one operation that reasoning-gym
    uses."""

    def __init__(self, letters: set[str]) -> None:
        self.letters = sorted(letters)

    def __iter__(self) -> Iterator[str]:
        return iter(self.letters)

    def __sub__(self, others: set[str]) -> Ordered:
        return Ordered(set(self.letters) - set(others))


def _order_letters(dataset: Any) -> None:
    dataset.letters = Ordered(dataset.letters)


def _order_monomials(dataset: Any) -> None:
    unordered = dataset._get_monomials
    dataset._get_monomials = lambda rng: sorted(unordered(rng), key=str)


def _order_word_graph(dataset: Any) -> None:
    for length in dataset.word_sets:
        graph = dataset._build_word_graph(length)
        dataset.word_graphs[length] = {word: sorted(neighbours) for word, neighbours in graph.items()}


ORDER: dict[str, Callable[[Any], None]] = {
    "isomorphic_strings": _order_letters,
    "polynomial_multiplication": _order_monomials,
    "ransom_note": _order_letters,
    "word_ladder": _order_word_graph,
}


@contextmanager
def _global_random(seed: int) -> Iterator[None]:
    """The interpreter's own generators started at a seed, and afterwards as they were before."""
    python, numpy = random.getstate(), np.random.get_state()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)


def check_name(name: str) -> None:
    """Raise `UserError` for a data set that does not exist or is refused."""
    if name in REFUSED:
        raise UserError(f"rg/{name} is refused: {REFUSED[name]}")
    if name not in DATASETS:
        raise unknown("reasoning-gym data set", name, NAMES, f"there are {len(NAMES)}; `rg/gcd` is one")


def levels_of(name: str) -> tuple[str, ...]:
    """`default`, then `1`, `2`, ...: the steps of reasoning-gym's curriculum for the data set, all attributes at
    once, each up to the end of its own list."""
    if name not in CURRICULA:
        return (DEFAULT_LEVEL,)
    steps = max((len(a.levels) for a in CURRICULA[name]().attributes.values()), default=0)
    return (DEFAULT_LEVEL, *(str(k) for k in range(1, steps + 1) if str(k) not in NO_LEVEL.get(name, ())))


class Source:
    """One data set under one configuration."""

    def __init__(self, name: str, dataset: Any) -> None:
        self.name, self.dataset = name, dataset
        self.seeds = FEWER_SEEDS.get(name, SEEDS)
        if name in ORDER:
            ORDER[name](dataset)

    @classmethod
    def of_settings(cls, name: str, settings: dict[str, Any]) -> Source:
        """Under reasoning-gym's defaults, but for `settings`."""
        size = FRESH.get(name, 1)
        return cls(name, create_dataset(name, seed=0, size=size, **settings))

    @classmethod
    def of_level(cls, name: str, level: str) -> Source:
        """At a level of `levels_of`."""
        if level == DEFAULT_LEVEL:
            return cls.of_settings(name, {})
        curriculum = CURRICULA[name]()
        curriculum.set_global_level(int(level) - 1)
        config = curriculum.generate_configuration({"seed": 0, "size": FRESH.get(name, 1)})
        return cls(name, DATASETS[name][0](config=config))

    def item(self, seed: int) -> dict[str, Any]:
        """The item of a seed below `seeds`: its metadata, with `question` and `answer` among them."""
        quiet = redirect_stdout(StringIO()) if self.name in PRINTS else nullcontext()
        seeded = _global_random(seed) if self.name in GLOBAL_RANDOM else nullcontext()
        with quiet, seeded, localcontext():  # decimal_arithmetic lowers the precision of all decimals
            if self.name in FRESH:
                size = FRESH[self.name]
                item = create_dataset(self.name, seed=seed // size, size=size)[seed % size]
            else:
                self.dataset.size = SEEDS  # word_ladder lowers it when an item fails
                item = self.dataset[seed]
        return {**item["metadata"], "question": item["question"], "answer": item["answer"]}

    def first(self, count: int) -> list[dict[str, Any]]:
        """The items of the first seeds, without those that reasoning-gym fails to make."""
        items = []
        for seed in range(count):
            with suppress(Exception):
                items.append(self.item(seed))
        return items
