"""Recipes: one file a method, in folders by family, named like the method: `mc_grpo.py` has `mc-grpo`.

Importing this package registers nothing. A recipe's module is imported when it is asked for by name, so that a search
does not wait for what only learners need; all are, when somebody goes through the registry.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import traceback
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from evolvent.core.errors import UserError, nearest
from evolvent.core.recipe import REGISTRY, Recipe


class _Registry(Mapping[str, Recipe]):
    """All recipes by name, in the order of their modules; imported when they are needed."""

    def __getitem__(self, name: str) -> Recipe:
        if module := _modules().get(name):  # `UserError` where somebody else has taken the name before
            importlib.import_module(module)
        if name not in REGISTRY:
            _import_all()
        return REGISTRY[name]

    def __iter__(self) -> Iterator[str]:
        _import_all()
        return iter(REGISTRY)

    def __len__(self) -> int:
        _import_all()
        return len(REGISTRY)


def all_recipes() -> Mapping[str, Recipe]:
    """Every recipe by name, imported when it is looked up."""
    return _Registry()


@cache
def _modules() -> dict[str, str]:
    """The modules of the families, each by the name of the recipe that its file is called after."""
    families = [one.name for one in pkgutil.iter_modules(__path__) if one.ispkg]
    files = [(family, Path(folder) / family) for folder in __path__ for family in families]
    modules = [f"{family}.{one.name}" for family, path in files for one in pkgutil.iter_modules([str(path)])]
    return {name.partition(".")[2].replace("_", "-"): f"{__name__}.{name}" for name in modules}


@cache
def _import_all() -> None:
    for module in _modules().values():
        importlib.import_module(module)


def resolve(composition: str) -> str:
    """A composition in which recipes from files (`my_method.py:name`) are loaded and called by their names."""
    return "+".join(_resolve_one(part.strip()) for part in composition.split("+"))


def _resolve_one(part: str) -> str:
    if ".py" not in part:
        return part
    place, _, name = part.partition(":")
    role = ""
    if not Path(place).is_file() and "/" in place and Path(place.partition("/")[2]).is_file():
        role, _, place = place.partition("/")
    path = Path(place)
    if path.suffix != ".py" or not path.is_file():
        raise UserError(f"there is no recipe file {place}; write my_method.py:name, with the name of a recipe in it")
    _import_all()  # so that a name of the package's own is refused
    names = load_file(path)
    if not name and len(names) == 1:
        name = names[0]
    if name not in names:
        near, there = nearest(name, names), ", ".join(names) or "none"
        if not name:
            raise UserError(f"{place} alone does not say which recipe (it defines {there}); write {place}:NAME")
        raise UserError(f"{place} defines no recipe `{name}`{near} (it defines {there})")
    return f"{role}/{name}" if role else name


def load_file(path: Path) -> list[str]:
    """Import a file of the user's; the names of the recipes that it defines."""
    spec = importlib.util.spec_from_file_location(f"evolvent_user_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except UserError:
        raise
    except Exception as reason:
        line, said = traceback.extract_tb(reason.__traceback__)[-1].lineno, str(reason)
        if isinstance(reason, SyntaxError):  # the frame is the importer's
            line, said = reason.lineno, reason.msg
        raise UserError(
            f"{path} cannot be imported: line {line}: {type(reason).__name__}: {said}; mend the file"
        ) from None
    return [r.name for r in REGISTRY.values() if Path(r.file).resolve() == path.resolve()]
