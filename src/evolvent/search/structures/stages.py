"""Auto-Evolve's stages: for one task after the other a structure is made once, from unlabelled examples, and handed in.

GENERATE modules, IMPLEMENT them as a structure of keyed steps, REFINE it several times, each time with new examples
(arXiv 2410.06328). No value is looked at on the way: those of the record are there to be read afterwards.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar

from evolvent.core.errors import UserError, VerifierError, unknown
from evolvent.core.random import identifiers, stream
from evolvent.core.records import Group, Message, Problem, Request, Trajectory
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.core.written import read_written
from evolvent.engine.absent import AbsentPolicy
from evolvent.search.archive import archive_of
from evolvent.search.asking import Prompts, ask_once
from evolvent.search.loop import Evaluate, begin_groups, written
from evolvent.search.structures import modules as rules
from evolvent.tasks.base import key_of
from evolvent.tasks.worlds.structures.operations import ALONE, FIXED
from evolvent.tasks.worlds.structures.world import TASKS, Structures, problem, structures_of, text_of

SOURCES = ("generated", "fixed", "none")
EXAMPLES = 100_000  # unlabelled ones that are drawn from
BLOCK = re.compile(r"```(?:json)?[ \t]*\n(.*?)```", re.DOTALL)
FINAL = re.compile(r"^answer:[ \t]*(.+)$", re.IGNORECASE | re.MULTILINE)


def structures_task(role: Role) -> Structures:
    """The role's task, which has to be one of structures: `UserError` otherwise."""
    if isinstance(role.task, Structures):
        return role.task
    raise UserError(
        f"this recipe makes a reasoning structure for each task, and {role.task.name} has none; "
        "give --task program:structures"
    )


@dataclass
class OncePerTask:
    """Propose: the next task in a drawn order, with what its structure is made from.

    source       of modules: `generated` for the task; `fixed`, selected from a list and adapted (Self-Discover);
                 `none`: nothing but to take what is asked for and work it out (chain-of-thought)
    examples     unlabelled problems of the task that are looked at, and as many new ones in each refinement
    modules      of which a structure is made
    refinements  how often it is rewritten; the paper's number is not known to us
    """

    source: str = "generated"
    examples: int = 3
    modules: int = 5
    refinements: int = 3

    def setup(self, role: Role) -> None:
        """A task of structures, and numbers that make sense."""
        structures_task(role)
        if self.source not in SOURCES:
            raise unknown("source", self.source, SOURCES, f"propose.source is one of {', '.join(SOURCES)}")
        if self.examples < 2 or self.modules < 1 or self.refinements < 0:
            raise UserError("propose.examples must be at least 2, .modules at least 1 and .refinements at least 0")

    def __call__(self, s: Step) -> Iterator[list[Request]]:
        """One round of one request; the first step evaluates the seed book alone."""
        archive, asked_of = archive_of(s.role), s.role.task.draw("train", s.rng("problem"))
        if not archive.history:
            yield [Request(asked_of, 1)]
            return
        archive.pool()  # an error where the seed book is not valid
        latest = next(c for c in reversed(archive.history) if c.valid)  # who was unusable has no book to go on with
        turn, place = divmod(len(archive.history) - 1, len(TASKS))
        name = TASKS[int(stream(s.role.seed, "tasks", turn).permutation(len(TASKS))[place])]
        numbers = s.rng("examples").integers(EXAMPLES, size=self.examples * (1 + self.refinements)).tolist()
        data = {
            "task": name, "source": self.source, "modules": self.modules,
            "rounds": [numbers[i : i + self.examples] for i in range(0, len(numbers), self.examples)],
        }  # fmt: skip
        yield [Request(replace(asked_of, data={**asked_of.data, **data}), 1, uses=(str(latest.uid),))]


def questions_of(data: Mapping[str, Any], number: int) -> list[str]:
    """The examples of a round, with those of the round before it."""
    rounds = data["rounds"][max(0, number - 1) : number + 1]
    return [str(problem(data["task"], "examples", i)["question"]) for numbers in rounds for i in numbers]


def handed_in(t: Trajectory, request: Request, stages: Sequence[Mapping[str, str]], s: Step) -> None:
    """The latest book with the last of the stages at its task's place, evaluated there only."""
    data, [latest] = request.problem.data, archive_of(s.role).named(request)
    book = structures_of(latest.text)
    book[data["task"]] = dict(stages[-1])
    t.info |= {"program": text_of(book), "operator": data["source"]}
    t.info |= {"instances": (data["task"],), "earlier": latest.evaluation}
    t.info["notes"] = {"task": data["task"], "stages": [dict(stage) for stage in stages]}
    s.log("refined", sum(a != b for a, b in pairwise(stages)))
    s.log("steps", len(stages[-1]))


