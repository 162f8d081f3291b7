"""The keys that --set takes for a recipe, read from the text of the files: importing a learner takes seconds.

The rules are those of `core.build`: a part is a class (the fields of its dataclass are keys below its path) or a
function (its keyword-only parameters are), and a field whose value is a part has keys of its own. What a recipe
computes is not followed, so that a key may be missing here that `evolvent show` lists.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import evolvent

PACKAGE = Path(evolvent.__file__).parent


@dataclass(frozen=True)
class Named:
    """A definition, and the module that it is in."""

    module: str
    node: ast.AST


@cache
def names_of(module: str) -> dict[str, ast.AST]:
    """What a module of the package defines or imports, by name; nothing for one of other packages."""
    parts = module.split(".")
    path = PACKAGE.joinpath(*parts[1:])
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    if parts[0] != PACKAGE.name or not path.is_file():
        return {}
    found: dict[str, ast.AST] = {}
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            found |= {a.asname or a.name: ast.ImportFrom(node.module, [a], node.level) for a in node.names}
        elif isinstance(node, ast.ClassDef | ast.FunctionDef):
            found[node.name] = node
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found[node.targets[0].id] = node.value
    return found


def find(module: str, expression: ast.AST | None) -> Named | None:
    """What a name, or a name of a module, stands for; None for what is neither."""
    if isinstance(expression, ast.Attribute) and isinstance(expression.value, ast.Name):
        owner = names_of(module).get(expression.value.id)
        if isinstance(owner, ast.ImportFrom):
            return find(f"{owner.module}.{owner.names[0].name}", ast.Name(expression.attr))
    if not isinstance(expression, ast.Name):
        return None
    node = names_of(module).get(expression.id)
    if isinstance(node, ast.ImportFrom):
        return find(node.module or "", ast.Name(node.names[0].name))
    return Named(module, node) if node is not None else None


def fields(part: Named) -> dict[str, Named]:
    """The keys of a part, each with its default as it is written."""
    node = part.node
    if isinstance(node, ast.FunctionDef):
        pairs = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
        return {one.arg: Named(part.module, default or ast.Constant(None)) for one, default in pairs}
    found: dict[str, Named] = {}
    if isinstance(node, ast.ClassDef):
        for base in node.bases:
            found |= fields(above) if (above := find(part.module, base)) else {}
        if not any("dataclass" in ast.unparse(one) for one in node.decorator_list):
            return found
        for line in node.body:
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
                value = ast.unparse(line.value) if line.value else ""
                if "ClassVar" not in ast.unparse(line.annotation) and "init=False" not in value:
                    found[line.target.id] = Named(part.module, line.value or ast.Constant(None))
    return found


@cache
def recipe_at(name: str) -> Named | None:
    """The call of `recipe` that makes a recipe of the package."""
    for path in sorted((PACKAGE / "recipes").rglob("*.py")):
        if f'"{name}"' not in path.read_text("utf-8"):
            continue
        module = ".".join((PACKAGE.name, *path.relative_to(PACKAGE).with_suffix("").parts))
        for node in names_of(module).values():
            if isinstance(node, ast.Call) and called(node) == ("recipe", name):
                return Named(module, node)
    return None


def called(node: ast.Call) -> tuple[str, str]:
    """The function that a call names, and its first argument where that is text."""
    first = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else ""
    return ast.unparse(node.func), first if isinstance(first, str) else ""


def puts(recipe: Named, role: str = "") -> Iterator[tuple[str, Named, bool]]:
    """Path, value, and whether it wraps what is there: of the ancestors first."""
    call = recipe.node
    if not isinstance(call, ast.Call) or called(call)[0] != "recipe":
        return
    if len(call.args) > 1 and (parent := find(recipe.module, call.args[1])):
        yield from puts(parent, role)
    for keyword in call.keywords:
        if keyword.arg == "roles" and isinstance(keyword.value, ast.Dict):
            for name, base in zip(keyword.value.keys, keyword.value.values, strict=True):
                if isinstance(name, ast.Constant) and (found := find(recipe.module, base)):
                    yield from puts(found, f"{name.value!s}/")
    for op in call.args[2:]:
        verb, path = called(op) if isinstance(op, ast.Call) else ("", "")
        if not isinstance(op, ast.Call) or verb not in ("put", "wrap") or not path:
            continue
        path = path if "/" in path else role + path
        yield path, Named(recipe.module, op.args[1]), verb == "wrap"
        for keyword in op.keywords if verb == "put" else ():
            yield f"{path}.{keyword.arg}", Named(recipe.module, keyword.value), False


def keys_of(name: str) -> list[str]:
    """The keys of a recipe of the package; none for one that there is not."""
    recipe = recipe_at(name)
    if recipe is None:
        return []
    values: dict[str, Named] = {}
    wraps: list[tuple[str, Named]] = []
    for path, value, wrapping in puts(recipe):
        if wrapping:
            wraps.append((path, value))
            continue
        values = {p: v for p, v in values.items() if not p.startswith(f"{path}.")}  # what was below goes with it
        values[path] = value
    found: set[str] = set()

    def visit(path: str, value: Named) -> None:
        found.add(path)
        part = find(value.module, value.node)
        for name, default in fields(part).items() if part else ():
            below = f"{path}.{name}"
            visit(below, values.get(below, default))

    for path, value in values.items():
        if "." not in path:
            visit(path, value)
    for path, value in wraps:
        from evolvent.core.build import snake  # not above: it imports what takes as long as all the rest

        part = find(value.module, value.node)
        if path in found and part and isinstance(part.node, ast.ClassDef | ast.FunctionDef):
            for name, default in fields(part).items():
                if name != "inner":
                    visit(f"{path}.{snake(part.node.name)}.{name}", default)
    return sorted(found)
