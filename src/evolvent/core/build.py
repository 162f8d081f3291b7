"""From a plan to parts: every key typed and read, or refused before anything runs.

A part is a class (its dataclass fields are the keys below its path) or a function (its keyword-only parameters are).
A field whose value is a class or a function is a part of its own, one level down.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import math
import re
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from evolvent.core import places
from evolvent.core.errors import UserError, nearest
from evolvent.core.recipe import USER, Entry, Path, Plan, Site, describe, show_path

PLAIN = (bool, int, float, str, type(None))
UNSET = object()
HOMES = {  # where the command line looks for a part of a slot by its bare name
    "propose": "evolvent.propose.problems",
    "rollout": "evolvent.rollout.sample",
    "judge": "evolvent.judge.verify",
    "credit": "evolvent.learn.credit",
    "learn": "evolvent.learn.policy_gradient",
    "gate": "evolvent.guard.gate",
    "adapter": "evolvent.models.lora",
}


@dataclass
class Setting:
    """One key: its path, the value in use (wraps applied), who put it there, and what the paper's recipe says."""

    path: Path
    value: Any
    origin: str
    paper: Any


@dataclass
class Built:
    """A built role or root: its parts by path (wraps and wrapped ones included) and all its settings."""

    slots: dict[str, Any] = field(default_factory=dict)
    parts: dict[str, Any] = field(default_factory=dict)
    settings: list[Setting] = field(default_factory=list)


