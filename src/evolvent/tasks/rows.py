"""Tasks with a finite list of rows: read files, check rows, split them, and score by an exact answer.

A row is a dict of plain data. Its key is the hash of everything in it but the split. Without a column `split`, 70 % of
the keys in the order of their hashes are for training, 10 % for gates, 20 % for tests, within each category: the same
file always gives the same splits. Two rows with the same data, or with the same prompt, are an error: the second would
count twice, contradict the first, or carry a training problem into the test.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from evolvent.core.errors import UserError, nearest, unknown
from evolvent.core.records import Message, Problem
from evolvent.tasks.base import SHARES, SPLITS, Demo, Piece, Score, Split, key_of, one_user
from evolvent.tasks.extract import final_answer

SUFFIXES = (".jsonl", ".csv", ".parquet")
MOST_NAMED = 5  # files, where another one is not there
EXAMPLES = {
    ".jsonl": 'each a line, as in {"prompt": "2+2=", "answer": "4"}',
    ".csv": "each a line as in 2+2=,4 after a first line prompt,answer",
    ".py": 'each of problems() a dict, as in {"prompt": "2+2=", "answer": "4"}',
}
FEWEST = 10  # rows, below which a split by shares means nothing
SPLIT_NAMES: dict[str, Split] = {
    "train": "train", "training": "train",
    "gate": "gate", "validation": "gate", "valid": "gate", "val": "gate", "dev": "gate",
    "test": "test",
}  # fmt: skip
ROLES = ("system", "user", "assistant", "tool")
ANY = "all"  # the category of rows that name none
MAX_TOKENS = 256


class Row(NamedTuple):
    """The data of a row, and where it stands, as a person would say it."""

    place: str
    data: dict[str, Any]


def read_rows(path: Path) -> list[Row]:
    """The rows of a JSONL, CSV or Parquet file. `UserError` with the line where it cannot be read."""
    if not path.is_file():
        raise missing_file(path)
    try:
        if path.suffix == ".parquet":
            return _parquet(path)
        with path.open(encoding="utf-8-sig", newline="" if path.suffix == ".csv" else None) as lines:
            return _csv(path, lines) if path.suffix == ".csv" else _jsonl(path, lines)
    except UnicodeDecodeError as reason:
        raise UserError(f"{path.name} is not UTF-8 text ({reason.reason} at byte {reason.start}); convert it") from None
    except OSError as reason:
        raise UserError(f"{path} cannot be read: {reason.strerror or reason}") from None


def missing_file(path: Path) -> UserError:
    """The error for a file that is not there, with the nearest name in its folder, or what could be given instead."""
    if not path.parent.is_dir():
        return UserError(f"there is no file {path}, nor a folder {path.parent}; check the path")
    beside = sorted(p.name for p in path.parent.iterdir() if p.is_file())
    alike = [name for name in beside if name.endswith(path.suffix)]
    there = f"its folder has {', '.join(alike[:MOST_NAMED])}" if alike else f"its folder has no {path.suffix} file"
    other = f"; {there}: check the path, or give a .py file, or rows in {', '.join(SUFFIXES)}"
    return UserError(f"there is no file {path}{nearest(path.name, beside) or other}")


def _jsonl(path: Path, lines: Iterable[str]) -> list[Row]:
    rows = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            data = json.loads(line)
        except (ValueError, RecursionError) as reason:  # a number of thousands of digits is no JSONDecodeError
            what = f"{reason.msg} at character {reason.pos}" if isinstance(reason, json.JSONDecodeError) else reason
            raise UserError(
                f"{path.name} line {number} is not JSON ({what}); each line is one object, as in "
                '{"prompt": "2+2=", "answer": "4"}'
            ) from None
        if isinstance(data, str):
            data = {"prompt": data}
        if not isinstance(data, dict):
            raise UserError(f"{path.name} line {number} is a {type(data).__name__}; each line is an object or a string")
        rows.append(Row(f"line {number}", data))
    return rows


def _csv(path: Path, lines: Iterable[str]) -> list[Row]:
    reader = csv.DictReader(lines, strict=True)
    rows = []
    try:
        if not reader.fieldnames or not all(name.strip() for name in reader.fieldnames):
            raise UserError(f"{path.name} line 1 should name every column, as in: prompt,answer")
        for data in reader:
            if None in data or None in data.values():
                raise UserError(
                    f"{path.name} line {reader.line_num} has not {len(reader.fieldnames)} fields as line 1 has; "
                    'put text with commas or line breaks in "quotes"'
                )
            rows.append(Row(f"line {reader.line_num}", dict(data)))
    except csv.Error as reason:
        raise UserError(f"{path.name} line {reader.line_num} is not CSV: {reason}") from None
    return rows


def _parquet(path: Path) -> list[Row]:
    import pyarrow
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.read_table(path)
    except (pyarrow.ArrowException, OSError) as reason:
        raise UserError(f"{path.name} is not a Parquet file that can be read: {str(reason).splitlines()[0]}") from None
    return [Row(f"row {i}", data) for i, data in enumerate(table.to_pylist())]


def check_plain(value: Any, where: str) -> None:
    """`UserError` where a value is not text, a number, True, False, None, or a list or dict of these."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise UserError(f"{where} holds half a character (a lone surrogate); mend the text") from None
    elif isinstance(value, list):
        for part in value:
            check_plain(part, where)
    elif isinstance(value, dict):
        for key, part in value.items():
            check_plain(key, where)
            check_plain(part, where)
    elif value is not None and not isinstance(value, bool | int | float):
        raise UserError(f"{where} is a {type(value).__name__}; turn it into text or a number")


