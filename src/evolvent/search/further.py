"""The follow-up of a trial that changed one constant: the same again, the opposite, or half the way."""

from __future__ import annotations

import ast
import re

NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d*)?(?:[eE][+-]?\d+)?(?![\w.])")


def further(before: str, after: str, value: float, found: float | None) -> str | None:
    """The program with the constant moved once more; None if the change is anything else than one constant.

        from a to b, and the value rose:  b + (b - a)
        it fell, or stayed the same:      a - (b - a)
        the program failed:               (a + b) / 2

    Whole numbers stay whole; what would become negative, or would be a or b again, is None.
    """
    old, new = before.split("\n"), after.split("\n")
    places = [i for i, (x, y) in enumerate(zip(old, new, strict=False)) if x != y]
    if len(old) != len(new) or len(places) != 1:
        return None
    (place,) = places
    one, other = list(NUMBER.finditer(old[place])), list(NUMBER.finditer(new[place]))
    same = NUMBER.sub("#", old[place]) == NUMBER.sub("#", new[place])
    changed = [i for i, (x, y) in enumerate(zip(one, other, strict=False)) if x[0] != y[0]]
    if not same or len(changed) != 1:
        return None
    a, b = (ast.literal_eval(numbers[changed[0]][0]) for numbers in (one, other))
    if found is None:
        c = (a + b) / 2
    else:
        c = b + (b - a) if found > value else a - (b - a)
    c = round(c) if isinstance(a, int) and isinstance(b, int) else float(f"{c:.8g}")
    if c < 0 or c in (a, b):
        return None
    start, end = other[changed[0]].span()
    new[place] = f"{new[place][:start]}{c!r}{new[place][end:]}"
    return "\n".join(new)
