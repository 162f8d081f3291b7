"""Who writes the strategies: rules that are directed by issues, or a model that reads both pools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from numpy.random import Generator

from evolvent.core.errors import UserError
from evolvent.core.random import identifiers
from evolvent.core.records import Group, Request, Trajectory
from evolvent.core.step import Step
from evolvent.rollout.sample import Sample
from evolvent.search.archive import archive_of
from evolvent.search.asking import Prompts, answers, prompted
from evolvent.search.candidate import Candidate
from evolvent.search.curation.design import drawn, excepted, exceptions, inserted, statements
from evolvent.search.curation.pools import CATEGORY, LOST, Experience
from evolvent.search.loop import begin_groups, programs_of, written
from evolvent.search.normal import tree_hash
from evolvent.search.novelty import forms
from evolvent.search.segments import crossed, mutated, segments, with_segment
from evolvent.search.variation.edits import EditError, rewrite
from evolvent.search.variation.fragments import BROKEN, sound
from evolvent.search.variation.tree import program
from evolvent.tasks.worlds.curation.library import ABOUT, FILTER
from evolvent.tasks.worlds.curation.texts import CATEGORIES

UNCHANGED = "the function is as it was"


@dataclass
class DesignByRules:
    """Roll out, without a model: the strategy of the category whose turn it is changes.

    directed  how often an issue of the experience pool is drawn and something done about it; else an operator on the
              syntax tree varies the function, with the component library
    components  how often, of the former, by a component that is about such issues; else by a statement with pieces of
              the issue's examples
    crossing  how often, of the latter, it is crossed with another good strategy of the category
    fixed     every strategy is the fixed filter's: what one for all categories would be (baseline)
    tries     variations until one is new

    Metrics: `directed` (1 if an issue was behind it), `repeats` (1 if it is not new).
    """

    directed: float = 0.8
    components: float = 0.5
    crossing: float = 0.2
    fixed: bool = False
    tries: int = 5

    def __call__(self, requests: Sequence[Request], s: Step) -> list[Group]:
        """A group for each request; the seed program without a parent."""
        archive = archive_of(s.role)
        groups, unwritten = begin_groups(requests, s)
        seen = forms(archive)
        for place, request, group in unwritten:
            others = archive.named(request)[1:]
            for i, uid in enumerate(identifiers(request.n, s.role.seed, *s.path, s.round, place)):
                rng, text, operator, about = s.rng("design", place, i), request.problem.data["base"], "none", ""
                for _ in range(self.tries):
                    varied = self._vary(request.problem.data, others, programs_of(s.role).components, rng)
                    if varied is not None:
                        text, operator, about = varied
                        if tree_hash(text) not in seen:
                            break
                s.log("repeats", tree_hash(text) in seen)
                s.log("directed", bool(about))
                group.trajectories.append(written(uid, request, text, operator))
                group.trajectories[-1].info["notes"] = {"issue": about}
        return groups

    def _vary(
        self, data: Mapping[str, Any], others: Sequence[Candidate], library: Sequence[str], rng: Generator
    ) -> tuple[str, str, str] | None:
        """Program, operator, and the issue that it is about."""
        base, place = data["base"], CATEGORIES.index(data[CATEGORY])
        if self.fixed:
            return with_segment(base, place, segments(FILTER)[place]), "filter", ""
        issue = drawn(Experience.of(data["issues"]).issues, data["diagnosis"], rng)
        if issue is not None and rng.random() < self.directed:
            lost, known = issue.kind.startswith(LOST), ABOUT.get(issue.kind, ())
            choices = exceptions(issue) if lost else known if known and rng.random() < self.components else []
            choices = choices or statements(issue, rng)
            change = choices[int(rng.integers(len(choices)))]
            text = (excepted if lost else inserted)(base, place, change, rng)
            return (
                None if text is None else (text, "except" if lost else "address", f"{issue.kind}: {issue.examples[0]}")
            )
        if others and rng.random() < self.crossing:
            text = crossed(base, others[int(rng.integers(len(others)))].text, place, rng)
            return None if text is None else (text, "cross", "")
        found = mutated(base, place, rng, library)
        return None if found is None else (*found, "")

    def check(self, system: object) -> None:
        """Shares, and at least one try."""
        for name in ("directed", "components", "crossing"):
            if not 0 <= getattr(self, name) <= 1:
                raise UserError(f"rollout.mutate.{name} is a share, from 0 to 1; got {getattr(self, name)}")
        if self.tries < 1:
            raise UserError(f"rollout.mutate.tries must be at least 1, got {self.tries}")


@dataclass
class DesignByModel:
    """Roll out: a model writes the function of the category, told of its issues, the parent, what the judge said of it,
    and other good strategies. What cannot be used is asked for again, with what was wrong, `attempts` times in all.

    prompts  folder with a `curation/design.md` of your own
    Metrics: `asked` (answers), `unusable` (share of them).
    """

    attempts: int = 3
    prompts: str = ""
    inner: Any = Sample

    def check(self, system: object) -> None:
        """At least one attempt, a prompt that can be read."""
        if self.attempts < 1:
            raise UserError(f"rollout.write.attempts must be at least 1, got {self.attempts}")
        Prompts(self.prompts).check(["curation/design"])

    def __call__(self, requests: Sequence[Request], s: Step) -> list[Group]:
        """A group for each request; the seed program without a parent."""
        groups, unwritten = begin_groups(requests, s)
        asked = unusable = 0
        for place, request, group in unwritten:
            for i in range(request.n):
                error = ""
                for attempt in range(self.attempts):
                    [t] = answers([self._prompt(request, error, s)], s, f"design-{place}-{i}-{attempt}", self.inner)
                    asked += 1
                    error = self._read(t, request)
                    unusable += bool(error)
                    if not error:
                        break
                group.trajectories.append(t)
        if asked:
            s.log("asked", asked)
            s.log("unusable", unusable / asked)
        return groups

    def _prompt(self, request: Request, error: str, s: Step) -> Request:
        data, (parent, *others) = request.problem.data, archive_of(s.role).named(request)
        place = CATEGORIES.index(data[CATEGORY])
        text = Prompts(self.prompts).render(
            "curation/design",
            category=data[CATEGORY],
            generation=data["generation"],
            score=data["scores"][data[CATEGORY]],
            strategy=segments(data["base"])[place],
            feedback=parent.evaluation.feedback,
            issues=Experience.of(data["issues"]).issues,
            others=[segments(c.text)[place] for c in others],
            error=error,
        )
        return replace(prompted(request.problem, text), uses=request.uses)

    def _read(self, t: Trajectory, request: Request) -> str:
        """Put the function of an answer into the program; what is wrong with it. A request that failed is an error of
        the trajectory, and not asked for again here."""
        if t.error is not None:
            return ""
        base, place = request.problem.data["base"], CATEGORIES.index(request.problem.data[CATEGORY])
        t.info |= {"program": "", "operator": "design"}
        try:
            found = rewrite(t.completion)
            inner = segments(found)[place] if len(segments(found)) == len(CATEGORIES) else found
            text = with_segment(base, place, inner)
            if segments(text)[place] == segments(base)[place]:
                raise EditError(UNCHANGED)
            if sound(program(base), text) is None:
                raise EditError(
                    f"it must define clean_{request.problem.data[CATEGORY]}(text), and use known names only"
                )
        except (EditError, UserError, *BROKEN) as reason:
            t.info["unusable"] = str(reason)
            return str(reason)
        t.info.pop("unusable", None)
        t.info["program"] = text
        return ""
