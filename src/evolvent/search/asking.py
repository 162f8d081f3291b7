"""Asking a model about a search: prompts from files, which users may replace, and one answer for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import jinja2

from evolvent.core.errors import UserError
from evolvent.core.records import Message, Problem, Request, Trajectory
from evolvent.core.step import Step
from evolvent.rollout.sample import Sample

PROMPTS = Path(__file__).with_name("prompts")


@dataclass(frozen=True)
class Prompts:
    """Prompts by name: those of `folder`, if one is given, before those of `search/prompts`."""

    folder: str = ""

    @cached_property
    def templates(self) -> jinja2.Environment:
        """The prompts. `UserError` if the folder is not there."""
        if self.folder and not Path(self.folder).is_dir():
            raise UserError(f"rollout.prompts: there is no folder {self.folder}; make it, or leave it out")
        return jinja2.Environment(
            loader=jinja2.FileSystemLoader([*([self.folder] if self.folder else []), PROMPTS]),
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            autoescape=False,  # prompts are no HTML
        )

    def render(self, name: str, **values: Any) -> str:
        """The text of a prompt."""
        return self.templates.get_template(f"{name}.md").render(**values).strip()

    def lines(self, name: str) -> list[str]:
        """Alternatives, one a line, of the file `name.txt`."""
        text = self.templates.get_template(f"{name}.txt").render()
        return [line.strip() for line in text.splitlines() if line.strip()]

    def check(self, names: Sequence[str]) -> None:
        """`UserError` for a prompt that is not there or cannot be read."""
        for name in names:
            try:
                self.templates.get_template(f"{name}.md")
            except jinja2.TemplateError as reason:
                raise UserError(f"the prompt {name}.md cannot be read ({reason}); mend it, or leave it out") from None


def ask(prompts: Sequence[str], problem: Problem, s: Step, label: str, inner: Sample | None = None) -> list[Trajectory]:
    """An answer of the role's model to each prompt, in their order. A prompt is a system message; the goal follows it.

    `label` tells this asking from others of the step. A request that failed is a trajectory with an `error`.
    """
    requests = [Request(problem, 1, memory=(Message("system", text),)) for text in prompts]
    child = s.child(s.role, s.actors, label)
    child.controls = s.controls
    return [g.trajectories[0] for g in (inner or Sample())(requests, child)]
