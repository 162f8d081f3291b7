"""Data curation: strategies, one function for each category, that clean the documents of a noisy corpus.

    value = mean over the categories;  train, gate: score of the judge, 1 to 10;  test: minus bits per byte

An instance is a category of a split: `train-prose`. A search sees the judge's score of what a strategy made of raw
documents, all 120 of the category or, by `train-prose:7`, the 48 of sample number 7. In the end the strategies are
applied to all documents of the split `test`, a model of n-grams is trained on the same number of bytes of what they
kept, `TRAINED` of each category, from the beginning again where there is less, and tested on clean documents that are
in no other split: the reported value is minus its cross-entropy. The judge reads no clean text, in no split.
"""

from __future__ import annotations

import ast
import html
import inspect
import re
import string
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from evolvent.core.errors import UserError
from evolvent.guard.sandbox import Call, Limits
from evolvent.tasks.evaluation import INSTANCE, Evaluation, invalid
from evolvent.tasks.program import PROGRAM, World
from evolvent.tasks.worlds.curation.corpus import documents, sample
from evolvent.tasks.worlds.curation.judge import comments, judge
from evolvent.tasks.worlds.curation.library import COMPONENTS, SEED
from evolvent.tasks.worlds.curation.model import ORDER, bits_per_byte
from evolvent.tasks.worlds.curation.texts import CATEGORIES
from evolvent.tasks.worlds.plain import refusal

GOAL = """Write strategies that clean the documents of a noisy corpus, one function for each category: clean_prose,
clean_code, clean_tables and clean_dialogue. Each gets the text of a document and returns what is kept of it, or None to
drop it. What is no content goes (navigation, promotion, markup, broken characters, repeats, whole documents of spam),
what is content stays as it is: names, code, formulas, rows of numbers, short turns. A judge compares documents before
and after: the score goes from 1 to 10. Only re, html, unicodedata, string and modules that compute may be imported."""

HARNESS = """
import program


def clean(jobs):
    return [[getattr(program, "clean_" + category)(text) for text in texts] for category, texts in jobs]
"""
TRAINED = 100_000  # bytes of each category that a model is trained on
LONGEST = 3  # times the raw documents' length that a strategy may give back
TEXT = (re, html, unicodedata, string)
BEHIND = frozenset(name for module in TEXT for name, x in vars(module).items() if inspect.ismodule(x))


def refused(source: str) -> str:
    """What a program does that it may not (see `worlds.plain`); it may work on texts."""
    tree = ast.parse(source)
    known = {module.__name__ for module in TEXT}
    tree.body = [
        node
        for node in tree.body
        if not (isinstance(node, ast.Import) and all(a.name in known and a.asname is None for a in node.names))
    ]
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id.startswith("clean_"):
            return f"line {node.lineno}: it uses {node.id}; each strategy stands alone"
        if isinstance(node, ast.Attribute) and node.attr in BEHIND:
            return f"line {node.lineno}: it uses {node.attr}; a program here may compute, and not look behind modules"
    return refusal(ast.unparse(tree))


def read_name(name: str) -> tuple[str, str, int | None]:
    """Split, category and sample of an instance."""
    split, _, rest = name.partition("-")
    category, _, number = rest.partition(":")
    return split, category, int(number) if number else None


def raw(name: str) -> tuple[str, ...]:
    """The documents of an instance."""
    split, category, number = read_name(name)
    return documents(category, split).raw if number is None else sample(category, split, number)  # type: ignore[arg-type]


def call(text: str, names: Sequence[str]) -> Call:
    """A program's strategies on the documents of some instances."""
    if reason := refused(text):
        return Call({"harness.py": f"def refuse():\n    raise ValueError({reason!r})\n"}, "harness", "refuse")
    return Call(
        {PROGRAM: text, "harness.py": HARNESS},
        "harness",
        "clean",
        ([[read_name(n)[1], list(raw(n))] for n in names],),
        seed=0,
    )


def verdict(value: Any, names: Sequence[str]) -> Evaluation:
    """The verdict on what was kept: values of instances, shares, and comments on each category."""
    if not isinstance(value, list) or len(value) != len(names):
        return invalid("there should be a list of texts for each category")
    values: dict[str, float] = {}
    metrics: dict[str, float] = {}
    told: list[str] = []
    for name, given in zip(names, value, strict=True):
        split, category, _ = read_name(name)
        before, plain = raw(name), f"{split}-{category}"
        if not isinstance(given, list) or len(given) != len(before):
            return invalid(f"clean_{category} should give back a text or None for each document")
        if wrong := next((x for x in given if x is not None and not isinstance(x, str)), None):
            return invalid(f"clean_{category} should give back a text or None, and gave {wrong!r:.60}")
        if sum(len(x or "") for x in given) > LONGEST * sum(map(len, before)):
            return invalid(f"clean_{category} gives back more than {LONGEST} times what there was")
        if split == "test":
            values[plain] = -trained(category, tuple(x for x in given if x))
            continue
        found = judge(before, given, documents(category, split).about)
        values[plain] = found.score
        metrics |= {f"removed/{category}": found.removed, f"kept/{category}": found.kept}
        told.append(comments(category, found))
    named = {f"{INSTANCE}{name}": x for name, x in values.items()}
    return Evaluation(sum(values.values()) / len(values), {**metrics, **named}, "\n".join(told))


@lru_cache(maxsize=64)
def trained(category: str, texts: tuple[str, ...]) -> float:
    """Bits per byte on the clean documents held out, after training on `TRAINED` bytes; 8 where there are none."""
    data = "\n\n".join(texts).encode("utf-8", "replace") + b"\n\n"
    if len(data) <= ORDER:
        return 8.0
    held = "\n\n".join(documents(category, "held out").clean).encode()
    return bits_per_byte((data * (TRAINED // len(data) + 1))[:TRAINED], held)


def world(size: str = "") -> World:
    """The world; it has no sizes: `UserError` for one."""
    if size:
        raise UserError(f"data-curation:{size}: this world has no sizes; write program:data-curation")
    return World(
        name="program:data-curation",
        goal=GOAL,
        seed=SEED,
        call=call,
        judge=verdict,
        instances={split: tuple(f"{split}-{c}" for c in CATEGORIES) for split in ("train", "gate", "test")},
        limits=Limits(seconds=20.0, output=8 << 20),
        components=COMPONENTS,
        preload=("numpy", "html"),  # the first one is seeded
    )
