"""Functions on numbers."""

from __future__ import annotations

from evolvent.tasks.worlds.repair.library.draws import Draw, ints


def factors(n: int) -> list:
    """Prime factors in ascending order, with repeats; none below 2."""
    found, divisor = [], 2
    while divisor * divisor <= n:
        while n % divisor == 0:
            found.append(divisor)
            n //= divisor
        divisor += 1
    if n > 1:
        found.append(n)
    return found


def primes(limit: int) -> list:
    """Primes up to and including `limit`."""
    marks = [True] * (limit + 1)
    found = []
    for n in range(2, limit + 1):
        if marks[n]:
            found.append(n)
            for multiple in range(n * n, limit + 1, n):
                marks[multiple] = False
    return found


def common_divisor(a: int, b: int) -> int:
    """The greatest one."""
    while b:
        a, b = b, a % b
    return abs(a)


def lowest_terms(top: int, bottom: int) -> list:
    """A fraction in lowest terms with a positive denominator."""
    if bottom == 0:
        raise ValueError("a denominator must not be 0")
    shared = common_divisor(top, bottom)
    if bottom < 0:
        top, bottom = -top, -bottom
    return [top // shared, bottom // shared]


def power_mod(base: int, exponent: int, modulus: int) -> int:
    """base^exponent mod modulus by squaring."""
    result = 1 % modulus
    base %= modulus
    while exponent > 0:
        if exponent % 2 == 1:
            result = result * base % modulus
        base = base * base % modulus
        exponent //= 2
    return result


def to_base(n: int, base: int) -> str:
    """Digits of a number in a base from 2 to 16."""
    if n == 0:
        return "0"
    sign = "-" if n < 0 else ""
    n = abs(n)
    digits = ""
    while n > 0:
        n, rest = divmod(n, base)
        digits = "0123456789abcdef"[rest] + digits
    return sign + digits


ROMAN = [
    [1000, "M"], [900, "CM"], [500, "D"], [400, "CD"], [100, "C"], [90, "XC"],
    [50, "L"], [40, "XL"], [10, "X"], [9, "IX"], [5, "V"], [4, "IV"], [1, "I"],
]  # fmt: skip


def roman(n: int) -> str:
    """A Roman numeral, for 1 to 3999; `ValueError` otherwise."""
    if n < 1 or n > 3999:
        raise ValueError("out of range")
    text = ""
    for value, letters in ROMAN:
        while n >= value:  # type: ignore[operator]
            text += letters  # type: ignore[operator]
            n -= value  # type: ignore[operator]
    return text


def square_root(n: int) -> int:
    """The whole part of the root, by bisection; `ValueError` below 0."""
    if n < 0:
        raise ValueError("no root")
    low, high = 0, n + 1
    while high - low > 1:
        middle = (low + high) // 2
        if middle * middle <= n:
            low = middle
        else:
            high = middle
    return low


def polynomial(coefficients: list, x: int) -> int:
    """The value at x; the constant term comes first."""
    value = 0
    for coefficient in reversed(coefficients):
        value = value * x + coefficient
    return value


CASES: dict[str, Draw] = {
    "factors": lambda r: [r.choice([r.randint(0, 60), r.randint(60, 900)])],
    "primes": lambda r: [r.randint(1, 60)],
    "lowest_terms": lambda r: [r.randint(-30, 30), r.randint(-12, 12)],
    "power_mod": lambda r: [r.randint(-9, 30), r.randint(0, 20), r.randint(1, 30)],
    "to_base": lambda r: [r.choice([0, r.randint(-300, 300)]), r.randint(2, 16)],
    "roman": lambda r: [r.choice([r.randint(-2, 20), r.randint(1, 4002)])],
    "square_root": lambda r: [r.choice([r.randint(-3, 30), r.randint(0, 999), r.randint(0, 30) ** 2])],
    "polynomial": lambda r: [ints(r, 5), r.randint(-4, 4)],
}