def messages_of(row: Row, source: str, needed: bool = True) -> tuple[Message, ...]:
    """The prompt of a row: its column `prompt` (or `question`), text or messages. Empty where none is `needed`."""
    prompt = row.data.get("prompt", row.data.get("question"))
    if isinstance(prompt, str) and (prompt or not needed):
        return one_user(prompt)
    if prompt is None and not needed:
        return one_user("")
    if isinstance(prompt, list) and prompt:
        found = [_message(m) for m in prompt]
        if None not in found:
            return tuple(m for m in found if m is not None)
    if prompt is None:
        columns = ", ".join(row.data) or "none"
        raise UserError(f"{source}: {row.place} has no `prompt`, which the model is shown (its columns: {columns})")
    raise UserError(
        f"{source}: the prompt of {row.place} should be text, or a list of messages such as "
        f'{{"role": "user", "content": "2+2="}}, and is {prompt!r:.60}'
    )


def _message(value: Any) -> Message | None:
    if isinstance(value, Mapping) and value.get("role") in ROLES and isinstance(value.get("content"), str):
        return Message(value["role"], value["content"])
    return None


def key_of_row(data: Mapping[str, Any]) -> str:
    """Hash of a row without its split."""
    return key_of("rows", {k: v for k, v in data.items() if k != "split"})


def check_distinct(source: str, rows: Sequence[Row], problems: Sequence[Problem], prompts: bool) -> None:
    """`UserError` that names two rows which are the same problem or (if `prompts`) ask the same prompt."""
    keys: dict[str, Row] = {}
    asked: dict[tuple[Message, ...], Row] = {}
    repeats = len(problems) - len({p.key for p in problems})
    for row, problem in zip(rows, problems, strict=True):
        first = keys.setdefault(problem.key, row)
        if first is not row:
            splits = [SPLIT_NAMES.get(str(r.data.get("split"))) for r in (first, row)]
            if splits[0] != splits[1]:
                raise UserError(
                    f"{source}: {first.place} ({splits[0]}) and {row.place} ({splits[1]}) are the same problem, a leak "
                    "between splits; remove one of them"
                )
            more = f"; {repeats} rows in all repeat an earlier one" if repeats > 1 else ""
            raise UserError(f"{source}: {first.place} and {row.place} are the same problem{more}; remove the repeats")
        if prompts and (first := asked.setdefault(problem.prompt, row)) is not row:
            columns = sorted(k for k in {*first.data, *row.data} if first.data.get(k) != row.data.get(k))
            raise UserError(
                f"{source}: {first.place} and {row.place} show the model the same prompt (they differ in "
                f"{', '.join(columns)}); remove one of them, or tell them apart in the prompt"
            )