@dataclass
class ByRules:
    """Roll out: without a model, modules and structures by the rules of `search.structures.modules`.

    Metrics: `refined`, refinements that changed something; `steps` of the structure.
    """

    def __call__(self, requests: Sequence[Request], s: Step) -> list[Group]:
        """A group for each request; the seed book without a parent."""
        groups, unwritten = begin_groups(requests, s)
        for place, request, group in unwritten:
            for uid in identifiers(request.n, s.role.seed, *s.path, s.round, place):
                group.trajectories.append(written(uid, request, "", "rules"))
                handed_in(group.trajectories[-1], request, self.stages(request.problem.data), s)
        return groups

    def stages(self, data: Mapping[str, Any]) -> list[rules.Structure]:
        """The structure as it was implemented, and after each refinement."""
        first = questions_of(data, 0)
        if data["source"] == "none":
            return [rules.keyed(ALONE)]
        find = rules.generated if data["source"] == "generated" else rules.selected
        found = [rules.implemented(find(first, data["modules"]), first)]
        for number in range(1, len(data["rounds"])):
            found.append(rules.refined(found[-1], questions_of(data, number)))
        return found


@dataclass
class Asked:
    """Roll out: a model proposes modules, makes them a JSON structure, and rewrites it. An answer in which there is no
    such thing leaves what was there before; without any structure the candidate is not valid, and was paid for.

    prompts  folder with prompts of your own: `structures/generate`, `select`, `implement`, `refine`
    """

    prompts: str = ""

    def setup(self, role: Role) -> None:
        """Prompts that can be read."""
        Prompts(self.prompts).check([f"structures/{name}" for name in ("generate", "select", "implement", "refine")])

    def __call__(self, requests: Sequence[Request], s: Step) -> list[Group]:
        """A group for each request; the seed book without a parent."""
        groups, unwritten = begin_groups(requests, s)
        for place, request, group in unwritten:
            group.trajectories.append(self._made(request, place, s))
        return groups

    def _made(self, request: Request, place: int, s: Step) -> Trajectory:
        data, wording = request.problem.data, Prompts(self.prompts)
        [uid] = identifiers(1, s.role.seed, *s.path, s.round, place)
        t = written(uid, request, "", "model")
        if data["source"] == "none":
            handed_in(t, request, [rules.keyed(["Think step by step."])], s)
            return t
        kinds = ["generate" if data["source"] == "generated" else "select", "implement"]
        modules, stages = "", list[dict[str, str]]()
        for number, kind in enumerate([*kinds, *["refine"] * (len(data["rounds"]) - 1)]):
            text = wording.render(
                f"structures/{kind}", task=data["task"], questions=questions_of(data, max(0, number - 1)), fixed=FIXED,
                count=data["modules"], modules=modules, structure=json.dumps(stages[-1], indent=2) if stages else "",
            )  # fmt: skip
            [answer] = ask_once([text], request.problem, s, f"{kind}-{s.round}-{place}-{number}")
            if answer.error is not None:
                t.error = answer.error
                return t
            if number == 0:
                modules = answer.completion
            elif structure := structure_in(answer.completion):
                stages.append(structure)
            elif stages:
                stages.append(stages[-1])
        if stages:
            handed_in(t, request, stages, s)
        else:
            t.info |= {"program": "", "operator": data["source"], "unusable": "no answer has a structure in it"}
        return t


def structure_in(text: str) -> dict[str, str] | None:
    """The JSON object of an answer, its values as texts; None where there is none."""
    for block in [*BLOCK.findall(text)[::-1], text[text.find("{") : text.rfind("}") + 1]]:
        try:
            found = read_written(block)
        except ValueError:
            continue
        if isinstance(found, dict) and found:
            return {str(k): v if isinstance(v, str) else json.dumps(v) for k, v in found.items()}
    return None


@dataclass
class Solved(Evaluate):
    """Judge: as `Evaluate`; with a model it fills the structures in, one call for each problem.

    prompts  folder with a prompt of your own: `structures/solve`

    Metric `solved`: share of problems of the step's task that the structure handed in answers rightly.
    """

    prompts: str = ""
    asks_model: ClassVar = True

    def setup(self, role: Role) -> None:
        """A task of structures, which gets to know who solves."""
        task = structures_task(role)
        Prompts(self.prompts).check(["structures/solve"])
        if not isinstance(role.policy, AbsentPolicy):
            task.solve = FilledIn(role, self.prompts)
        super().setup(role)

    def __call__(self, groups: Sequence[Group], s: Step) -> None:
        """Evaluate what the round has made."""
        super().__call__(groups, s)
        for t in (t for g in groups for t in g.valid if "task" in t.problem.data and "evaluation" in t.info):
            found = t.info["evaluation"].metrics.get(f"instance/{t.problem.data['task']}")
            if found is not None:
                s.log("solved", found)


class FilledIn:
    """A role's model fills a structure in for each question; what follows `Answer:` in the last such line counts."""

    def __init__(self, role: Role, prompts: str = "") -> None:
        self.role, self.prompts = role, prompts

    def __call__(self, structure: Mapping[str, str], questions: Sequence[str]) -> list[str | None]:
        """An answer to each question, None where there is none. `VerifierError` where a call was lost."""
        text = Prompts(self.prompts).render("structures/solve", structure=json.dumps(structure, indent=2))
        label = "solve/" + key_of("solve", [dict(structure), list(questions)])
        s = Step(0, self.role, [self.role.policy_actor()], label=label)
        found: list[str | None] = []
        for i, question in enumerate(questions):
            one = Problem(key_of("solve", question), (Message("user", question),), {}, "solve", self.role.task.name)
            [t] = ask_once([text], one, s, f"{i}")
            if t.error is not None:
                raise VerifierError(f"solve: {t.error}")
            lines = FINAL.findall(t.completion)
            found.append(lines[-1].strip() if lines else None)
        return found
