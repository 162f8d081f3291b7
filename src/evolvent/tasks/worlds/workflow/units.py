"""Units and exact numbers."""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction

BASE = {  # unit -> (the unit that it is converted to, how many of these it is)
    "km": ("km", Fraction(1)),
    "mi": ("km", Fraction(1609344, 1000000)),
    "m": ("km", Fraction(1, 1000)),
    "kg": ("kg", Fraction(1)),
    "lb": ("kg", Fraction(45359237, 100000000)),
    "km/h": ("km/h", Fraction(1)),
    "mph": ("km/h", Fraction(1609344, 1000000)),
    "coins/kg": ("coins/kg", Fraction(1)),
    "coins/lb": ("coins/kg", Fraction(100000000, 45359237)),
}
DIGITS = Context(prec=15)


class ToolError(ValueError):
    """A call that makes no sense, with why."""


def convert(number: str, unit: str) -> tuple[Fraction, str]:
    """The number in the unit that others of the kind are converted to."""
    if unit not in BASE:
        raise ToolError(f"no unit {unit!r:.40}, only {', '.join(BASE)}")
    base, factor = BASE[unit]
    return exact(number) * factor, base


def exact(text: str) -> Fraction:
    """A decimal number. `ToolError` for what is none."""
    try:
        if len(text) > 40 or "/" in text or "e" in text.lower():
            raise ValueError
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise ToolError(f"{text!r:.40} is no number") from None


def show(number: Fraction) -> str:
    """A number with at most 15 digits."""
    found = DIGITS.divide(Decimal(number.numerator), Decimal(number.denominator))
    return f"{found.normalize():f}"


def rounded(number: Fraction, decimals: int) -> str:
    """With so many decimals, half away from zero."""
    scaled = abs(number) * 10**decimals
    whole = int(scaled + Fraction(1, 2))
    sign = "-" if number < 0 and whole else ""
    text = f"{whole:0{decimals + 1}d}"
    return sign + (f"{text[:-decimals]}.{text[-decimals:]}" if decimals else text)
