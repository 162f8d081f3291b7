"""Sentences of an agent's instructions that the scripted writer of SQL follows; all others it does not understand."""

from __future__ import annotations

SENTENCES = {
    "ignore case": "case",
    "ignore spaces at the ends": "trim",
    "read underscores as spaces": "underscores",
    "take the spellings of the report": "spellings",
    "use like": "like",
    "join along the joins of the report": "joins",
    "put the table before every column": "qualify",
    "count everybody once": "once",
    "keep all who share the first place": "ties",
    "leave out what the report calls missing": "missing",
    "take 0 for what is missing": "zero",
    "convert units": "units",
    "read dates as the report says": "dates",
    "divide with decimals": "decimals",
    "go by the meanings of the report": "meanings",
    "guess what abbreviations stand for": "guess",
    "show the id": "id",
    "give one row only": "one",
    "round numbers": "round",
    "write keywords in small letters": "small",
    "sort the answer": "sort",
}


def directives(instructions: str) -> frozenset[str]:
    """What the writer is told to do."""
    text = " ".join(instructions.lower().split())
    return frozenset(name for sentence, name in SENTENCES.items() if sentence in text)