def splits_of(source: str, rows: Sequence[Row], problems: Sequence[Problem]) -> dict[Split, list[Problem]]:
    """The problems of each split, each category by itself, in the order of the rows."""
    named = [row for row in rows if row.data.get("split") is not None]
    if named and len(named) < len(rows):
        without = next(row for row in rows if row.data.get("split") is None)
        raise UserError(f"{source}: {without.place} has no `split` while others have; name it for all rows or for none")
    if not named and len(rows) < FEWEST:
        raise UserError(
            f"{source} has {len(rows)} rows, too few to train, gate and test on; add some (at least {FEWEST}), or say "
            "in a column `split` which is which: train, gate, test"
        )
    place: dict[str, Split] = {}
    for category in dict.fromkeys(p.category for p in problems):
        inside = [(row, p) for row, p in zip(rows, problems, strict=True) if p.category == category]
        what = f"{source}: category `{category}`" if category != ANY else source
        place |= _named_splits(what, inside) if named else _by_rank(what, [p for _, p in inside])
    return {split: [p for p in problems if place[p.key] == split] for split in SPLITS}


def _by_rank(what: str, problems: Sequence[Problem]) -> dict[str, Split]:
    """70/10/20 by the order of the keys, at least one in each."""
    keys = sorted(p.key for p in problems)
    if len(keys) < len(SPLITS):
        raise UserError(
            f"{what} has too few rows ({len(keys)}), and needs one for each of {', '.join(SPLITS)}; add rows, put it "
            "together with another category, or leave the column out"
        )
    test = max(1, round(len(keys) * SHARES["test"] / 100))
    gate = max(1, round(len(keys) * SHARES["gate"] / 100))
    cut = len(keys) - test - gate
    return {key: "train" if i < cut else "gate" if i < cut + gate else "test" for i, key in enumerate(keys)}


