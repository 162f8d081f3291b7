"""How the strategy section of an adaptation policy changes: by reflection on an inner run of the parent.

The parent is run on the minibatch first, and whoever makes the child looks at that run: a model reads its whole
history, and rules a diagnosis of it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from evolvent.core.errors import UserError, VerifierError
from evolvent.core.random import identifiers
from evolvent.core.records import Group, Request
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.search.adaptation.inner import games_of, observed
from evolvent.search.archive import archive_of
from evolvent.search.asking import Prompts, ask_once
from evolvent.search.loop import begin_groups, written
from evolvent.search.minibatch import MINIBATCH
from evolvent.tasks.worlds.text_games.adviser import examined, moments
from evolvent.tasks.worlds.text_games.notes import LINES
from evolvent.tasks.worlds.text_games.world import Run, strategy_of, text_of

SYMPTOMS = {  # what a diagnosis says, after a count
    "deaths": "episodes in which the actor died",
    "vain": "commands that failed",
    "untried": "exits that were seen and never tried",
    "locked": "locked doors and dangers, with a tool or key missing",
    "again": "passages walked that were walked before",
    "missed": "points that were brought in an earlier episode and not in a later one",
    "left out": "lines of guidance that were left out, being more than the actor reads",
    "lost": "lines of earlier guidance that a new episode did not keep",
}
MOST = 1e6  # of `guided`: with more nothing else counts, and weights overflow in the end
PLAIN = frozenset({
    "the", "and", "that", "were", "was", "which", "with", "what", "where", "them", "of", "in", "a", "an", "or", "to",
    "by", "it", "is", "not", "any", "new",
})  # fmt: skip
BLOCK = re.compile(r"^```\w*[ \t]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def diagnosis(runs: Sequence[Run]) -> dict[str, int]:
    """How often each symptom shows in the logs and in the guidance."""
    found = Counter[str]()
    for run in runs:
        earned: set[tuple[str, str]] = set()
        for k, log in enumerate(run.logs):
            seen, steps = examined(log), moments(log)
            notes = seen.notes
            walked = [(m.room, m.command) for m in steps if m.command.startswith("go ")]
            tried = {(room, command.removeprefix("go ")) for room, command in walked}
            found["deaths"] += len(notes.deadly)
            found["vain"] += sum(m.reply.startswith("You can't") for m in steps)
            found["untried"] += len(set(seen.seen) - tried)
            found["locked"] += len(notes.needs)
            found["again"] += len(walked) - len(set(walked))
            found["missed"] += len(earned - set(notes.points))
            earned |= set(notes.points)
            lines = run.guidance[k].splitlines()
            found["left out"] += max(0, len(lines) - LINES)
            if k:
                found["lost"] += len(set(run.guidance[k - 1].splitlines()) - set(lines))
    return dict(found)


def told(symptoms: Mapping[str, int]) -> list[str]:
    """A diagnosis in words."""
    return [f"{count} {SYMPTOMS[name]}" for name, count in symptoms.items() if count]


def relevance(sentence: str, symptoms: Mapping[str, int]) -> float:
    """How much a sentence has to do with what a diagnosis says: sum of log(1 + count) over the words they share."""
    own = _words(sentence)
    return sum(math.log1p(count) * len(own & _words(SYMPTOMS[name])) for name, count in symptoms.items())


@lru_cache(maxsize=4096)
def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z]+", text.lower())) - PLAIN


@dataclass
class Directives:
    """Roll out: without a model a child has up to `edits` changes of the parent's list of directives: one more of the
    library, one less, or one in another place. How many is drawn, from 1 on; with 0 it is as its parent.

    guided  how much the diagnosis of the parent's run says which directive is added: p ~ 1 + guided * relevance.
            With lines of guidance left out it is twice as likely that one is taken away

    Metrics: `relevance` of what was added, and `directives`, the length of the children's lists, means over children.
    """

    edits: int = 3
    guided: float = 1.0
    tries: int = 5

    def setup(self, role: Role) -> None:
        """A task of games, and numbers that make sense."""
        games_of(role)
        if self.edits < 0 or not 0 <= self.guided <= MOST or self.tries < 1:
            raise UserError(
                f"rollout.mutate.edits must be at least 0, .guided from 0 to {MOST:g}, and .tries at least 1"
            )

    def __call__(self, requests: Sequence[Request], s: Step) -> list[Group]:
        """A group for each request; the seed program without a parent. What was seen before is changed anew."""
        archive = archive_of(s.role)
        groups, unwritten = begin_groups(requests, s)
        known = {c.text for c in archive.history}
        library, added, sizes = games_of(s.role).components, list[float](), list[int]()
        for place, request, group in unwritten:
            parent = strategy_of(archive.named(request)[0].text)
            symptoms = diagnosis(observed(s.role, parent, request.problem.data[MINIBATCH]))
            for i, uid in enumerate(identifiers(request.n, s.role.seed, *s.path, s.round, place)):
                rng, new = s.rng("edit", place, i), list(parent)
                for _ in range(self.tries):
                    new = self.edited(parent, library, symptoms, rng)
                    if text_of(new) not in known:
                        break
                added += [relevance(line, symptoms) for line in new if line not in parent]
                sizes.append(len(new))
                t = written(uid, request, text_of(new), "edit")
                t.info["notes"] = {"diagnosis": told(symptoms)}
                group.trajectories.append(t)
        if added:
            s.log("relevance", float(np.mean(added)))
        if sizes:
            s.log("directives", float(np.mean(sizes)))
        return groups

    def edited(
        self, lines: Sequence[str], library: Sequence[str], symptoms: Mapping[str, int], rng: np.random.Generator
    ) -> list[str]:
        """A changed list."""
        new = list(lines)
        for _ in range(int(rng.integers(1, self.edits + 1)) if self.edits else 0):
            rest = [line for line in library if line not in new]
            crowded = bool(self.guided and symptoms.get("left out"))
            weights = np.array([2.0 * bool(rest), (1.0 + crowded) * bool(new), 1.0 * (len(new) > 1)])
            kind = int(rng.choice(3, p=weights / weights.sum()))
            if kind == 0:
                p = np.array([1 + self.guided * relevance(line, symptoms) for line in rest])
                new.insert(int(rng.integers(len(new) + 1)), rest[int(rng.choice(len(rest), p=p / p.sum()))])
            else:
                line = new.pop(int(rng.integers(len(new))))
                if kind == 2:
                    new.insert(int(rng.integers(len(new) + 1)), line)
        return new


@dataclass
class Reflect:
    """Roll out: a model reads the history of the parent's inner run on the minibatch, and writes the strategy section
    anew; header and footer stay. An answer without a section is not valid, and was paid for.

    longest  characters of a run's history that it is shown, from its end
    prompts  folder with a `adaptation/reflect.md` of your own
    """

    longest: int = 60_000
    prompts: str = ""

    def setup(self, role: Role) -> None:
        """A task of games, and a prompt that can be read."""
        games_of(role)
        Prompts(self.prompts).check(["adaptation/reflect"])
        if self.longest < 1:
            raise UserError(f"rollout.write.longest must be at least 1, got {self.longest}")

    def __call__(self, requests: Sequence[Request], s: Step) -> list[Group]:
        """A group for each request; the seed program without a parent."""
        archive = archive_of(s.role)
        groups, unwritten = begin_groups(requests, s)
        for place, request, group in unwritten:
            parent = strategy_of(archive.named(request)[0].text)
            try:
                runs = observed(s.role, parent, request.problem.data[MINIBATCH])
            except VerifierError as reason:
                for uid in identifiers(request.n, s.role.seed, *s.path, s.round, place):
                    group.trajectories.append(written(uid, request, "", "reflect"))
                    group.trajectories[-1].error = str(reason)
                continue
            worst = min(runs, key=lambda run: run.fitness)
            text = Prompts(self.prompts).render(
                "adaptation/reflect", strategy=parent, run=worst, history=history(worst)[-self.longest :]
            )
            for i in range(request.n):
                [t] = ask_once([text], request.problem, s, f"reflect-{s.round}-{place}-{i}")
                t.uses = request.uses
                blocks = BLOCK.findall(t.completion)
                lines = [line.strip() for line in blocks[-1].splitlines() if line.strip()] if blocks else []
                t.info |= {"program": text_of(lines), "operator": "reflect"}
                if t.error is None and not blocks:
                    t.info["unusable"] = "there is no section between ``` and ```"
                group.trajectories.append(t)
        return groups


def history(run: Run) -> str:
    """All guidance and logs of a run, in order."""
    parts = []
    for k, (guidance, log, score) in enumerate(zip(run.guidance, run.logs, run.scores, strict=True), 1):
        parts.append(f"Episode {k}, guidance:\n{guidance or 'none'}\n\nlog:\n{log}share of all points: {score:.2f}\n")
    return "\n".join(parts)