class Builder:
    """Builds the parts of a plan. `profile` maps a part's class to field values that small scale forces; a part that
    comes with a recipe of its own may bring them itself, as an attribute of the profile's name: `TINY`."""

    def __init__(self, plan: Plan, profile: Mapping[Any, Mapping[str, Any]], profile_name: str = "profile") -> None:
        self.plan, self.profile, self.profile_name = plan, profile, profile_name
        self.read: set[Path] = set()
        self.known: set[Path] = set()
        self.wrapped: set[Path] = set()

    def role(self, role: str, slots: Mapping[str, Any]) -> Built:
        """Build all slots of a role; `slots` are the parts used where the plan puts none."""
        built = Built()
        for slot, default in slots.items():
            made = self._value((role, slot), default, built, slot=True)
            if made is not None:
                built.slots[slot] = made
        return built

    def finish(self) -> None:
        """Raise for every key of the plan that no part has read."""
        for path, entry in self.plan.values.items():
            if path not in self.read:
                raise self._unread(path, entry.origin)
        for path, sites in self.plan.wraps.items():
            if path not in self.wrapped:
                raise self._unread(path, sites[0].origin)

    def _unread(self, path: Path, origin: str) -> UserError:
        source = "set by you" if origin == USER else f"put there by `{origin}`"
        parent = path[:-1]
        siblings = sorted({p[len(parent)] for p in self.known if p[: len(parent)] == parent and len(p) > len(parent)})
        fields = ", ".join(siblings) or "no fields here; leave this out, or put a part there that has it"
        there = f"{show_path(parent)} has {fields}" if len(parent) > 1 else "nothing reads it; leave it out"
        hint = nearest(path[-1], siblings).replace("mean ", f"mean {show_path(parent)}.") if siblings else ""
        return UserError(f"no key `{show_path(path)}` ({source}): {there}{hint}")

    def _value(
        self,
        path: Path,
        default: Any,
        built: Built,
        annotation: Any = Any,
        small: Any = UNSET,
        slot: bool = False,
    ) -> Any:
        """What ends up at a path: the user's, the profile's, a recipe's or the default value, with wraps applied."""
        self.known.add(path)
        entry = self.plan.values.get(path)
        value, origin = (entry.value, entry.origin) if entry else (default, "default")
        paper = value
        if entry:
            self.read.add(path)
        if small is not UNSET and origin != USER:
            value, origin = small, f"profile {self.profile_name}"
        if isinstance(value, str) and (slot or is_part(default) or expects_part(annotation)):
            value = self._resolve(path, value, default)
        if isinstance(value, Mapping):  # its entries are keys below the path, as in judge.shaping.lines=1
            inside = {p: e for p, e in self.plan.values.items() if p[:-1] == path}
            value = {**value, **{p[-1]: e.value for p, e in inside.items()}}
            origin = next((e.origin for e in inside.values()), origin)
            self.read |= set(inside)
        if value is dataclasses.MISSING:
            raise UserError(f"{show_path(path)} has no default; set it with --set {show_path(path)}=...")
        setting = Setting(path, value, origin, paper)
        built.settings.append(setting)
        if is_part(value):
            made = self._part(path, value, built)
        else:
            made = setting.value = value if origin == "default" else check_type(show_path(path), value, annotation)
        for site in self.plan.wraps.get(path, []):
            self.wrapped.add(path)
            made = self._wrap(path, site, made, built)
            if not is_part(value):
                setting.value, setting.origin = made, f"{setting.origin}, wrapped by {site.origin}"
        return made

    def _part(self, path: Path, value: Any, built: Built) -> Any:
        if inspect.isclass(value):
            cls: Any = value
            made = cls(**self._fields(path, cls, class_fields(cls), built))
            self._register(built, show_path(path), made)
            return made
        arguments = self._fields(path, value, function_fields(value), built)
        return functools.partial(value, **arguments) if arguments else value

    def _fields(self, path: Path, owner: Any, fields: Mapping[str, tuple[Any, Any]], built: Built) -> dict[str, Any]:
        small = {**getattr(owner, self.profile_name.upper(), {}), **self.profile.get(owner, {})}
        return {
            name: self._value((*path, name), default, built, annotation, small.get(name, UNSET))
            for name, (annotation, default) in fields.items()
        }

    def _wrap(self, path: Path, site: Site, inner: Any, built: Built) -> Any:
        wrapper = site.wrapper
        below = (*path, snake(wrapper.__name__))
        is_class = inspect.isclass(wrapper)
        fields = dict(class_fields(wrapper) if is_class else function_fields(wrapper))
        if is_class and fields.pop("inner", None) is None:
            raise UserError(f"`{wrapper.__name__}` cannot wrap {show_path(path)}: it has no field `inner`")
        for name, value in site.fields.items():
            self.plan.values.setdefault((*below, name), Entry(value, site.origin))
        arguments = self._fields(below, wrapper, fields, built)
        if not is_class:
            return wrapper(inner, **arguments)
        made = wrapper(inner=inner, **arguments)
        self._register(built, show_path(below), made)
        return made

    @staticmethod
    def _register(built: Built, name: str, part: Any) -> None:
        while name in built.parts:  # the same wrap twice around one path
            name += "'"
        built.parts[name] = part

    def _resolve(self, path: Path, name: str, default: Any) -> Any:
        """A part by name: `module:name`, or a public name of the module that the default comes from."""
        if name.lower() in ("none", "null"):
            return None
        if ":" in name:
            try:
                return places.at(name)
            except (ImportError, AttributeError) as reason:
                raise UserError(f"{show_path(path)}: cannot import `{name}` ({reason})") from None
        if default is None and len(path) == 2:
            default = importlib.import_module(HOMES.get(path[1], "evolvent.core.loop"))
        source = default if inspect.ismodule(default) else inspect.getmodule(default)
        choices = {n: v for n, v in vars(source).items() if is_part(v) and not n.startswith("_")} if source else {}
        choices |= {snake(n).replace("_", "-"): v for n, v in choices.items()}
        if name not in choices:
            near = nearest(name, choices)
            raise UserError(f"{show_path(path)}: no part `{name}`{near}; give module:name for one of your own")
        return choices[name]


def is_part(value: Any) -> bool:
    """Whether a value is a part: a class or function, but no plain type such as `int`."""
    return (inspect.isclass(value) and value not in PLAIN) or isinstance(value, types.FunctionType)


