"""Tasks whose answer is a set of named texts, such as the prompts of a system.

    texts:FILE.py              `seed_candidate = {"name": "text", ...}` is in the file
    texts:FILE.py:TEXTS        TEXTS is .toml or .json with a text for each name, .txt or .md with one text, or a
                               folder of these two

The file holds a GEPA adapter and `trainset`, or `evaluate(texts)`, or `evaluate(texts, example)` and `trainset`, or
OpenEvolve's `evaluate(path)`. It is the user's own and runs in a process of its own, with network, not in the sandbox:
what is evolved are texts, and these are never run.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from evolvent.core.errors import UserError, VerifierError
from evolvent.guard.process import PASS, SECRET, ProcessError, Raised, clean_environment
from evolvent.guard.sandbox import Call
from evolvent.tasks.base import Split, key_of
from evolvent.tasks.beside import source
from evolvent.tasks.evaluation import Evaluation, invalid, over_instances, read_result, sound
from evolvent.tasks.program import PROGRAM, ProgramTask, World, unreadable
from evolvent.tasks.texts import TEXT_FILES
from evolvent.tasks.texts.module import read, unfit, written
from evolvent.tasks.user_file import UserFile
from evolvent.tasks.worlds.recipe import read_name

CREDENTIAL = re.compile(r"\bkey|credential|token|auth|secret|password", re.IGNORECASE)
FILES = re.compile(r"(.+?\.py)(?::(.+))?")
TIMEOUT = 300.0  # seconds that an evaluation may take, on all its examples, unless the file says TIMEOUT = ...
IMPORT_TIME = 120.0  # seconds to import the file: libraries of models are large
TRIES = 2  # of an evaluation that took too long, or whose process ended
MOST_RECORD, MOST_RECORDS = 1_500, 12_000  # characters of one record, and of all that are told
GOAL = """Improve the texts below, prompts and the like of a system that {file} evaluates. The program is a Python
module in which every text is a string; nothing of it is run. Change what the texts say, and keep their names. Of
a text a line that is nothing but three backticks has \\n\\ at its end, so that it does not end the program."""


class TextsFile(UserFile):
    """A user's file that evaluates texts, in its process."""

    program = Path(__file__).with_name("inside.py")

    def __init__(self, path: Path) -> None:
        super().__init__(path, IMPORT_TIME)
        self.worker.timeout = self.constant("TIMEOUT", TIMEOUT, (int, float))
        self.sizes: dict[Split, int] = self.about["sizes"]
        self.tested: bool = self.about["tested"]  # False: there is no testset, and the valset takes its place


