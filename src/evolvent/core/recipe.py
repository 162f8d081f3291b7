"""Recipes are patches: a name, a parent, and operations on the slots of one system.

    put("learn.clip_high", 0.28)             a value, function or class at a path
    wrap("propose.n", one_more)              a function around a value, or a class around a part

`compile_plan` merges the lineages of several recipes into one flat plan. A recipe may override what its ancestors
put; when two recipes that are not related put different values at one path, that is an error until the user says
which to take. Merging does not depend on the order of the recipes, except for wraps: left is inner.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

from evolvent.core.claim import Claim
from evolvent.core.errors import UserError, nearest, unknown

Path = tuple[str, ...]  # (role, slot, field, ...); the role is "" in a system with a single one
SLOTS = ("propose", "rollout", "judge", "credit", "keep", "learn", "gate")
FIXTURES = ("task", "adapter")  # of a role: a function of the run's task, and a low-rank adapter of its own
USER = "the command line"  # the origin of what the user sets
ROOT = "root"  # the pseudo-role of what belongs to no single role: root/turns


def parse_path(text: str) -> Path:
    """`learn.clip_low` or `solver/learn.clip_low`."""
    role, _, rest = text.rpartition("/")
    parts = tuple(rest.split("."))
    if not all(p.isidentifier() for p in parts):
        raise UserError(f"`{text}` is no path; a path is slot.field or role/slot.field, as in learn.clip_low")
    known = (*SLOTS, *FIXTURES)
    if role != ROOT and parts[0] not in known:
        raise UserError(f"`{text}`: no slot `{parts[0]}`{nearest(parts[0], known)} (slots: {', '.join(known)})")
    return (role, *parts)


def show_path(path: Path) -> str:
    """A path as the user writes it."""
    return (f"{path[0]}/" if path[0] else "") + ".".join(path[1:])


@dataclass(frozen=True)
class Put:
    """A value, function or class at a path; `fields` are puts below it."""

    path: Path
    value: Any
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Wrap:
    """A function around the value, or a class around the part, at a path."""

    path: Path
    wrapper: Callable[..., Any]
    fields: Mapping[str, Any] = field(default_factory=dict)


Op = Put | Wrap


def put(path: str, value: Any, **fields: Any) -> Put:
    """Put `value` at `path`; keyword arguments are the fields of the part or function that is put there."""
    return Put(parse_path(path), value, fields)


def wrap(path: str, wrapper: Callable[..., Any], **fields: Any) -> Wrap:
    """Wrap what ends up at `path`. A class gets it as its field `inner`, a function as its first argument."""
    return Wrap(parse_path(path), wrapper, fields)


@dataclass(frozen=True, eq=False)
class Recipe:
    """A method. `paper` and `title` say where it comes from, the claims what it promises.

    `roles` are the recipes that a system of several roles starts from, by role.
    """

    name: str
    parent: Recipe | None
    ops: tuple[Op, ...]
    title: str = ""
    paper: str = ""
    family: str = ""
    doc: str = ""
    file: str = ""
    mechanism: Claim | None = None
    outcome: Claim | None = None
    notes: str = ""
    roles: Mapping[str, Recipe] = field(default_factory=dict)

    @property
    def lineage(self) -> list[Recipe]:
        """The recipe and its ancestors, oldest first."""
        return list(dict.fromkeys(one for _, one in self.placed("")))

    def placed(self, role: str) -> list[tuple[str, Recipe]]:
        """The lineage, oldest first, each ancestor with the role that it applies to."""
        found = self.parent.placed(role) if self.parent else []
        for own, base in self.roles.items():
            found = found + base.placed(own)
        return [*found, (role, self)]

    def descends_from(self, other: Recipe) -> bool:
        """Whether `other` is a proper ancestor."""
        return other is not self and other in self.lineage


REGISTRY: dict[str, Recipe] = {}


def recipe(
    name: str,
    parent: Recipe | None,
    *ops: Op,
    title: str = "",
    paper: str = "",
    mechanism: Claim | None = None,
    outcome: Claim | None = None,
    notes: str = "",
    roles: Mapping[str, Recipe] | None = None,
) -> Recipe:
    """Define and register a recipe; the docstring of the module that calls is its description."""
    caller = sys._getframe(1).f_globals  # inspect.stack() reads every frame's source: 0.1 s a recipe
    file = FilePath(caller.get("__file__", ""))
    if name in REGISTRY and REGISTRY[name].file != str(file):
        raise UserError(f"recipe `{name}` is defined twice: in {REGISTRY[name].file} and {file}; rename one")
    made = Recipe(
        name,
        parent,
        tuple(ops),
        title=title,
        paper=paper,
        family=file.parent.name,
        doc=inspect.cleandoc(caller.get("__doc__") or ""),
        file=str(file),
        mechanism=mechanism,
        outcome=outcome,
        notes=notes,
        roles=dict(roles or {}),
    )
    REGISTRY[name] = made
    return made


@dataclass(frozen=True)
class Entry:
    """What ended up at a path, and who put it there."""

    value: Any
    origin: str


@dataclass(frozen=True)
class Site:
    """One wrap around a path."""

    wrapper: Callable[..., Any]
    origin: str
    fields: Mapping[str, Any]


@dataclass
class Plan:
    """A compiled composition: flat values and stacked wraps, each with its origin."""

    name: str
    recipes: list[Recipe]
    values: dict[Path, Entry]
    wraps: dict[Path, list[Site]]
    take: dict[Path, str] = field(default_factory=dict)

    @property
    def roles(self) -> list[str]:
        """Names of the roles, in the order in which they first appear; [""] in a system with a single one."""
        return list(dict.fromkeys(p[0] for p in [*self.values, *self.wraps] if p[0] != ROOT))


def parse_composition(text: str, known: Mapping[str, Recipe]) -> list[tuple[str, Recipe]]:
    """`grpo+sec+solver/mc-grpo` as (role, recipe) pairs; the role is "" where none is named."""
    found = []
    for part in text.split("+"):
        role, _, name = part.strip().rpartition("/")
        if not name:
            raise UserError(f'"{text}": no recipe on one side of a "+", or none at all; write it as in grpo+sec')
        if name not in known:
            raise unknown("recipe", name, known, "`evolvent list` shows all")
        found.append((role, known[name]))
    return found


def compile_plan(
    composition: str,
    known: Mapping[str, Recipe],
    settings: Mapping[str, Any] | None = None,
    take: Mapping[str, str] | None = None,
) -> Plan:
    """Merge the recipes of a composition, then the user's `settings` (path -> value), into a plan.

    `take` resolves conflicts: path -> name of the recipe whose value is taken.
    """
    parts = parse_composition(composition, known)
    own_roles = {role for _, one in parts for role in roles_of(one)}
    ordered: list[tuple[str, Recipe]] = []
    for role, one in parts:
        if role and role not in own_roles:
            raise unknown(
                "role", role, own_roles, f"roles: {', '.join(sorted(own_roles)) or 'only one, without a name'}"
            )
        if own_roles and not role and not roles_of(one):
            names = " or ".join(f"{r}/{one.name}" for r in sorted(own_roles))
            raise UserError(f"`{one.name}` does not say which of several roles it changes; write {names}")
        ordered += [pair for pair in one.placed(role) if pair not in ordered]
    wanted = {parse_path(path): name for path, name in (take or {}).items()}
    own = {parse_path(path): Entry(value, USER) for path, value in (settings or {}).items()}
    values = _merge(list(_puts(ordered)), wanted, list(own)) | own
    wraps: dict[Path, list[Site]] = {}
    for role, one in ordered:
        for op in one.ops:
            if isinstance(op, Wrap):
                wraps.setdefault(_placed(op.path, role), []).append(Site(op.wrapper, one.name, dict(op.fields)))
    return Plan(composition, [r for _, r in ordered], values, wraps, wanted)


def roles_of(one: Recipe) -> set[str]:
    """Names of the roles that a recipe sets up."""
    return {role for ancestor in one.lineage for role in ancestor.roles}


def _placed(path: Path, role: str) -> Path:
    return (role, *path[1:]) if role and path[0] == "" else path


def _puts(ordered: Iterable[tuple[str, Recipe]]) -> Iterable[tuple[Path, Any, Recipe, int]]:
    """Every put, with the fields of a put as puts of their own: path, value, recipe, place within the recipe."""
    for role, one in ordered:
        for place, op in enumerate(one.ops):
            if isinstance(op, Put):
                path = _placed(op.path, role)
                yield path, op.value, one, place
                for name, value in op.fields.items():
                    yield (*path, name), value, one, place


def _merge(
    puts: Sequence[tuple[Path, Any, Recipe, int]], take: Mapping[Path, str], settled: Sequence[Path]
) -> dict[Path, Entry]:
    """One value a path. A put is void if a descendant, or the same recipe later, puts at its path or above it.

    Where one recipe's part is taken, the fields that the others gave to theirs go with it. What is put at a path that
    the user has settled, or below it, does not count.
    """

    def void(path: Path, one: Recipe, place: int) -> bool:
        return any(
            path[: len(other)] == other
            and (by.descends_from(one) or (by is one and (at > place or (at == place and len(other) > len(path)))))
            for other, _, by, at in puts
        )

    rivals: dict[Path, list[Entry]] = {}
    for path, value, one, place in puts:
        if not void(path, one, place):
            rivals.setdefault(path, []).append(Entry(value, one.name))
    for path, name in take.items():
        if name not in {r.name for _, _, r, _ in puts}:
            raise UserError(f"--take {show_path(path)}={name}: `{name}` is not part of this composition")
        there = {e.origin for e in rivals.get(path, [])}
        if name not in there:
            who = ", ".join(f"`{n}`" for n in sorted(there)) or "nobody"
            raise UserError(f"--take {show_path(path)}={name}: `{name}` puts nothing there that counts; {who} does")
        for below in [p for p in rivals if len(p) > len(path) and p[: len(path)] == path]:
            rivals[below] = [e for e in rivals[below] if e.origin == name or e.origin not in there]
    merged: dict[Path, Entry] = {}
    for path, entries in rivals.items():
        if any(path[: len(key)] == key for key in settled):
            continue
        asked = [e for e in entries if e.origin == take.get(path)] or entries
        other = next((e for e in asked if not same(asked[0].value, e.value)), None)
        if other is not None:
            text, first = show_path(path), asked[0]
            choices = " or ".join(f"--take {text}={name}" for name in dict.fromkeys(e.origin for e in asked))
            raise UserError(
                f"`{first.origin}` and `{other.origin}` put different values at {text} ({describe(first.value)} and "
                f"{describe(other.value)}); choose with {choices}"
            )
        if asked:
            merged[path] = asked[0]
    return merged


def same(a: Any, b: Any) -> bool:
    """Whether two puts agree: the same object, or equal values of the same type."""
    return a is b or (type(a) is type(b) and not callable(a) and bool(a == b))


def describe(value: Any) -> str:
    """A value as the user would write it."""
    return getattr(value, "__name__", None) or repr(value)