def expects_part(annotation: Any) -> bool:
    """Whether a field is annotated as something callable or as a protocol."""
    origins = [annotation, *typing.get_args(annotation)]
    return any(
        typing.get_origin(a) is Callable
        or a is Callable
        or getattr(a, "_is_protocol", False)
        or typing.get_origin(a) is typing.get_origin(Callable[..., Any])
        for a in origins
    )


@functools.cache
def class_fields(cls: Any) -> Mapping[str, tuple[Any, Any]]:
    """name -> (annotation, default) of the init fields of a dataclass; none for other classes."""
    if not dataclasses.is_dataclass(cls):
        return {}
    hints = typing.get_type_hints(cls, include_extras=True)
    found = {}
    for f in dataclasses.fields(cls):
        if f.init:
            default = f.default_factory() if f.default_factory is not dataclasses.MISSING else f.default
            found[f.name] = (hints.get(f.name, Any), default)
    return found


@functools.cache
def function_fields(function: Callable[..., Any]) -> Mapping[str, tuple[Any, Any]]:
    """name -> (annotation, default) of the keyword-only parameters of a function."""
    keyword = [p for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY]
    if not keyword:
        return {}
    hints = typing.get_type_hints(function, include_extras=True)
    none = inspect.Parameter.empty
    return {p.name: (hints.get(p.name, Any), dataclasses.MISSING if p.default is none else p.default) for p in keyword}


@functools.cache
def _adapter(annotation: Any) -> TypeAdapter[Any]:
    return TypeAdapter(annotation, config=ConfigDict(arbitrary_types_allowed=True))


def check_type(path: str, value: Any, annotation: Any) -> Any:
    """The value as the annotated type; strings from the command line are read as that type."""
    if annotation is Any or (value is None and type(None) in typing.get_args(annotation)):
        return value
    if isinstance(value, str):
        if value.lower() in ("none", "null") and type(None) in typing.get_args(annotation):
            return None
        if any(typing.get_origin(a) in (tuple, list) for a in (annotation, *typing.get_args(annotation))):
            value = [v.strip() for v in value.split(",") if v.strip()]
    try:
        checked = _adapter(annotation).validate_python(value)
    except ValidationError as reason:
        raise refusal(path, value, annotation, reason.errors()[0]) from None
    if isinstance(value, bool) and checked is not value:
        raise UserError(f"{path} must be a number, got {value}")
    check_finite(path, checked)
    return checked


BOUNDS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}


def refusal(path: str, value: Any, annotation: Any, why: Mapping[str, Any]) -> UserError:
    """The error for a value that is not of its type, or outside its range: `why` is pydantic's."""
    plain = typing.get_args(annotation)[0] if typing.get_origin(annotation) is typing.Annotated else annotation
    bound = next((f"{word} {why['ctx'][key]:g}" for key, word in BOUNDS.items() if key in why.get("ctx", {})), None)
    if bound:
        where = "".join(f".{part}" for part in why["loc"] if not isinstance(part, int))
        return UserError(f"{path}{where} must be {bound}, got {why['input']}")
    if typing.get_origin(plain) in (tuple, list) and isinstance(value, list):
        given = ",".join(map(str, value))
        return UserError(f"{path} must be {plain}, its entries with commas between them; got {given}")
    wanted = getattr(plain, "__name__", str(plain).replace("typing.", ""))
    return UserError(f"{path} must be {wanted}, got {describe(value)} ({why['msg'].lower()})")


def check_finite(path: str, value: Any) -> None:
    """`UserError` for a number that is infinite or none, in whatever holds it."""
    if isinstance(value, float) and not math.isfinite(value):
        raise UserError(f"{path} must be a number, got {value}; give a finite one")
    if isinstance(value, Mapping):
        for key, part in value.items():
            check_finite(f"{path}.{key}", part)
    elif isinstance(value, list | tuple | set | frozenset):
        for part in value:
            check_finite(path, part)


def snake(name: str) -> str:
    """CamelCase as snake_case, KLPenalty as kl_penalty."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
