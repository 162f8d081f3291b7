"""Recipes: one file a method, in folders by family. Importing this package registers nothing; `load_all` does."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import traceback
from functools import cache
from pathlib import Path

from evolvent.core.errors import UserError, nearest
from evolvent.core.recipe import REGISTRY, Recipe


@cache
def load_all() -> dict[str, Recipe]:
    """Import every module of every family; the registry of recipes, by name."""
    for module in pkgutil.walk_packages(__path__, __name__ + "."):
        importlib.import_module(module.name)
    return REGISTRY


def resolve(composition: str) -> str:
    """A composition in which recipes from files (`my_method.py:name`) are loaded and called by their names."""
    load_all()
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
    names = load_file(path)
    if not name and len(names) == 1:
        name = names[0]
    if name not in names:
        near = nearest(name, names)
        raise UserError(f"{place} defines no recipe `{name}`{near} (it defines {', '.join(names) or 'none'})")
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
