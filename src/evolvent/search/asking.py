"""Asking a model about a search: prompts from files, which users may replace, and one answer for each."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import jinja2
from jinja2 import meta, nodes

from evolvent.core.errors import UserError, unknown
from evolvent.core.records import Message, Problem, Request, Trajectory
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.engine.base import Tree
from evolvent.rollout.sample import Control, Sample

PROMPTS = Path(__file__).with_name("prompts")


@dataclass(frozen=True)
class Prompts:
    """Prompts by name: those of `folder`, if one is given, before those of `search/prompts`."""

    folder: str = ""

    @property
    def templates(self) -> jinja2.Environment:
        """The prompts. `UserError` if the folder is not there."""
        return templates(self.folder)

    def render(self, name: str, **values: Any) -> str:
        """The text of a prompt."""
        with self._told(f"{name}.md"):
            return self.templates.get_template(f"{name}.md").render(**values).strip()

    def lines(self, name: str) -> list[str]:
        """Alternatives, one a line, of the file `name.txt`."""
        with self._told(f"{name}.txt"):
            text = self.templates.get_template(f"{name}.txt").render()
        return [line.strip() for line in text.splitlines() if line.strip()]

    def check(self, names: Sequence[str]) -> None:
        """`UserError` for a prompt that is not there, cannot be read, or has names that nobody gives: those that the
        package's own of these prompts do without."""
        for name in names:
            with self._told(f"{name}.md"):
                self.templates.get_template(f"{name}.md")
        ours = templates("")
        shipped = [f"{name}.md" for name in names if (PROMPTS / f"{name}.md").is_file()]
        if not self.folder or not shipped:
            return
        given = set[str]().union(*(want for name in shipped for want, _ in parsed(ours, name).values()))
        for name in shipped:
            with self._told(name):
                mine = parsed(self.templates, name)
            known = given.union(*(sets for _, sets in mine.values()))
            for file, (want, _) in mine.items():
                if strange := sorted(want - known):
                    where = self.templates.get_template(file).filename
                    raise unknown(f"name in the prompt {where}:", strange[0], known, f"there are {listed(given)}")

    @contextmanager
    def _told(self, file: str) -> Iterator[None]:
        """What goes wrong with a prompt is the user's to mend, if there are prompts of theirs."""
        try:
            yield
        except (jinja2.TemplateError, ArithmeticError, LookupError, OSError, TypeError, ValueError) as reason:
            if not self.folder and not isinstance(reason, jinja2.TemplateNotFound):
                raise
            where = f"{file} in {self.folder}" if self.folder else file
            raise UserError(f"the prompt {where} cannot be used ({reason}); mend it, or leave it out") from None


def listed(names: Iterable[str]) -> str:
    """Names in their order."""
    return ", ".join(sorted(names))


Names = tuple[set[str], set[str]]  # those that a template takes from outside, and those that it binds


def parsed(prompts: jinja2.Environment, name: str) -> dict[str, Names]:
    """The names of a prompt and of all that it includes, by file; where that depends, of all in its folder."""
    found: dict[str, Names] = {}
    left = [name]
    while left:
        file = left.pop()
        if file in found or prompts.loader is None:
            continue
        tree = prompts.parse(prompts.loader.get_source(prompts, file)[0], filename=file)
        binds = {n.name for n in tree.find_all(nodes.Name) if n.ctx != "load"}
        found[file] = meta.find_undeclared_variables(tree), binds
        for other in meta.find_referenced_templates(tree):
            beside = file.rpartition("/")[0]
            left += [other] if other else [t for t in prompts.list_templates() if t.startswith(f"{beside}/")]
    return found


@lru_cache
def templates(folder: str) -> jinja2.Environment:
    """The prompts of a folder, and those of the package behind them; a file that is changed is read again."""
    if folder and not Path(folder).is_dir():
        raise UserError(f"prompts: there is no folder {folder}; make it, or leave the setting out")
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader([*([folder] if folder else []), PROMPTS]),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # prompts are no HTML
    )


def ask(prompts: Sequence[str], problem: Problem, s: Step, label: str, inner: Sample | None = None) -> list[Trajectory]:
    """An answer of the role's model to each prompt, in their order; otherwise as `answers`."""
    return answers([prompted(problem, text) for text in prompts], s, label, inner)


def answers(
    requests: Sequence[Request],
    s: Step,
    label: str,
    inner: Sample | None = None,
    role: Role | None = None,
    places: Sequence[int] = (),
) -> list[Trajectory]:
    """An answer to each request for one, in their order, of the step's model or of another role's.

    `label` tells this asking from others of the step. A request that failed is a trajectory with an `error`. With
    `places`, those of the step's own requests that these are made for, its controllers may pause answers: what they
    paused comes back too, to be resumed.
    """
    child = s.child(role or s.role, s.actors, label)
    placed = [Placed(control, places) for control in s.controls] if places else []
    child.controls = [*placed] or s.controls
    found = [g.trajectories[0] for g in (inner or Sample())(requests, child)]
    if not places:
        s.pending += child.pending
    elif child.pending:
        found = sorted([*found, *child.pending], key=lambda t: placed[0].asked[t.uid])
    return found


class Placed:
    """A controller of branches that is told of other requests than those that are sampled."""

    def __init__(self, inner: Control, places: Sequence[int]) -> None:
        self.inner, self.places, self.stride = inner, places, inner.stride
        self.hidden = getattr(inner, "hidden", False)
        self.owner: Sequence[int] = ()
        self.asked: dict[int, int] = {}  # which of the sampled requests a branch is of, by uid

    def begin(self, tree: Tree, requests: Sequence[Request], owner: Sequence[int], s: Step) -> None:
        """Learn whose branches they are."""
        self.owner = owner
        if hasattr(self.inner, "begin"):
            self.inner.begin(tree, requests, [self.places[i] for i in owner], s)

    def between(self, tree: Tree, s: Step) -> None:
        """See `Control`."""
        self.inner.between(tree, s)
        self.asked |= {b.uid: self.owner[b.root] for b in tree.branches}


def prompted(problem: Problem, text: str, like: Request | None = None) -> Request:
    """A request for one answer to a prompt: a system message, which the goal follows. What `like` uses and remembers
    goes with it."""
    memory, uses = (like.memory, like.uses) if like else ((), ())
    return Request(problem, 1, memory=(Message("system", text), *memory), uses=uses)


@dataclass
class Questions:
    """Stands for a task of episodes where a model is asked something about them: one answer, no episode."""

    name: str
    categories: tuple[str, ...]
    max_tokens: int = 4096


def ask_once(prompts: Sequence[str], problem: Problem, s: Step, label: str) -> list[Trajectory]:
    """As `ask`, of a task of episodes: one answer to each prompt, and no episode comes of it."""
    role = dataclasses.replace(s.role, task=Questions(s.role.task.name, s.role.task.categories))  # type: ignore[arg-type]
    return answers([prompted(problem, text) for text in prompts], s, label, role=role) if prompts else []