class TextsTask(ProgramTask):
    """The texts of a file as a program (`tasks.texts.module`); `file` evaluates them, in as many processes as there are
    workers. `name` is the task's on the command line, `given` what the file of a single text is called."""

    wants_model = True  # operators on syntax trees have nothing to do here
    sandbox: Any = None  # nothing runs
    journal: Any = None  # a run's `lineage.evaluations.Evaluations`: they may be paid for, and are kept at once

    def __init__(self, file: TextsFile, texts: Mapping[str, str], name: str, given: str = "text.txt") -> None:
        self.names, self.file, self.given = tuple(texts), file, given
        self.tested = file.tested
        self.idle: SimpleQueue[TextsFile] = SimpleQueue()
        self.idle.put(file)
        self.processes = 1
        goal = GOAL.format(file=file.name)
        about = file.about["goal"].strip()
        super().__init__(
            World(
                name=name,
                goal=f"{goal}\n\n{about}" if about else goal,
                seed=written(texts),
                call=lambda text, names: Call({PROGRAM: text}, "program", "texts"),
                judge=lambda value, names: invalid("nothing is run here"),
                instances={split: tuple(f"{split}-{i}" for i in range(n)) for split, n in file.sizes.items()},
            )
        )

    @property
    def fingerprint(self) -> str:
        """Hash of the file that evaluates, and of the texts to begin with."""
        return key_of("fingerprint", [self.file.digest, self.seed_program])

    def texts(self, program: str) -> dict[str, str]:
        """The named texts of a candidate. `ValueError` or `SyntaxError` where it is none."""
        return read(program, self.names)

    def close(self) -> None:
        """End the processes."""
        while not self.idle.empty():
            self.idle.get().worker.close()

    def evaluate(self, programs: Sequence[str], names: Sequence[Sequence[str]] | None = None) -> list[Evaluation]:
        """Verdicts, in the order of the programs; `lost` where the file failed, which is not the texts' doing."""
        asked = [self.instances("train")] * len(programs) if names is None else names
        for _ in range(self.processes, min(self.workers, len(programs))):
            self.idle.put(TextsFile(self.file.path))
            self.processes += 1
        texts = [self._read(program) for program in programs]  # here: `ast` of 3.11.7 fails in several threads at once
        with ThreadPoolExecutor(self.processes) as pool:
            return list(pool.map(self._worth, texts, asked))

    def _read(self, program: str) -> dict[str, str] | Evaluation:
        """The texts by name, or the verdict on what holds none."""
        if verdict := unreadable(program):
            return verdict
        try:
            return read(program, self.names)
        except ValueError as reason:
            return invalid(str(reason))

    def _worth(self, texts: dict[str, str] | Evaluation, names: Sequence[str]) -> Evaluation:
        if isinstance(texts, Evaluation):
            return texts
        if not names:  # it can be read; nothing is known of how good it is
            return Evaluation(0.0)
        split = read_name(names[0])[0]
        places = [read_name(name)[1] for name in names]
        job = {"texts": texts, "split": split, "places": places, "traces": split == "train", "file": self.given}
        key = key_of("evaluated", [texts, split, places])
        told = self.journal.take(key) if self.journal else None
        if told is None:
            file = self.idle.get()
            try:
                told = self._asked(file, job)
            except VerifierError as reason:
                return invalid(str(reason), "lost")
            finally:
                self.idle.put(file)
            if self.journal:
                self.journal.add(key, told)
        self.cpu_seconds += told["cpu"]
        if "failed" in told:
            return invalid(told["failed"] + withheld(told["failed"]), "error")
        return verdict_of(told["results"], names, told.get("records", {}))

    def _asked(self, file: TextsFile, job: Mapping[str, Any]) -> Any:
        """What the file says. `VerifierError` in one sentence, if it failed as often as is tried."""
        for left in reversed(range(TRIES)):
            try:
                return file.worker.call("evaluate", job)
            except ProcessError as reason:
                if isinstance(reason, Raised) or not left:
                    remedy = "see whether what it needs is there (a model, a key)"
                    said = file.explain(reason, "could not evaluate", remedy)
                    raise VerifierError(said + withheld(said)) from None
        raise AssertionError


def verdict_of(
    results: Sequence[Any], names: Sequence[str], records: Mapping[str, Sequence[Mapping[str, str]]]
) -> Evaluation:
    """One verdict out of those on the examples, by name. An example without a number makes the texts invalid."""
    found = [read_result(one) for one in results]
    values: dict[str, float] = {}
    for name, one in zip(names, found, strict=True):
        if one.value is None:
            return invalid(f"{name}: {one.feedback}", one.status)
        values[name] = one.value
    by_metric: dict[str, list[float]] = {}
    for one in found:
        for metric, x in one.metrics.items():
            if metric not in ("score", "combined_score"):
                by_metric.setdefault(metric, []).append(x)
    verdict = over_instances(values, {metric: sum(all_) / len(all_) for metric, all_ in by_metric.items()})
    said = {name: one.feedback for name, one in zip(names, found, strict=True)}
    feedback = reflection(values, said, records)
    return sound(Evaluation(verdict.value, verdict.metrics, feedback))


