"""Modules and structures by rules, from a task's unlabelled examples alone: generated or selected, implemented,
refined.

A module is a sentence that the scripted solver understands. What it has to do with a task is the share of its words
that the examples have, too; pieces of text that it needs are what all examples have in common. Nobody reads an answer.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from evolvent.tasks.worlds.structures.operations import FIXED, LIBRARY, PLACES, Operation, fill, understood

Structure = dict[str, str]
PLAIN = frozenset({
    "the", "a", "an", "of", "in", "it", "is", "or", "and", "as", "to", "at", "that", "are", "what", "for", "each", "by",
    "with", "from", "than",
})  # fmt: skip
TOKEN = re.compile(r"\s+|\w+|[^\w\s]")


SHARE = 0.6


@lru_cache(maxsize=4096)
def words(text: str) -> frozenset[str]:
    """Its words, cut to six letters so that other endings do not count."""
    return frozenset({word[:6] for word in re.findall(r"[a-z]+|\d+", text.lower()) if word not in PLAIN})


def relevance(sentence: str, questions: Sequence[str]) -> float:
    """How many of a sentence's words a question has, over the root of how many it has; mean over the questions."""
    return _relevance(sentence, tuple(questions))


@lru_cache(maxsize=4096)
def _relevance(sentence: str, questions: tuple[str, ...]) -> float:
    own = words(re.sub(r"'.*?'", "", sentence))
    return sum(len(own & words(q)) for q in questions) / len(questions) / math.sqrt(max(1, len(own)))


def anchors(questions: Sequence[str]) -> list[str]:
    """Modules that take what differs between the questions: from what stands before it in all of them to what stands
    behind it, the longest such piece first."""
    first, parts = TOKEN.findall(questions[0]), []
    common = set(range(len(first)))  # tokens of the first question that all others have in the same order
    for other in questions[1:]:
        blocks = difflib.SequenceMatcher(None, first, TOKEN.findall(other), autojunk=False).get_matching_blocks()
        common &= {i for block in blocks for i in range(block.a, block.a + block.size)}
    slots: list[list[int]] = []
    for i in range(len(first)):
        if i not in common:
            if slots and not any(token.isalpha() for token in first[slots[-1][1] : i]):  # only signs between the two
                slots[-1][1] = i + 1
            else:
                slots.append([i, i + 1])
    for start, stop in sorted(slots, key=lambda s: s[0] - s[1]):
        before, after = list[str](), list[str]()
        for i in range(start - 1, -1, -1):
            if i not in common or len("".join(before)) > 12:
                break
            before.insert(0, first[i])
        for i in range(stop, len(first)):
            if i not in common or len("".join(after)) > 8:
                break
            after.append(first[i])
        a, b = "".join(before).strip(), "".join(after).strip()
        if a and b:
            parts.append(f"Take what stands between '{a}' and '{b}'.")
        elif a:
            parts.append(f"Take what stands after '{a}'.")
    return list(dict.fromkeys(parts))


def plain_library() -> list[Operation]:
    """The operations that need no piece of text."""
    return [operation for operation in LIBRARY if "{a}" not in operation.says]


def generated(questions: Sequence[str], count: int) -> list[str]:
    """GENERATE: modules of the task's own: what takes its data out, and of the library the `count` most relevant."""
    ranked = sorted(plain_library(), key=lambda o: -relevance(o.says, questions))
    return [*anchors(questions)[:1], *(o.says for o in ranked[:count])]


def selected(questions: Sequence[str], count: int) -> list[str]:
    """SELF-DISCOVER's select and adapt: of the fixed list what takes data out, and the `count` most relevant of the
    rest, each put in the words of the task as far as its verb allows."""
    places = {o.says: o.place for o in plain_library()}
    taking = [says for says in FIXED if places[says] in ("take", "list")]
    rest = [says for says in FIXED if says not in taking]
    ranked = taking + sorted(rest, key=lambda says: -relevance(says, questions))[:count]
    adapted = []
    for says in ranked:
        verb = says.partition(" ")[0]
        like = [o.says for o in plain_library() if o.says.partition(" ")[0] == verb]
        adapted.append(max(like, key=lambda other: (relevance(other, questions), other == says)))
    return list(dict.fromkeys(adapted))


def implemented(modules: Sequence[str], questions: Sequence[str]) -> Structure:
    """IMPLEMENT: the most relevant module of each place, in the order of the places. What has nothing to do with the
    task is left out, but for what takes data out."""
    chosen = []
    for place in PLACES:
        here = [m for m in modules if (found := understood(m)) is not None and found[0].place == place]
        here = [m for m in here if place in ("take", "list") or relevance(m, questions)]
        if here:
            cut = [m for m in here if "'" in m]  # with words of the task itself
            chosen.append(max(cut or here, key=lambda m: relevance(m, questions)))
    return keyed(chosen)


def keyed(steps: Sequence[str]) -> Structure:
    """Steps under their keys."""
    return {f"step {i}": step for i, step in enumerate(steps, 1)}


def worth(structure: Mapping[str, str], questions: Sequence[str]) -> tuple[float, ...]:
    """What is better of two structures without looking at answers: its steps have more to do with the task, of those
    that have at least `SHARE` as much as any; then it is filled in for more questions; then further; then the data that
    it takes have fewer words of those that all questions have; then it is shorter."""
    found, steps = [fill(structure, q) for q in questions], list(structure.values())
    missing = sum(1 - len(f.values) / max(1, len(steps)) for f in found)
    frame = frozenset.intersection(*(words(q) for q in questions))
    cut = next(
        (i for i, step in enumerate(steps) if (o := understood(step)) is None or o[0].place != "take"), len(steps)
    )
    taken = [f.values[cut - 1] if 0 < cut <= len(f.values) else q for f, q in zip(found, questions, strict=True)]
    wordy = sum(len(frame & words(str(value))) for value in taken) / len(questions)
    least = SHARE * max(relevance(o.says, questions) for o in plain_library())
    fit = sum(x for step in steps if understood(step) is not None and (x := relevance(step, questions)) >= least)
    unanswered = sum(f.answer is None for f in found)
    return (round(fit, 9), -unanswered, -round(missing, 9), -round(wordy, 9), -len(steps))


def refined(structure: Mapping[str, str], questions: Sequence[str]) -> Structure:
    """REFINE: fill the structure in for examples, and make one change: a step that was missing, one that is in the way,
    or one or two in other words. The best is kept; the structure itself, if no change is better."""
    steps, places = list(structure.values()), {name: i for i, name in enumerate(PLACES)}
    options = [*(o.says for o in plain_library()), *anchors(questions)[:2]]
    changes = []
    for i in range(len(steps) + 1):
        changes += [[*steps[:i], o, *steps[i:]] for o in options if o not in steps]
        if i < len(steps):
            changes.append([*steps[:i], *steps[i + 1 :]])
            changes += [[*steps[:i], o, *steps[i + n :]] for n in (1, 2) for o in options if o not in steps]
    ordered = []
    for change in changes:
        found = [understood(step) for step in change]
        order = [places[f[0].place] for f in found if f is not None]
        if change and order == sorted(set(order)):  # at most one of each place, in their order
            ordered.append(keyed(change))
    return max([dict(structure), *ordered], key=lambda s: worth(s, questions))


__all__ = ["anchors", "generated", "implemented", "refined", "relevance", "selected", "worth"]