def _named_splits(what: str, inside: Sequence[tuple[Row, Problem]]) -> dict[str, Split]:
    """As the column says. Without rows for the gate, an eighth of the training rows, by the order of their keys."""
    place: dict[str, Split] = {}
    for row, problem in inside:
        name = row.data["split"]
        if name not in SPLIT_NAMES:
            raise UserError(f"{what}: {row.place} has the split {name!r}{nearest(str(name), SPLIT_NAMES)}; "
                            "splits are train, gate (or validation) and test")  # fmt: skip
        place[problem.key] = SPLIT_NAMES[name]
    if "gate" not in place.values():
        training = sorted(key for key, split in place.items() if split == "train")
        for key in training[: max(1, len(training) // 8)] if len(training) > 1 else []:
            place[key] = "gate"
    if lacking := [split for split in SPLITS if split not in place.values()]:
        raise UserError(
            f"{what} has no row for {' and '.join(lacking)}; mark some, or leave the column `split` out and the "
            "rows are shared out 70/10/20"
        )
    return place


class RowTask:
    """A finite task whose rows have an `answer`: the final answer of a completion must be exactly that text."""

    def __init__(
        self,
        name: str,
        source: str,
        rows: Sequence[Row],
        categories: Sequence[str] = (),
        max_tokens: int = MAX_TOKENS,
        openings: Sequence[str] | None = None,
    ) -> None:
        """`source` is what errors call the file; `openings` are the first texts of the rows' environments."""
        if not rows:
            how = f", {example}" if (example := EXAMPLES.get(Path(source).suffix)) else ""
            raise UserError(f"{source} has no problems; at least {FEWEST} rows are needed{how}")
        self.name, self.source, self.max_tokens = name, source, max_tokens
        problems = self._problems(rows, openings)
        check_distinct(source, rows, problems, prompts=openings is None)
        self.all_rows = problems  # those of other categories too
        self._splits = splits_of(source, rows, problems)
        known = tuple(dict.fromkeys(p.category for p in problems))
        for category in categories:
            if category not in known:
                raise unknown(f"category of {source}", category, known, f"there are {', '.join(known[:20])}")
        self.categories = tuple(categories) or known
        self._splits = {s: [p for p in ps if p.category in self.categories] for s, ps in self._splits.items()}
        self._places = {
            (split, category): [i for i, p in enumerate(found) if category is None or p.category == category]
            for split, found in self._splits.items()
            for category in (None, *self.categories)
        }

    def _problems(self, rows: Sequence[Row], openings: Sequence[str] | None) -> list[Problem]:
        categorised = any(row.data.get("category") is not None for row in rows)
        texts: Sequence[str | None] = openings or [None] * len(rows)
        return [self._problem(row, text, categorised) for row, text in zip(rows, texts, strict=True)]

    def _problem(self, row: Row, opening: str | None, categorised: bool) -> Problem:
        """The problem of a row; `UserError` if it cannot be one. `opening` is the first text of its environment."""
        for column, value in row.data.items():
            check_plain(value, f"{self.source}: column `{column}` of {row.place}")
        category = row.data.get("category")
        if categorised and not isinstance(category, str | int):
            raise UserError(f"{self.source}: {row.place} has no `category` while others have; name it for all rows")
        prompt = messages_of(row, self.source, needed=opening is None)
        if opening is not None:
            prompt = (*prompt[:-1], Message(prompt[-1].role, prompt[-1].content + opening))
            if not any(m.content for m in prompt):
                raise UserError(f"{self.source}: {row.place} has no `prompt`, and its environment no first text")
        data = {k: v for k, v in row.data.items() if k != "split"}
        return Problem(key_of_row(data), prompt, data, str(category) if categorised else ANY, self.name)

    @property
    def fingerprint(self) -> str:
        """Hash of the problems and their splits: a run that is resumed can tell whether the file has changed."""
        return key_of("fingerprint", [[p.key for p in self._splits[split]] for split in SPLITS])

    def listed(self, split: Split) -> list[Problem]:
        """All problems of a split, in the order of the rows."""
        return list(self._splits[split])

    def draw(self, split: Split, rng: np.random.Generator, category: str | None = None) -> Problem:
        """A random row of the split."""
        places = self._places[split, category]
        return self._splits[split][places[int(rng.integers(len(places)))]]

    def score(self, problem: Problem, completion: str) -> Score:
        """1 if the final answer is the row's answer, letter for letter, else 0."""
        answer = final_answer(completion)
        return Score(float(answer == _answer(problem.data)), answer)

    def gold(self, problem: Problem) -> Demo | None:
        """The row's answer."""
        answer = _answer(problem.data)
        return [Piece(answer if final_answer(answer) == answer else f"<answer>{answer}</answer>")]


def _answer(data: Mapping[str, Any]) -> str:
    return str(data["answer"]).strip()


def load_rows(path: Path, categories: Sequence[str] = ()) -> RowTask:
    """The task of a data file with a column `answer` and no function."""
    rows = read_rows(path)
    for row in rows:
        if "answer" not in row.data:
            raise UserError(
                f"{path.name}: {row.place} has no `answer`; add the column, or name a reward function: "
                f"{path}:my_reward.py"
            )
        if isinstance(row.data["answer"], list | dict | None) or not str(row.data["answer"]).strip():
            raise UserError(f"{path.name}: the answer of {row.place} should be text or a number that is not empty")
    return RowTask(path.stem, path.name, rows, categories)
