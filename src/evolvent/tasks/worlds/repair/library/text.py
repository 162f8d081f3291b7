"""Functions on text."""

from __future__ import annotations

from evolvent.tasks.worlds.repair.library.draws import Draw, word


def slug(title: str, limit: int) -> str:
    """Lower-case words joined by hyphens, cut after whole words to at most `limit` characters."""
    words, current = [], ""
    for letter in title.lower() + " ":
        if letter.isalnum():
            current += letter
        elif current:
            words.append(current)
            current = ""
    result = ""
    for one in words:
        joined = result + "-" + one if result else one
        if len(joined) > limit:
            break
        result = joined
    return result


def wrap(text: str, width: int) -> list:
    """Lines of at most `width` characters; longer words have a line of their own."""
    lines, line = [], ""
    for one in text.split():
        if not line:
            line = one
        elif len(line) + 1 + len(one) <= width:
            line = line + " " + one
        else:
            lines.append(line)
            line = one
    if line:
        lines.append(line)
    return lines


def run_lengths(text: str) -> list:
    """Runs of equal characters: [[character, length], ...]."""
    runs: list = []
    for letter in text:
        if runs and runs[-1][0] == letter:
            runs[-1][1] += 1
        else:
            runs.append([letter, 1])
    return runs


def caesar(text: str, shift: int) -> str:
    """Letters moved on by `shift` in the alphabet, the rest as it is."""
    result = []
    for letter in text:
        if "a" <= letter <= "z":
            base = ord("a")
        elif "A" <= letter <= "Z":
            base = ord("A")
        else:
            result.append(letter)
            continue
        result.append(chr((ord(letter) - base + shift) % 26 + base))
    return "".join(result)


def edit_distance(first: str, second: str) -> int:
    """Fewest insertions, deletions and replacements from one text to the other."""
    before = list(range(len(second) + 1))
    for i, a in enumerate(first, 1):
        row = [i]
        for j, b in enumerate(second, 1):
            change = before[j - 1] + (0 if a == b else 1)
            row.append(min(change, before[j] + 1, row[j - 1] + 1))
        before = row
    return before[-1]


def longest_palindrome(text: str) -> str:
    """The longest piece that reads the same backwards, the first of equals."""
    start, length = 0, 0
    for centre in range(len(text)):
        for width in (0, 1):
            left, right = centre, centre + width
            while left >= 0 and right < len(text) and text[left] == text[right]:
                left -= 1
                right += 1
            if right - left - 1 > length:
                start, length = left + 1, right - left - 1
    return text[start : start + length]


def matches(pattern: str, text: str) -> bool:
    """Whether a pattern with ? (one character) and * (any number) covers the text."""
    reached = [True] + [False] * len(text)
    for sign in pattern:
        if sign == "*":
            for i in range(1, len(text) + 1):
                reached[i] = reached[i] or reached[i - 1]
        else:
            for i in range(len(text), 0, -1):
                reached[i] = reached[i - 1] and (sign == "?" or sign == text[i - 1])
            reached[0] = False
    return reached[-1]


CASES: dict[str, Draw] = {
    "slug": lambda r: [
        " ".join(word(r, "abX9", 5) for _ in range(r.randint(0, 6))) + r.choice(["", "!"]),
        r.randint(3, 20),
    ],
    "wrap": lambda r: [" ".join(word(r, "abc", 7) for _ in range(r.randint(0, 8))), r.randint(3, 14)],
    "run_lengths": lambda r: [word(r, "ab", 12)],
    "caesar": lambda r: [word(r, "axyzAMZ !", 12), r.randint(-30, 30)],
    "edit_distance": lambda r: [word(r, "abc", 7), word(r, "abc", 7)],
    "longest_palindrome": lambda r: [word(r, "ab", 9)],
    "matches": lambda r: [word(r, "ab?*", 5), word(r, "ab", 6)],
}
