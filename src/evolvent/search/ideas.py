"""Ideas: proposed in epochs, some by combining those that beat the baseline, the others unlike those that are known.

Epochs      propose   how many of an epoch exploit; with a model the ideas themselves, in words
IdeaRules   roll out  without a model: an idea is a change of the seed program
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from evolvent.core.random import identifiers
from evolvent.core.ranges import Count, Positive, Share, Whole
from evolvent.core.records import Group, Message, Request
from evolvent.core.step import Step
from evolvent.engine.absent import AbsentPolicy
from evolvent.search.archive import Archive, archive_of
from evolvent.search.asking import Prompts, ask
from evolvent.search.candidate import Candidate
from evolvent.search.changes import Change, change, overlap, shown
from evolvent.search.loop import Children, given, programs_of, written
from evolvent.search.normal import tree_hash
from evolvent.search.novelty import forms
from evolvent.search.segments import carried, differing, segments
from evolvent.search.variation.syntax import mutate

TOLD = "Implement this idea:\n\n"
BLOCK = re.compile(r"\[Idea\](.*?)(?=\[End\]|\[Idea\]|\Z)", re.DOTALL)
DROPPED = ("gate", "lost")  # results that were not believed, and those that are missing


class Idea(NamedTuple):
    """An idea in words, empty where no model wrote it; its change of the seed program; its best execution."""

    text: str
    change: Change
    best: Candidate


def ideas_of(history: Sequence[Candidate]) -> list[Idea]:
    """All ideas in the order in which they came up, each once, with the best of its executions; without the seed
    program and what a gate has stopped. Ideas are the same if their words are, or without words their changes."""
    found: dict[Any, Idea] = {}
    for c in history:
        if not c.parents or c.evaluation.status in DROPPED:
            continue
        words, made = words_of(c), change(history[0].text, c.text)
        key = " ".join(words.lower().split()) or made
        if key not in found or c.merit > found[key].best.merit:
            found[key] = Idea(words, made, c)
    return list(found.values())


def words_of(candidate: Candidate) -> str:
    """The idea that a candidate was written for; empty if there was none."""
    return next((text.removeprefix(TOLD) for text in candidate.notes.get("told", ()) if text.startswith(TOLD)), "")


def better(ideas: Sequence[Idea], seed: Candidate) -> list[Idea]:
    """Those whose best execution beats the seed program, the baseline."""
    return [idea for idea in ideas if idea.best.value > seed.value]


@dataclass
class Epochs:
    """Propose: `children` ideas an epoch, which is a step, as variations of the seed program; of these in epoch e

        share that exploits = min(exploit + rise floor(e / every), most)

    is made from `sampled` drawn ideas that beat the baseline, to combine or refine them; the others are to differ from
    `shown` drawn ones of all that were tried (arXiv 2601.14525, evolutionary search). Epoch 0 has nothing to build on,
    and explores; so do exploiting children where nothing beats the baseline yet. The first step of a run evaluates the
    seed program alone, which is the baseline; in the paper the threshold is set by hand.

    With a model the ideas are written first, all of a kind in one answer, asked for up to `asks` times until they are
    enough, with those of the epoch before one's eyes; each then goes to whoever writes programs. A child that has no
    idea then is written without one. Metrics: `exploit`, the share of the step's children that exploit; `ideas` and
    `better`, how many different ones there are so far, and that beat the baseline.

    prompts  folder with `ideas/exploit.md` and `ideas/explore.md` of your own
    """

    children: Children = 8
    exploit: Share = 0.5
    rise: Share = 0.1
    every: Count = 2
    most: Share = 0.8
    sampled: Count = 10
    shown: Whole = 100
    asks: Count = 3
    prompts: str = ""

    def share(self, epoch: int) -> float:
        """Of the children that exploit; 0 in epoch 0."""
        return min(self.exploit + self.rise * (epoch // self.every), self.most) if epoch else 0.0

    def __call__(self, s: Step) -> Iterator[list[Request]]:
        """One round of requests: an exploiting one uses the ideas that it was made from."""
        archive, problem = archive_of(s.role), s.role.task.draw("train", s.rng("problem"))
        if not archive.history:
            yield [Request(problem, 1)]
            return
        seed = archive.pool().first
        ideas = ideas_of(archive.history)
        good = better(ideas, seed)
        epoch = len({c.step for c in archive.history if c.parents})
        count = round(self.share(epoch) * self.children) if good else 0
        s.log("exploit", count / self.children)
        s.log("ideas", len(ideas))
        s.log("better", len(good))
        if isinstance(s.role.policy, AbsentPolicy):
            chosen = [drawn(good, self.sampled, s.rng("exploit", i)) for i in range(count)]
            requests = [Request(problem, 1, uses=tuple(str(idea.best.uid) for idea in some)) for some in chosen]
            yield [*requests, *(Request(problem, 1, uses=("0",)) for _ in range(self.children - count))]
            return
        some, known = drawn(good, self.sampled, s.rng("exploit")), drawn(ideas, self.shown, s.rng("explore"))
        words = [*self._words("exploit", some, count, seed, s)]
        words += self._words("explore", known, self.children - count, seed, s)
        memory = [(Message("system", TOLD + text),) if text else () for text in words]
        yield [Request(problem, 1, memory=m, uses=("0",)) for m in memory]

    def _words(self, kind: str, ideas: Sequence[Idea], count: int, seed: Candidate, s: Step) -> list[str]:
        """So many ideas of the model; empty ones where it did not give enough."""
        found: list[str] = []
        problem = s.role.task.draw("train", s.rng("problem"))
        for i in range(self.asks):
            if len(found) >= count:
                break
            wording = Prompts(self.prompts)
            text = wording.render(
                f"ideas/{kind}", seed=seed, ideas=ideas, count=count - len(found), proposed=found, short=shortly
            )
            (t,) = ask([text], problem, s, f"{kind}-{i}")
            if t.error is None:
                found += [text for text in read_ideas(t.completion) if text not in found]
        return [*found, *[""] * count][:count]

    def check(self, system: object) -> None:
        """Prompts that can be read."""
        Prompts(self.prompts).check(("ideas/exploit", "ideas/explore"))


def read_ideas(answer: str) -> list[str]:
    """The ideas of an answer, each between [Idea] and [End]."""
    return [text.strip() for text in BLOCK.findall(answer) if text.strip()]


def shortly(idea: Idea) -> str:
    """An idea for a prompt: its words, or else its change."""
    return idea.text or shown(idea.change)


def drawn(ideas: Sequence[Idea], most: int, rng: np.random.Generator) -> list[Idea]:
    """At most so many of them, in a drawn order, none twice."""
    return [ideas[i] for i in rng.permutation(len(ideas))[:most].tolist()]


@dataclass
class IdeaRules:
    """Roll out: ideas without a model, as changes of the seed program.

    Exploring, the seed program is varied by operators on its syntax tree. What is too much like one of `shown` drawn
    ideas (overlap of the changed lines at least `alike`; above 1 nothing is) is varied anew, up to `tries` times, and
    then the one least alike is taken. Exploiting, one of the ideas that a request uses is the best of `contest` drawn
    ones: as a model that reads their values would, it builds on good ones. With probability `combine` the change that
    another one made is made in it as well, segment by segment, as far as its lines are there; else it is refined, which
    is varied. A program that was seen before is made anew. Metrics: `repeats` (share that is not new), `combined` (of
    the children), `apart` (1 - overlap of exploring children with the nearest idea of the shown ones, mean).
    """

    combine: Share = 0.5
    contest: Count = 3
    shown: Whole = 100
    alike: Positive = 0.3
    tries: Count = 10

    def __call__(self, requests: Sequence[Request], s: Step) -> list[Group]:
        """A group of one for each request; without a parent it is the seed program."""
        archive, groups = archive_of(s.role), []
        seen, ideas = set(forms(archive)), ideas_of(archive.history)
        repeats, combined, apart = 0, 0, []
        for place, request in enumerate(requests):
            if made := given(request, place, s):
                groups.append(Group(request.problem, made))
                continue
            rng = s.rng("vary", place)
            if request.uses == ("0",):
                known = [idea.change for idea in drawn(ideas, self.shown, rng)]
                text, operator, far = self._explored(archive, known, seen, rng, s)
                parents: tuple[Candidate, ...] = (archive.history[0],)
                apart.append(far)
            else:
                text, operator, parents = self._exploited(archive.named(request), archive, seen, rng, s)
            form = tree_hash(text)
            repeats += form in seen
            combined += operator == "combine"
            seen.add(form)
            (uid,) = identifiers(1, s.role.seed, *s.path, s.round, place)
            t = written(uid, request, text, operator)
            t.uses = tuple(str(c.uid) for c in parents)
            groups.append(Group(request.problem, [t]))
        s.log("repeats", repeats / max(1, len(requests)))
        s.log("combined", combined / max(1, len(requests)))
        if apart:
            s.log("apart", float(np.mean(apart)))
        return groups

    def _explored(
        self, archive: Archive, known: Sequence[Change], seen: set[str], rng: np.random.Generator, s: Step
    ) -> tuple[str, str, float]:
        """A program, its operator, and how far its idea is from those known."""
        seed, components = archive.history[0].text, programs_of(s.role).components
        best: tuple[str, str, float] = (seed, "none", -1.0)
        for _ in range(self.tries):
            varied = mutate(seed, rng, (), components)
            if tree_hash(varied.source) in seen:
                continue
            made = change(seed, varied.source)
            near = max((overlap(made, other) for other in known), default=0.0)
            if 1 - near > best[2]:
                best = (varied.source, varied.operator, 1 - near)
            if near < self.alike or self.alike > 1:
                return varied.source, varied.operator, 1 - near
        return best if best[2] >= 0 else (*best[:2], 0.0)

    def _exploited(
        self, ideas: Sequence[Candidate], archive: Archive, seen: set[str], rng: np.random.Generator, s: Step
    ) -> tuple[str, str, tuple[Candidate, ...]]:
        """A program, its operator, and the ideas that it was made of."""
        seed, components = archive.history[0].text, programs_of(s.role).components
        text, operator = ideas[0].text, "none"
        parents: tuple[Candidate, ...] = (ideas[0],)
        for _ in range(self.tries):
            one = max((ideas[int(rng.integers(len(ideas)))] for _ in range(self.contest)), key=lambda c: c.merit)
            others = [c for c in ideas if c.uid != one.uid]
            if others and rng.random() < self.combine:
                other = others[int(rng.integers(len(others)))]
                text, operator, parents = joined(seed, one.text, other.text), "combine", (one, other)
            else:
                varied = mutate(one.text, rng, (), components)
                text, operator, parents = varied.source, varied.operator, (one,)
            if tree_hash(text) not in seen:
                break
        return text, operator, parents


def joined(seed: str, one: str, other: str) -> str:
    """A program with what another one changed of the seed, in all segments where its lines still stand."""
    text = one
    for place in differing(seed, other):
        if differing(seed, text) or text == seed:  # as many segments as the seed
            text = carried(text, place, segments(seed)[place], segments(other)[place]) or text
    return text
