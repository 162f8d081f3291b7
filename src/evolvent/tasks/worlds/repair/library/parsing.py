"""Functions that read notations."""

from __future__ import annotations

from random import Random

from evolvent.tasks.worlds.repair.library.draws import Draw, word


def balanced(text: str) -> bool:
    """Whether brackets of three kinds close in the right order."""
    pairs = {")": "(", "]": "[", "}": "{"}
    waiting: list = []
    for sign in text:
        if sign in "([{":
            waiting.append(sign)
        elif sign in pairs and (not waiting or waiting.pop() != pairs[sign]):
            return False
    return not waiting


def fields(line: str) -> list:
    """The fields of a line of CSV; a quote within quotes is written twice."""
    found, current, quoted, i = [], "", False, 0
    while i < len(line):
        sign = line[i]
        if quoted:
            if sign == '"' and line[i + 1 : i + 2] == '"':
                current += '"'
                i += 1
            elif sign == '"':
                quoted = False
            else:
                current += sign
        elif sign == '"':
            quoted = True
        elif sign == ",":
            found.append(current)
            current = ""
        else:
            current += sign
        i += 1
    found.append(current)
    return found


def postfix(words: list) -> int:
    """The value of whole numbers and + - * in postfix order; `ValueError` if it is no expression."""
    stack: list = []
    for one in words:
        if one in ("+", "-", "*"):
            if len(stack) < 2:
                raise ValueError("too few numbers")
            right, left = stack.pop(), stack.pop()
            if one == "+":
                stack.append(left + right)
            elif one == "-":
                stack.append(left - right)
            else:
                stack.append(left * right)
        else:
            stack.append(int(one))
    if len(stack) != 1:
        raise ValueError("too many numbers")
    return stack[0]


def terms(text: str) -> list:
    """The numbers of a sum without brackets: 12+3-4 is [12, 3, -4]."""
    found, number, sign = [], "", 1
    for letter in text + "+":
        if letter in "+-":
            if number:
                found.append(sign * int(number))
                number, sign = "", 1
            if letter == "-":
                sign = -sign
        elif letter.isdigit():
            number += letter
    return found


def options(words: list) -> dict:
    """--name value, --flag and the rest, as {"name": ..., "flag": true, "": [...]}."""
    found: dict = {}
    rest, i = [], 0
    while i < len(words):
        one = words[i]
        if one.startswith("--"):
            if i + 1 < len(words) and not words[i + 1].startswith("--"):
                found[one[2:]] = words[i + 1]
                i += 1
            else:
                found[one[2:]] = True
        else:
            rest.append(one)
        i += 1
    found[""] = rest
    return found


def version_order(first: str, second: str) -> int:
    """-1, 0 or 1: which of two versions such as 1.10 and 1.9.2 is older."""
    a = [int(part) for part in first.split(".")]
    b = [int(part) for part in second.split(".")]
    while len(a) < len(b):
        a.append(0)
    while len(b) < len(a):
        b.append(0)
    for x, y in zip(a, b):  # noqa: B905
        if x < y:
            return -1
        if x > y:
            return 1
    return 0


def nested(text: str) -> list:
    """(a(bc)d) as lists: ["a", ["b", "c"], "d"]; `ValueError` for brackets that do not fit."""
    root: list = []
    stack = [root]
    for sign in text:
        if sign == "(":
            inner: list = []
            stack[-1].append(inner)
            stack.append(inner)
        elif sign == ")":
            if len(stack) == 1:
                raise ValueError("nothing to close")
            stack.pop()
        else:
            stack[-1].append(sign)
    if len(stack) > 1:
        raise ValueError("something is open")
    return root


def sums(rng: Random) -> list[str]:
    """An expression in postfix order, now and then with a sign too many or too few."""
    count = rng.randint(1, 4)
    numbers = [str(rng.randint(-3, 9)) for _ in range(count)]
    return numbers + [rng.choice("+-*") for _ in range(count - 1 + rng.choice([0, 0, 0, 0, 1, -1]))]


CASES: dict[str, Draw] = {
    "balanced": lambda r: [
        r.choice([word(r, "()[]", 5), "([])" * r.randint(0, 2) + word(r, "(){}a", 2), "({" + word(r, "[]", 2) + "})"])
    ],
    "fields": lambda r: [word(r, 'ab,,""', 10)],
    "postfix": lambda r: [sums(r)],
    "terms": lambda r: [
        "".join(r.choice(["+", "-", "--", " "]) + str(r.randint(0, 99)) for _ in range(r.randint(0, 4)))
    ],
    "options": lambda r: [[r.choice(["--a", "--b", "x", "y", "--"]) for _ in range(r.randint(0, 5))]],
    "version_order": lambda r: [
        ".".join(str(r.randint(0, 2)) for _ in range(r.randint(1, 3))),
        ".".join(str(r.randint(0, 2)) for _ in range(r.randint(1, 3))),
    ],
    "nested": lambda r: [r.choice([word(r, "a()", 5), "(" + word(r, "ab", 3) + "(c)" + word(r, "d", 2) + ")"])],
}
