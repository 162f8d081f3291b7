"""Recipes: one file a method, in folders by family. Importing this package registers nothing; `load_all` does."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from evolvent.core.recipe import REGISTRY, Recipe


@cache
def load_all() -> dict[str, Recipe]:
    """Import every module of every family; the registry of recipes, by name."""
    for module in pkgutil.walk_packages(__path__, __name__ + "."):
        importlib.import_module(module.name)
    return REGISTRY
