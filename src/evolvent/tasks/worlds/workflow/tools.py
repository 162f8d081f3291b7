"""The tools of the nodes: a look-up in tables, a converter of units, a calculator. All are exact, and never guess."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

from evolvent.tasks.worlds.workflow.questions import Question
from evolvent.tasks.worlds.workflow.units import ToolError, convert, exact, show

FOUND = 3  # records that a look-up brings at most
OPERATORS: Mapping[type, Any] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
}
SCHEMAS = {
    "lookup": ("Find records in a table whose name begins with a text.", ("table", "name")),
    "converter": ("Convert a number to km, kg, km/h or coins/kg.", ("number", "unit")),
    "calculator": ("Calculate with + - * / and brackets.", ("expression",)),
}


def use(tool: str, arguments: Mapping[str, Any], question: Question) -> str:
    """What a tool answers. `ToolError` for a call that it cannot carry out."""
    if tool not in SCHEMAS:
        raise ToolError(f"there is no tool {tool}")
    missing = [name for name in SCHEMAS[tool][1] if name not in arguments]
    if missing:
        raise ToolError(f"{tool} needs {missing[0]}")
    if tool == "lookup":
        return lookup(str(arguments["table"]), str(arguments["name"]), question)
    if tool == "converter":
        number, unit = convert(str(arguments["number"]), str(arguments["unit"]))
        return f"{show(number)} {unit}"
    return show(calculate(str(arguments["expression"])))


def lookup(table: str, name: str, question: Question) -> str:
    """Up to `FOUND` records whose name begins like this, one a line."""
    rows = question.tables.get(table)
    if rows is None:
        raise ToolError(f"there is no table {table!r:.40}, only {', '.join(question.tables)}")
    return "\n".join(row for row in rows if name and row.startswith(name)).strip() or "nothing found"


@lru_cache(100_000)
def calculate(expression: str) -> Fraction:
    """The value of an expression of numbers. `ToolError` for anything else; nothing is executed."""
    try:
        if len(expression) > 300:
            raise ToolError("the expression is too long")
        return _value(ast.parse(expression.strip(), mode="eval").body, expression.strip())
    except (SyntaxError, ValueError, RecursionError, MemoryError, ZeroDivisionError) as reason:
        raise ToolError(f"cannot calculate {expression!r:.60}: {reason}") from None


def _value(node: ast.expr, text: str) -> Fraction:
    match node:
        case ast.Constant(value=int() | float()) if not isinstance(node.value, bool):
            return exact(ast.get_source_segment(text, node) or "")
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_value(inner, text)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            found: Fraction = OPERATORS[type(op)](_value(left, text), _value(right, text))
            return found
    raise ToolError("only numbers, + - * / and brackets")
