"""Formulas that a model wrote, read without running them.

reasoning-gym hands such text to `eval` or to sympy's parser, which runs it too. Here a formula is parsed to a
tree, and the tree is walked over numbers: exact fractions for puzzles, pairs of value and derivative for
antiderivatives.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import mpmath  # type: ignore[import-untyped]

LONGEST = 600  # characters of a formula
POINTS = ("0.3127", "0.7411", "1.3713", "2.1519", "3.0871", "-0.6173", "-1.9237")
DIGITS = 40


class NotAFormula(ValueError):
    """The text is not a formula of the kind that was asked for."""


def tree_of(text: str) -> ast.expr:
    """The syntax tree of a formula. Raises `NotAFormula`."""
    if len(text) > LONGEST or not text.isascii():
        raise NotAFormula("too long, or not ASCII")
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as reason:
        raise NotAFormula(str(reason)) from None


def arithmetic(text: str) -> tuple[Fraction, list[int]]:
    """Value and integers of a formula of integers, + - * / and parentheses. Raises `NotAFormula`."""
    numbers: list[int] = []

    def walk(node: ast.expr) -> Fraction:
        match node:
            case ast.Constant(value=int(value)) if not isinstance(value, bool):
                numbers.append(value)
                return Fraction(value)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -walk(operand)
            case ast.BinOp(left=left, op=op, right=right):
                a, b = walk(left), walk(right)
                match op:
                    case ast.Add():
                        return a + b
                    case ast.Sub():
                        return a - b
                    case ast.Mult():
                        return a * b
                    case ast.Div() if b:
                        return a / b
        raise NotAFormula("only integers, + - * / and parentheses")

    return walk(tree_of(text)), numbers


TERM = re.compile(r"([+-]?)(\d{1,80})?((?:\*?[A-Za-z](?:\*\*\d{1,3})?)*)")
POWER = re.compile(r"([A-Za-z])(?:\*\*(\d{1,3}))?")


def polynomial(text: str) -> dict[str, int]:
    """Coefficients of a polynomial that is written as a sum of monomials, by monomial (`x2y1`).

    A product that is not multiplied out is not such a sum. Raises `NotAFormula`.
    """
    text, at = text.replace(" ", ""), 0
    found: dict[str, int] = {}
    if not text or len(text) > 50 * LONGEST:
        raise NotAFormula("no polynomial")
    while at < len(text):
        match = TERM.match(text, at)
        if not match or match.end() == at or not (match[2] or match[3]) or (at and not match[1]):
            raise NotAFormula("not a sum of monomials")
        if (match[2] is not None) and match[3] and not match[3].startswith("*"):
            raise NotAFormula("a product needs its *")
        powers: dict[str, int] = {}
        for name, power in POWER.findall(match[3]):
            powers[name] = powers.get(name, 0) + int(power or 1)
        monomial = "".join(f"{name}{power}" for name, power in sorted(powers.items()) if power)
        value = int(match[2] or 1) * (-1 if match[1] == "-" else 1)
        found[monomial] = found.get(monomial, 0) + value
        at = match.end()
    return {monomial: value for monomial, value in found.items() if value}


Dual = tuple[Any, Any]  # a number and its derivative


def _functions() -> Mapping[str, Callable[[Dual], Dual]]:
    mp = mpmath.mp

    def rule(value: Callable[[Any], Any], slope: Callable[[Any], Any]) -> Callable[[Dual], Dual]:
        return lambda u: (value(u[0]), slope(u[0]) * u[1])

    return {
        "sin": rule(mp.sin, mp.cos),
        "cos": rule(mp.cos, lambda x: -mp.sin(x)),
        "tan": rule(mp.tan, lambda x: 1 + mp.tan(x) ** 2),
        "exp": rule(mp.exp, mp.exp),
        "log": rule(mp.log, lambda x: 1 / x),
        "ln": rule(mp.log, lambda x: 1 / x),
        "sqrt": rule(mp.sqrt, lambda x: 1 / (2 * mp.sqrt(x))),
        "sinh": rule(mp.sinh, mp.cosh),
        "cosh": rule(mp.cosh, mp.sinh),
        "tanh": rule(mp.tanh, lambda x: 1 - mp.tanh(x) ** 2),
        "asin": rule(mp.asin, lambda x: 1 / mp.sqrt(1 - x**2)),
        "acos": rule(mp.acos, lambda x: -1 / mp.sqrt(1 - x**2)),
        "atan": rule(mp.atan, lambda x: 1 / (1 + x**2)),
    }


def _power(u: Dual, v: Dual) -> Dual:
    if abs(v[0]) > 1000 or abs(u[0]) > mpmath.mpf(10) ** 100:
        raise NotAFormula("a power out of range")
    if v[1] == 0:
        return u[0] ** v[0], (v[0] * u[0] ** (v[0] - 1) * u[1] if v[0] else mpmath.mpf(0))
    value = u[0] ** v[0]
    return value, value * (v[1] * mpmath.log(u[0]) + v[0] * u[1] / u[0])


def dual(text: str, variable: str, point: str) -> Dual:
    """Value and derivative of a formula in one variable at a point. The constant `C` counts as a number.

    Raises `NotAFormula`, also for a function that is not elementary, such as an integral left standing.
    """
    functions, zero = _functions(), mpmath.mpf(0)
    names: dict[str, Dual] = {
        "C": (mpmath.mpf("0.577"), zero),
        "E": (mpmath.e, zero),
        "pi": (mpmath.pi, zero),
        variable: (mpmath.mpf(point), mpmath.mpf(1)),
    }

    def walk(node: ast.expr) -> Dual:
        match node:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                return mpmath.mpf(repr(value)) if isinstance(value, float) else mpmath.mpf(value), zero
            case ast.Name(id=name) if name in names:
                return names[name]
            case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if name in functions:
                return functions[name](walk(argument))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                u = walk(operand)
                return -u[0], -u[1]
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return walk(operand)
            case ast.BinOp(left=left, op=op, right=right):
                u, v = walk(left), walk(right)
                match op:
                    case ast.Add():
                        return u[0] + v[0], u[1] + v[1]
                    case ast.Sub():
                        return u[0] - v[0], u[1] - v[1]
                    case ast.Mult():
                        return u[0] * v[0], u[1] * v[0] + u[0] * v[1]
                    case ast.Div():
                        return u[0] / v[0], (u[1] * v[0] - u[0] * v[1]) / v[0] ** 2
                    case ast.Pow():
                        return _power(u, v)
        raise NotAFormula("only elementary functions of the variable")

    return walk(tree_of(text))


def is_antiderivative(text: str, integrand: str, variable: str) -> bool:
    """Whether the derivative of `text` is the integrand: equal to 25 digits at seven points, or fewer where
    one of the two is not defined; at least three must remain."""
    compared = 0
    with mpmath.workdps(DIGITS):
        for point in POINTS:
            try:
                slope, wanted = dual(text, variable, point)[1], dual(integrand, variable, point)[0]
                close = abs(slope - wanted) <= mpmath.mpf(10) ** -25 * (1 + abs(wanted))
            except NotAFormula:
                return False
            except (ZeroDivisionError, OverflowError, ValueError, mpmath.libmp.NoConvergence):
                continue
            if not close:
                return False
            compared += 1
    return compared >= 3
