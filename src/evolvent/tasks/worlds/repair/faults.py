"""Faults: small changes of a program's syntax tree, each of a kind that programmers make.

They are numbered in the order of the tree, so that kind and number name a fault for good.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

Change = tuple[Callable[[], None], Callable[[], None]]  # make it, take it back
PARTNERS = {
    ast.Lt: (ast.LtE, ast.Gt), ast.LtE: (ast.Lt,), ast.Gt: (ast.GtE, ast.Lt), ast.GtE: (ast.Gt,),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
    ast.Add: (ast.Sub,), ast.Sub: (ast.Add,), ast.Mult: (ast.Add,), ast.FloorDiv: (ast.Mult, ast.Mod),
    ast.Mod: (ast.FloorDiv,), ast.And: (ast.Or,), ast.Or: (ast.And,),
}  # fmt: skip
CALLED = {
    "min": "max", "max": "min", "any": "all", "all": "any", "append": "extend", "startswith": "endswith",
    "sorted": "list", "lower": "upper", "add": "discard",
}  # fmt: skip


def attribute(node: Any, name: str, new: Any) -> Change:
    """Another value of a node's field."""
    old = getattr(node, name)
    return lambda: setattr(node, name, new), lambda: setattr(node, name, old)


def item(items: list[Any], i: int, *new: Any) -> Change:
    """Others in the place of one of a list's items."""
    old = items[i]

    def undo() -> None:
        items[i : i + len(new)] = [old]

    return lambda: items.__setitem__(slice(i, i + 1), list(new)), undo


def comparison(tree: ast.AST) -> Iterator[Change]:
    """Another operator between two sides."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            for i, op in enumerate(node.ops):
                yield from (item(node.ops, i, new()) for new in PARTNERS.get(type(op), ()))


def arithmetic(tree: ast.AST) -> Iterator[Change]:
    """Another operator in a term, or in an assignment that adds."""
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp | ast.AugAssign):
            yield from (attribute(node, "op", new()) for new in PARTNERS.get(type(node.op), ()))


def connective(tree: ast.AST) -> Iterator[Change]:
    """`or` for `and`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.BoolOp):
            yield from (attribute(node, "op", new()) for new in PARTNERS[type(node.op)])


def off_by_one(tree: ast.AST) -> Iterator[Change]:
    """A whole number one too large or too small."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and type(node.value) is int:
            yield from (attribute(node, "value", node.value + d) for d in (1, -1))


def wrong_constant(tree: ast.AST) -> Iterator[Change]:
    """The other truth value, another number or an empty text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            if isinstance(node.value, bool):
                yield attribute(node, "value", not node.value)
            elif isinstance(node.value, int) and node.value > 2:
                yield attribute(node, "value", node.value * 2)
            elif isinstance(node.value, str) and len(node.value) == 1:
                yield attribute(node, "value", "")


def inverted_condition(tree: ast.AST) -> Iterator[Change]:
    """A condition that says the contrary."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If | ast.IfExp | ast.While):
            test = node.test
            plain = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else None
            yield attribute(node, "test", plain or ast.UnaryOp(ast.Not(), test))


def missing_statement(tree: ast.AST) -> Iterator[Change]:
    """A statement that is left out."""
    for body in bodies(tree):
        for i, node in enumerate(body):
            if isinstance(node, ast.Assign | ast.AugAssign | ast.Expr | ast.Continue | ast.Break | ast.If):
                yield item(body, i, *([ast.Pass()] if len(body) == 1 else []))


def wrong_order(tree: ast.AST) -> Iterator[Change]:
    """Two neighbouring statements the other way round."""
    for body in bodies(tree):
        for i in range(len(body) - 1):
            if all(isinstance(n, ast.Assign | ast.AugAssign | ast.Expr | ast.If) for n in body[i : i + 2]):
                yield swap(body, i, i + 1)


def swapped_arguments(tree: ast.AST) -> Iterator[Change]:
    """Two arguments, or the two sides of - // % <, the other way round."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and len(node.args) == 2:
            yield swap(node.args, 0, 1)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub | ast.FloorDiv | ast.Mod):
            yield exchange(node)


def wrong_variable(tree: ast.AST) -> Iterator[Change]:
    """The name of another variable of the same function."""
    for function in (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)):
        names = sorted({n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)})
        names += [a.arg for a in function.args.args]
        for node in ast.walk(function):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names:
                yield from (attribute(node, "id", name) for name in names if name != node.id)


def wrong_call(tree: ast.AST) -> Iterator[Change]:
    """A function or method that is easily mistaken for it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in CALLED:
            yield attribute(node, "id", CALLED[node.id])
        elif isinstance(node, ast.Attribute) and node.attr in CALLED:
            yield attribute(node, "attr", CALLED[node.attr])


def wrong_bound(tree: ast.AST) -> Iterator[Change]:
    """A slice without one of its ends."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Slice):
            yield from (attribute(node, end, None) for end in ("lower", "upper") if getattr(node, end) is not None)


def wrong_default(tree: ast.AST) -> Iterator[Change]:
    """0 or nothing is returned, or meant at the start, in the place of something else."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Return | ast.Assign) and isinstance(node.value, ast.Constant | ast.UnaryOp):
            for new in (0, None):
                yield attribute(node, "value", ast.Constant(new))


KINDS: dict[str, Callable[[ast.AST], Iterator[Change]]] = {
    kind.__name__: kind
    for kind in (
        comparison, arithmetic, connective, off_by_one, wrong_constant, inverted_condition, missing_statement,
        wrong_order, swapped_arguments, wrong_variable, wrong_call, wrong_bound, wrong_default,
    )
}  # fmt: skip


def faults(source: str) -> Iterator[tuple[str, int, str]]:
    """Kind, number and faulty program of every fault that can be planted in a program."""
    tree = ast.parse(source)
    for kind, find in KINDS.items():
        for number, (make, undo) in enumerate(list(find(tree))):
            make()
            yield kind, number, ast.unparse(tree) + "\n"
            undo()


def planted(source: str, kind: str, number: int) -> str:
    """A program with one fault."""
    tree = ast.parse(source)
    make, _ = list(KINDS[kind](tree))[number]
    make()
    return ast.unparse(tree) + "\n"


def bodies(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    """Lists of statements, without those of modules and without docstrings of functions in front."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module):
            for name in ("body", "orelse"):
                body = getattr(node, name, None)
                if isinstance(body, list) and body:
                    yield body


def swap(items: list[Any], i: int, j: int) -> Change:
    """Two items of a list the other way round; undone in the same way."""

    def turn() -> None:
        items[i], items[j] = items[j], items[i]

    return turn, turn


def exchange(node: ast.BinOp) -> Change:
    """The two sides of a term the other way round."""

    def turn() -> None:
        node.left, node.right = node.right, node.left

    return turn, turn


__all__ = ["KINDS", "faults", "planted"]