def reflection(
    values: Mapping[str, float], said: Mapping[str, str], records: Mapping[str, Sequence[Mapping[str, str]]]
) -> str:
    """What there is to learn from the examples, the worst first: what was `said` of each, and an adapter's `records`
    for each text, which are the examples' in their order where they are as many. Cut at `MOST_RECORDS` characters."""
    names = list(values)
    parts: list[tuple[float, str]] = [(values[name], f"{name}: {text}") for name, text in said.items() if text]
    for text, several in records.items():
        for i, record in enumerate(several):
            body = "\n".join(f"  {key}: {value}" if key else f"  {value}" for key, value in record.items())
            if len(several) == len(names):
                parts.append((values[names[i]], f"{text}, {names[i]} ({values[names[i]]:g}):\n{body}"))
            else:
                parts.append((0.0, f"{text}:\n{body}"))
    parts.sort(key=lambda part: part[0])
    told, room = [], MOST_RECORDS
    for place, (_, part) in enumerate(parts):
        short = part if len(part) <= MOST_RECORD else f"{part[:MOST_RECORD]} ..."
        if len(short) > room:
            told.append(f"({len(parts) - place} more)")
            break
        told.append(short)
        room -= len(short)
    return "\n".join(told)


def load(rest: str) -> TextsTask:
    """`FILE.py` or `FILE.py:TEXTS`. `UserError` for what is not there or not of that kind."""
    match = FILES.fullmatch(rest)
    if not match:
        raise UserError(f"texts:{rest} names no Python file; write texts:adapter.py, or texts:adapter.py:prompts.toml")
    file = TextsFile(Path(match[1]))
    texts, where = (
        (texts_of(Path(match[2])), match[2]) if match[2] else (file.about["seed"], f"{file.name}: seed_candidate")
    )
    if texts is None:
        raise UserError(
            f'{file.name} has no texts to begin with; add seed_candidate = {{"name": "text"}}, or name a file or a '
            f"folder of texts: --task {match[1]} --seed-program prompts.toml"
        )
    check_texts(texts, where)
    if file.about["reads"] == "path" and len(texts) > 1:
        raise UserError(f"{file.name} has evaluate(path), which reads one text, and {where} has {len(texts)}")
    given = Path(match[2]).name if match[2] and len(texts) == 1 else "text.txt"
    return TextsTask(file, texts, f"texts:{rest}", given)


def once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object whose names are different; `ValueError` otherwise."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands there twice")
    return found


def withheld(reason: str) -> str:
    """What to add to a failure that may come of a key that was taken from the file's process; often nothing."""
    if not CREDENTIAL.search(reason):
        return ""
    gone = [name for name in os.environ if SECRET.search(name) and name not in clean_environment()]
    return f" (not handed on: {', '.join(sorted(gone))}; {PASS}={gone[0]} hands one on)" if gone else ""


def check_texts(texts: Any, where: str) -> None:
    """`UserError` for what is no dict of texts, and for marks inside of them."""
    if not isinstance(texts, Mapping) or not texts or not all(isinstance(t, str) for t in texts.values()):
        raise UserError(f'{where} should have a text for each name, as in {{"system_prompt": "You are ..."}}')
    for name, text in texts.items():
        if problem := unfit(name + text):
            raise UserError(f"{where}: the text {name!r} {problem}")


def texts_of(path: Path) -> Any:
    """The texts of a file or a folder, by name."""
    if path.is_dir():
        found = sorted(p for p in path.glob("[!.]*") if p.suffix in (".txt", ".md") and p.is_file())
        if not found:
            raise UserError(f"the folder {path} has no .txt or .md files")
        if twice := [p for p in found if sum(p.stem == other.stem for other in found) > 1]:
            raise UserError(f"the folder {path} has two texts called {twice[0].stem}; rename {twice[0].name}")
        return {p.stem: source(p) for p in found}
    if not path.is_file() or path.suffix not in TEXT_FILES:
        what = f"{path} holds no texts" if path.is_file() else f"there is no file {path}"
        raise UserError(f"{what}; texts to begin with are in {', '.join(TEXT_FILES)}, or in a folder of .txt and .md")
    text = source(path)
    try:
        if path.suffix == ".json":
            return json.loads(text, object_pairs_hook=once)
        if path.suffix == ".toml":
            return tomllib.loads(text)
    except (ValueError, RecursionError) as reason:
        raise UserError(f"{path} cannot be read: {reason}") from None
    return {path.stem: text}
