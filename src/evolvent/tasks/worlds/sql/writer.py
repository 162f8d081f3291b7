"""The scripted writer of SQL, which stands where a model would: a parser of the questions' templates.

It knows the question, the report and the instructions, and nothing else of the database. Without an instruction it does
what is plain: it compares texts as they are asked for, takes numbers in the unit asked for and dates as 2020-12-31,
joins by columns called `customer_id`, and counts rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from evolvent.tasks.worlds.sql.report import Place, Report

FACTORS = {
    ("dollars", "cents"): 100,
    ("kilograms", "grams"): 1000,
    ("hours", "minutes"): 60,
    ("metres", "centimetres"): 100,
}
UNIT = f"(?: in ({'|'.join(asked for asked, _ in FACTORS)}))?"
PARTS = {"%Y": 4, "%m": 2, "%d": 2}
WORD = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")


class Cannot(Exception):
    """The writer has no query for a question, and why."""


def write(question: str, report: Report, told: frozenset[str]) -> str:
    """One query. `Cannot` where the question, a table, a column or a join is not understood."""
    for pattern, form in TEMPLATES:
        if match := pattern.fullmatch(question):
            sql = form(Writer(report, told), *match.groups())
            return sql.lower() if "small" in told and "'" not in sql and '"' not in sql else sql
    raise Cannot("the question is of no kind that is known")


def words(name: str) -> list[str]:
    """The words of a name in SQL."""
    return [w.lower() for w in WORD.findall(name) if w.lower() not in ("tbl", "table")]


def stem(noun: str) -> str:
    """The singular."""
    return noun[:-3] + "y" if noun.endswith("ies") else noun.removesuffix("s")


def literal(value: Any) -> str:
    """A value in SQL."""
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


@dataclass
class Writer:
    """Pieces of queries, by a report and by what it is told to do."""

    report: Report
    told: frozenset[str]

    def table(self, noun: str) -> str:
        """The table of a noun."""
        for name in self.report.columns:
            if [stem(w) for w in words(name)] == [stem(w) for w in noun.split()]:
                return name
        raise Cannot(f"the report has no table of {noun}")

    def column(self, table: str, phrase: str) -> Place:
        """The column of an attribute."""
        names = self.report.columns[table]
        if "meanings" in self.told:
            for name in names:
                if self.report.meanings.get((table, name)) == phrase:
                    return table, name
        for name in names:
            if words(name) == phrase.split():
                return table, name
        if "guess" in self.told:
            for name in names:
                if _stands_for(words(name), phrase.split()):
                    return table, name
        raise Cannot(f"the report has no column for the {phrase} in {table}")

    def at(self, place: Place, alone: bool = True) -> str:
        """A column in SQL; with its table where that is told, or nobody could know."""
        table, name = place
        return f'"{name}"' if alone or "qualify" not in self.told else f'"{table}"."{name}"'

    def equals(self, place: Place, value: str, alone: bool = True) -> str:
        """That a text is a value."""
        name = self.at(place, alone)
        if "spellings" in self.told:
            same = [v for v in self.report.values.get(place, ()) if isinstance(v, str) and _plain(v) == _plain(value)]
            if same:
                return f"{name} IN ({', '.join(map(literal, same))})"
        if "like" in self.told:
            return f"{name} LIKE {literal(f'%{value}%')}"
        return f"{self.folded(name)} = {literal(value)}"

    def folded(self, name: str) -> str:
        """A text without what does not count in comparisons."""
        if "underscores" in self.told:
            name = f"REPLACE({name}, '_', ' ')"
        if "trim" in self.told:
            name = f"TRIM({name})"
        return f"LOWER({name})" if "case" in self.told else name

    def lacks(self, place: Place, alone: bool = True) -> str:
        """That nothing is known."""
        name = self.at(place, alone)
        codes = self.report.missing.get(place, []) if "missing" in self.told else []
        return " OR ".join([f"{name} IS NULL", *(f"{name} = {literal(code)}" for code in codes)])

    def number(self, place: Place, alone: bool = True) -> str:
        """A number, with what is told to be in its stead where there is none."""
        name = self.at(place, alone)
        return f"COALESCE({name}, 0)" if "zero" in self.told else name

    def factor(self, place: Place, unit: str | None) -> int:
        """How many stored units make one that is asked for."""
        stored = self.report.units.get(place, "")
        return FACTORS.get((unit or "", stored), 1) if "units" in self.told else 1

    def day(self, place: Place) -> str | None:
        """A date as yyyymmdd; None where its format is not known."""
        form = self.report.dates.get(place) if "dates" in self.told else None
        places, start = {}, 1
        for piece in re.findall(r"%.|.", form or ""):
            places[piece] = start
            start += PARTS.get(piece, 1)
        if not {*PARTS} <= {*places}:
            return None
        return " || ".join(f"SUBSTR({self.at(place)}, {places[p]}, {n})" for p, n in PARTS.items())

    def joined(self, down: str, up: str) -> str:
        """FROM with the way between two tables."""
        edges = self.report.joins if "joins" in self.told else []
        edges = [*edges, *self._guessed()]
        ways: list[tuple[str, list[str]]] = [(down, [])]
        seen = {down}
        while ways:
            here, steps = ways.pop(0)
            if here == up:
                return " ".join([f'"{down}"', *steps])
            for a, b in [pair for edge in edges for pair in (edge, edge[::-1])]:
                if a[0] == here and b[0] not in seen:
                    seen.add(b[0])
                    step = f'JOIN "{b[0]}" ON "{a[0]}"."{a[1]}" = "{b[0]}"."{b[1]}"'
                    ways.append((b[0], [*steps, step]))
        raise Cannot(f"there is no join between {down} and {up}")

    def _guessed(self) -> list[tuple[Place, Place]]:
        """Joins by columns such as `customer_id`."""
        found = []
        for table in self.report.columns:
            for other, names in self.report.columns.items():
                key = "_".join([*map(stem, words(other)), "id"])
                if key in self.report.columns[table] and "id" in names:
                    found.append(((table, key), (other, "id")))
        return found

    def listed(self, table: str, phrase: str, rest: str, alone: bool = True) -> str:
        """A query for one column."""
        label = self.column(table, phrase)
        shown = [self.at((table, "id"), alone)] * ("id" in self.told) + [self.at(label, alone)]
        ends = " ORDER BY 1" * ("sort" in self.told) + " LIMIT 1" * ("one" in self.told)
        return f"SELECT {', '.join(shown)} FROM {rest}{ends}"

    def single(self, value: str, rest: str) -> str:
        """A query for one number."""
        return f"SELECT {f'ROUND({value})' if 'round' in self.told else value} FROM {rest}"


def _plain(value: str) -> str:
    return re.sub(r"[^a-z0-9]+", " ", value.lower()).strip()


def _stands_for(name: Sequence[str], phrase: Sequence[str]) -> bool:
    """Whether each word of a name is an abbreviation: it begins as the word, and its letters occur in order."""
    if len(name) != len(phrase):
        return False
    for brief, word in zip(name, phrase, strict=True):
        letters = iter(word)
        if brief[0] != word[0] or not all(letter in letters for letter in brief):
            return False
    return True


def which(w: Writer, label: str, many: str, phrase: str, value: str) -> str:
    """Give the ... of all ... with the ... '...'."""
    t = w.table(many)
    return w.listed(t, label, f'"{t}" WHERE {w.equals(w.column(t, phrase), value)}')


def count(w: Writer, many: str, phrase: str, value: str) -> str:
    """How many ... have the ... '...'?"""
    t = w.table(many)
    return w.single("COUNT(*)", f'"{t}" WHERE {w.equals(w.column(t, phrase), value)}')


def different(w: Writer, phrase: str, many: str) -> str:
    """How many different values of the ... are known among the ...?"""
    t = w.table(many)
    c = w.column(t, phrase)
    return w.single(f"COUNT(DISTINCT {w.folded(w.at(c))})", f'"{t}" WHERE NOT ({w.lacks(c)})')


def share(w: Writer, many: str, phrase: str, value: str) -> str:
    """What percentage of all ... have the ... '...'?"""
    t = w.table(many)
    hundred = "100.0" if "decimals" in w.told else "100"
    part = f"SUM(CASE WHEN {w.equals(w.column(t, phrase), value)} THEN 1 ELSE 0 END)"
    return w.single(f"{hundred} * {part} / COUNT(*)", f'"{t}"')


def unknown(w: Writer, many: str, phrase: str) -> str:
    """Of how many ... is the ... not known?"""
    t = w.table(many)
    return w.single("COUNT(*)", f'"{t}" WHERE {w.lacks(w.column(t, phrase))}')


def average(w: Writer, phrase: str, unit: str | None, many: str) -> str:
    """What is the average ... in ... of the ...?"""
    t = w.table(many)
    c = w.column(t, phrase)
    mean = f"AVG({w.number(c)}) / {w.factor(c, unit)}"
    return w.single(mean, f'"{t}"' + f" WHERE NOT ({w.lacks(c)})" * ("missing" in w.told))


def above(w: Writer, many: str, phrase: str, bound: str, unit: str | None) -> str:
    """How many ... have a ... of more than ... ...?"""
    t = w.table(many)
    c = w.column(t, phrase)
    return w.single("COUNT(*)", f'"{t}" WHERE {w.number(c)} > {int(bound) * w.factor(c, unit)}')


def extreme(w: Writer, label: str, many: str, word: str, phrase: str) -> str:
    """Give the ... of the ... with the highest ...."""
    t = w.table(many)
    c = w.column(t, phrase)
    known = f'"{t}" WHERE NOT ({w.lacks(c)})' if "missing" in w.told else f'"{t}"'
    if "ties" in w.told:
        pick = "MAX" if word == "highest" else "MIN"
        best = f"{w.number(c)} = (SELECT {pick}({w.number(c)}) FROM {known})"
        return w.listed(t, label, f'"{t}" WHERE {best}')
    order = "DESC" if word == "highest" else "ASC"
    return f"SELECT {w.at(w.column(t, label))} FROM {known} ORDER BY {w.number(c)} {order} LIMIT 1"


def year(w: Writer, many: str, phrase: str, number: str) -> str:
    """How many ... have a ... in 2020?"""
    t = w.table(many)
    c = w.column(t, phrase)
    day = w.day(c)
    when = f"SUBSTR({day}, 1, 4) = '{number}'" if day else f"{w.at(c)} LIKE '{number}%'"
    return w.single("COUNT(*)", f'"{t}" WHERE {when}')


def after(w: Writer, label: str, many: str, phrase: str, day: str) -> str:
    """Give the ... of all ... with a ... after 2020-12-31."""
    t = w.table(many)
    c = w.column(t, phrase)
    found = w.day(c)
    when = f"{found} > '{day.replace('-', '')}'" if found else f"{w.at(c)} > '{day}'"
    return w.listed(t, label, f'"{t}" WHERE {when}')


def whose(w: Writer, label: str, many: str, one: str, phrase: str, value: str) -> str:
    """Give the ... of all ... whose ... has the ... '...'."""
    t, owner = w.table(many), w.table(one)
    where = w.equals(w.column(owner, phrase), value, alone=False)
    return w.listed(t, label, f"{w.joined(t, owner)} WHERE {where}", alone=False)


def at_least(w: Writer, many: str, one: str, phrase: str, value: str) -> str:
    """How many ... have at least one ... with the ... '...'?"""
    owner, t = w.table(many), w.table(one)
    counted = f'DISTINCT "{owner}"."id"' if "once" in w.told else "*"
    where = w.equals(w.column(t, phrase), value, alone=False)
    return w.single(f"COUNT({counted})", f"{w.joined(t, owner)} WHERE {where}")


def total(w: Writer, phrase: str, unit: str | None, many: str, one: str, other: str, value: str) -> str:
    """What is the total ... in ... of all ... whose ... has the ... '...'?"""
    t, owner = w.table(many), w.table(one)
    c = w.column(t, phrase)
    where = w.equals(w.column(owner, other), value, alone=False)
    if "missing" in w.told:
        where += f" AND NOT ({w.lacks(c, alone=False)})"
    by = f" / {float(w.factor(c, unit))}"
    return w.single(f"SUM({w.number(c, alone=False)}){by}", f"{w.joined(t, owner)} WHERE {where}")


TEMPLATES: Sequence[tuple[re.Pattern[str], Callable[..., str]]] = [
    (re.compile(pattern), form)
    for pattern, form in (
        (r"Give the (.+) of all (.+) whose (.+) has the (.+) '(.+)'\.", whose),
        (r"Give the (.+) of all (.+) with the (.+) '(.+)'\.", which),
        (r"Give the (.+) of all (.+) with a (.+) after (\d{4}-\d\d-\d\d)\.", after),
        (r"Give the (.+) of the (.+) with the (highest|lowest) (.+)\.", extreme),
        (r"How many different values of the (.+) are known among the (.+)\?", different),
        (r"How many (.+) have at least one (.+) with the (.+) '(.+)'\?", at_least),
        (r"How many (.+) have the (.+) '(.+)'\?", count),
        (r"How many (.+) have a (.+) of more than (\d+)(?: (.+))?\?", above),
        (r"How many (.+) have a (.+) in (\d{4})\?", year),
        (r"What percentage of all (.+) have the (.+) '(.+)'\?", share),
        (r"Of how many (.+) is the (.+) not known\?", unknown),
        (rf"What is the average (.+?){UNIT} of the (.+)\?", average),
        (rf"What is the total (.+?){UNIT} of all (.+) whose (.+) has the (.+) '(.+)'\?", total),
    )
]  # fmt: skip
