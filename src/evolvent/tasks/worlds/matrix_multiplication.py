"""Matrix multiplication with few products: decompositions of its tensor, checked exactly.

    n x m by m x p:  sum over r of U[r, (i, j)] V[r, (j', k)] W[r, (i', k')] = 1 if j = j', i = i', k = k', else 0
    value = -R, minus the number of products

A decomposition multiplies matrices whose entries do not commute, and so blocks of larger ones. U, V, W are whole or
half numbers; all sums are of whole ones. The seed program has the n m p products of the definition.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from jaxtyping import Int

from evolvent.core.errors import UserError
from evolvent.guard.sandbox import Call, Limits
from evolvent.tasks.evaluation import Evaluation, invalid, number
from evolvent.tasks.program import PROGRAM, World

LARGEST = 1000
SHAPE = re.compile(r"([1-5])x([1-5])x([1-5])")

GOAL = """Multiply a {n} x {m} matrix A by an {m} x {p} matrix B with as few products as possible.
products(n, m, p, rng) returns a list of products (u, v, w), three lists of whole or half numbers: u has {nm} of A, row
by row, v has {mp} of B, and w has {np} of C = A B, such that C[i, k] is the sum over products of
w[i, k] (u . A) (v . B) for all A and B. `walk` goes from one right list to others."""

SEED = '''"""Products (u, v, w) that multiply matrices: C = sum of w (u . A) (v . B)."""

import numpy as np


def definition(n, m, p):
    """One product for each i, j, k."""
    found = []
    for i in range(n):
        for j in range(m):
            for k in range(p):
                u, v, w = [0] * (n * m), [0] * (m * p), [0] * (n * p)
                u[i * m + j] = v[j * p + k] = w[i * p + k] = 1
                found.append((tuple(u), tuple(v), tuple(w)))
    return found


STRASSEN = (  # u, v, w by rows
    "+00+ +00+ +00+", "00++ +000 00+-", "+000 0+0- 0+0+", "000+ -0+0 +0+0", "++00 000+ -+00", "-0+0 ++00 000+",
    "0+0- 00++ +000",
)


def tiles(n, m, p):
    """Seven products (Strassen, 1969) for each tile of 2 x 2 x 2, the definition elsewhere."""
    signs, found = {"+": 1, "-": -1, "0": 0}, []
    seven = [tuple(tuple(signs[x] for x in f) for f in line.split()) for line in STRASSEN]
    for i, j, k in [(i, j, k) for i in range(0, n, 2) for j in range(0, m, 2) for k in range(0, p, 2)]:
        a, b, c = min(2, n - i), min(2, m - j), min(2, p - k)
        for factors in seven if a == b == c == 2 else definition(a, b, c):
            places = (i, j, m, b), (j, k, p, c), (i, k, p, c)
            wide = [[0] * (n * m), [0] * (m * p), [0] * (n * p)]
            for row, small, (top, left, width, step) in zip(wide, factors, places):
                for place, x in enumerate(small):
                    row[(top + place // step) * width + left + place % step] = x
            found.append(tuple(map(tuple, wide)))
    return found


def plain(factors):
    """The same product with the first number of u and of v above 0."""
    u, v, w = factors
    for flip in (next(filter(None, u), 1) < 0, next(filter(None, v), 1) < 0):
        w = tuple(-x for x in w) if flip else w
    return tuple(tuple(x if next(filter(None, f), 1) > 0 else -x for x in f) for f in (u, v)) + (w,)


def walk(found, rng, steps, most=1):
    """Random flips: of two products with a factor in common, a b c + a d e = a (b + s d) c + a d (e - s c), s = 1, -1.

    What becomes 0 goes. Numbers stay within -most .. most; the latest of the shortest lists that were seen is given
    back.
    """
    found = best = [plain([list(map(float, x)) for x in f]) for f in found]
    for draw in rng.random((int(np.clip(steps, 0, 100000)), 4)):
        mode, one = int(draw[0] * 3), int(draw[1] * len(found))
        common = found[one][mode]
        turned = tuple(-x for x in common) if mode == 2 else None
        same = [i for i, f in enumerate(found) if (f[mode] == common or f[mode] == turned) and i != one]
        if not same:
            continue
        other, (b, c) = same[int(draw[2] * len(same))], [x for x in range(3) if x != mode]
        if draw[3] < 0.5:
            b, c = c, b
        left, right = list(found[one]), list(found[other])
        if right[mode] != common:
            right[mode], right[b] = common, tuple(-x for x in right[b])
        s = 1 if int(draw[3] * 1000) % 2 else -1
        left[b], right[c] = (
            tuple(x + s * y for x, y in zip(left[b], right[b])),
            tuple(x - s * y for x, y in zip(right[c], left[c])),
        )
        if max(map(abs, left[b] + right[c])) > most:
            continue
        new = {one: plain(left), other: plain(right)}
        found = [new.get(i, f) for i, f in enumerate(found)]
        found = [f for i, f in enumerate(found) if i not in new or all(map(any, f))]
        if len(found) <= len(best):
            best = found
    return best


def split(found, place, rng):
    """One product more: a b c = a (b - d) c + a d c, with d the factor of another product."""
    place, other = int(place) % len(found), found[int(rng.integers(len(found)))]
    a, b, c = found[place]
    rest = tuple(x - y for x, y in zip(b, other[1]))
    more = [(a, rest, c), (a, other[1], c)]
    return [*found[:place], *found[place + 1 :], *(f for f in more if all(map(any, f)))]


# EVOLVE-BLOCK-START
def products(n, m, p, rng):
    """Those of the definition."""
    found = definition(n, m, p)
    return found
# EVOLVE-BLOCK-END


def run(n, m, p, seed):
    """What is evaluated."""
    return [[list(map(float, x)) for x in f] for f in products(n, m, p, np.random.default_rng(seed))]
'''

COMPONENTS = (
    "found = walk(found, rng, 500)",
    "found = walk(found, rng, 20000)",
    "found = walk(found, rng, 2000, 2)",
    "found = split(found, rng.integers(100), rng)",
    "found = min([walk(found, rng, 5000) for i in range(4)], key=len)",
    "for i in range(3):\n    found = walk(split(found, i, rng), rng, 5000)",
    "found = tiles(n, m, p)",
    "found = sorted(found)",
    "found = [found[i] for i in rng.permutation(len(found))]",
    "found = found[1:]",
    "found = found[: len(found) // 2] + found[len(found) // 2 :]",
    "found = min(found, walk(definition(n, m, p), rng, 20000), key=len)",
)

KNOWN = {
    (2, 2, 2): ((-7.0, "Strassen, proved optimal", "1969"),),
    (3, 3, 3): ((-23.0, "Laderman", "1976"),),
    (2, 4, 5): ((-32.0, "AlphaEvolve", "2025-05"), (-33.0, "Hopcroft and Kerr", "1971")),
    (4, 4, 4): ((-48.0, "AlphaEvolve, with complex numbers", "2025-05"), (-49.0, "Strassen, twice", "1969")),
}

Shape = tuple[int, int, int]


def tensor(shape: Shape) -> Int[np.ndarray, "nm mp np"]:
    """The tensor of matrix multiplication, of zeros and ones."""
    n, m, p = shape
    eye_n, eye_m, eye_p = np.eye(n, dtype=int), np.eye(m, dtype=int), np.eye(p, dtype=int)
    return np.einsum("ia,jb,kc->ijbkac", eye_n, eye_m, eye_p).reshape(n * m, m * p, n * p)


def judge(value: Any, shape: Shape) -> Evaluation:
    """The verdict on products, each three lists of whole or half numbers."""
    n, m, p = shape
    widths, rows = (n * m, m * p, n * p), value if isinstance(value, list) else []
    if not 1 <= len(rows) <= 2 * n * m * p or not all(isinstance(f, list) and len(f) == 3 for f in rows):
        return invalid(f"products({n}, {m}, {p}, rng) must return 1 to {2 * n * m * p} products (u, v, w)")
    for place, factors in enumerate(rows):
        if any(not isinstance(x, list) or len(x) != width for x, width in zip(factors, widths, strict=True)):
            return invalid(f"product {place} must have {widths[0]}, {widths[1]} and {widths[2]} numbers")
        numbers = [x for factor in factors for x in factor]
        if any(number(x) is None or abs(x) > LARGEST or not float(2 * x).is_integer() for x in numbers):
            return invalid(f"product {place} has numbers that are not whole or half ones up to {LARGEST}")
    doubled = [np.array([[int(2 * x) for x in f[k]] for f in rows], np.int64) for k in range(3)]
    left = np.einsum("rx,ry,rz->xyz", *doubled) - 8 * tensor(shape)  # whole numbers below 2^63: 250 * 2000^3 < 2^41
    if left.any():
        return invalid(f"{int((left != 0).sum())} of {left.size} coefficients of the product are wrong")
    return Evaluation(-float(len(rows)))


def world(size: str = "2x4x5") -> World:
    """The world of n x m by m x p. `UserError` for what is no such shape."""
    if not (found := SHAPE.fullmatch(size)):
        raise UserError(f"matrix-multiplication:{size}: give n x m x p, each from 1 to 5, as in 2x4x5")
    n, m, p = shape = (int(found[1]), int(found[2]), int(found[3]))
    return World(
        name=f"program:matrix-multiplication:{size}",
        goal=GOAL.format(n=n, m=m, p=p, nm=n * m, mp=m * p, np=n * p),
        seed=SEED,
        call=lambda text, names: Call({PROGRAM: text}, "program", "run", (*shape, 0), seed=0),
        judge=lambda value, names: judge(value, shape),
        limits=Limits(seconds=5.0),
        components=COMPONENTS,
        preload=("numpy",),
        known=KNOWN.get(shape, ()),
    )
