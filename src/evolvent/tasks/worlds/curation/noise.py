"""What happened to the documents on their way: each category has noise of its own, and spam is in all of them.

prose      navigation and notices around it, teasers that break off, promotion, mojibake in every third document
code       markup and entities inside of it, buttons of the page, promotion
tables     headers of pages, rows twice, mojibake in every second document
dialogue   times before each line, credits of subtitles, lines twice, markup
"""

from __future__ import annotations

import html
import re

import numpy as np

from evolvent.tasks.worlds.curation.texts import PLACES, THINGS, clause, one

NAVIGATION = (
    "Home | News | Weather | Contact us",
    "Skip to main content | Sign in | Register",
    "Share this page: Mail | Print | Feed",
)
NOTICES = (
    "We use cookies to give you the best experience on our website.",
    "Copyright 2019 Riverside Media Group. All rights reserved.",
    "Sign up for our newsletter to stay informed.",
)
BUTTONS = ("Copy code to clipboard", "Raw Blame History Permalink", "Was this answer helpful? Yes No")
CREDITS = (
    "Subtitles by the CineText team - www.cinetext.example",
    "Transcript generated automatically, please report errors",
)
OFFERS = (
    "BUY NOW!!! {n}% off every {a} at www.best-{a}-deals.example",
    "Click here to win a free {a}!!! http://prizes.example/{a}{n}",
    "Limited offer!!! Order your {a} today, visit http://shop.example/{n}",
)
SPAM = 0.12  # share of documents that are nothing else


def noisy(category: str, clean: str, rng: np.random.Generator) -> str:
    """The document as it was collected."""
    if rng.random() < SPAM:
        return spam(rng)
    return {"prose": _prose, "code": _code, "tables": _tables, "dialogue": _dialogue}[category](clean, rng)


def offer(rng: np.random.Generator) -> str:
    """A line of promotion."""
    return one(rng, OFFERS).format(a=one(rng, THINGS), n=rng.integers(10, 99))


def spam(rng: np.random.Generator) -> str:
    """A document of promotion."""
    return "\n".join(offer(rng) for _ in range(rng.integers(6, 14)))


def mojibake(text: str) -> str:
    """UTF-8 read as Windows-1252, as far as that has the bytes."""
    return "".join(_wrong(c) for c in text)


def _wrong(c: str) -> str:
    try:
        return c.encode("utf-8").decode("cp1252")
    except UnicodeDecodeError:
        return c


def _somewhere(lines: list[str], new: str, rng: np.random.Generator) -> None:
    lines.insert(int(rng.integers(len(lines) + 1)), new)


def _twice(lines: list[str], share: float, rng: np.random.Generator) -> list[str]:
    return [x for line in lines for x in ([line] * (1 + (len(line) >= 12 and rng.random() < share)))]


def _prose(text: str, rng: np.random.Generator) -> str:
    if rng.random() < 0.33:
        text = mojibake(text)
    lines = text.split("\n")
    for _ in range(rng.integers(1, 3)):
        _somewhere(lines, f"{clause(rng)} {one(rng, PLACES)[:2]}... Read more »", rng)
    if rng.random() < 0.5:
        _somewhere(lines, offer(rng), rng)
    top = [x for x in NAVIGATION if rng.random() < 0.6]
    return "\n".join([*top, *lines, *(x for x in NOTICES if rng.random() < 0.6)])


def _code(text: str, rng: np.random.Generator) -> str:
    escaped = html.escape(text, quote=False)
    words = r"\b(def|for|if|else|while|return|break|and|in)\b"
    marked = re.sub(words, r'<span class="kw">\1</span>', escaped) if rng.random() < 0.5 else escaped
    marked = re.sub(r"\b(\d+)\b", r"<em>\1</em>", marked) if rng.random() < 0.3 else marked
    lines = marked.split("\n")
    for button in BUTTONS:
        if rng.random() < 0.6:
            _somewhere(lines, button, rng)
    if rng.random() < 0.4:
        _somewhere(lines, offer(rng), rng)
    return "\n".join(lines)


def _tables(text: str, rng: np.random.Generator) -> str:
    if rng.random() < 0.5:
        text = mojibake(text)
    lines = _twice(text.split("\n"), 0.25, rng)
    for page in range(1, int(rng.integers(2, 5))):
        _somewhere(lines, f"Page {page} of 12 - Annals of Materials Testing, vol. {rng.integers(3, 40)}", rng)
    return "\n".join(lines)


def _dialogue(text: str, rng: np.random.Generator) -> str:
    lines = _twice(text.split("\n"), 0.15, rng)
    if rng.random() < 0.4:
        lines = [f"<i>{x}</i>" if rng.random() < 0.3 else x for x in lines]
    for _ in range(rng.integers(0, 3)):
        _somewhere(lines, offer(rng), rng)
    for credit in CREDITS:
        if rng.random() < 0.6:
            _somewhere(lines, credit, rng)
    if rng.random() < 0.8:
        seconds = 0
        for i, line in enumerate(lines):
            seconds += int(rng.integers(1, 9))
            lines[i] = f"[{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}] {line}"
    return "\n".join(lines)
