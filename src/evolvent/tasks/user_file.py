"""A user's Python file in a process of its own: functions, constants, and a sentence for what went wrong there."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evolvent.core.errors import UserError, VerifierError, nearest
from evolvent.guard.process import ProcessError, Raised, TimedOut, Worker
from evolvent.tasks.base import SPLITS
from evolvent.tasks.rows import Row, missing_file

PROGRAM = Path(__file__).with_name("user_program.py")
IMPORT_TIME = 30.0  # seconds to import a file, and for each chunk of its problems
CALL_TIME = 10.0  # seconds for one call, unless the file says TIMEOUT = ...


def source_hash(path: Path) -> str:
    """Hash of a file's bytes."""
    return hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()


class UserFile:
    """A user's Python file in its process. Errors come as `UserError`, in one sentence that names file and line."""

    program = PROGRAM

    def __init__(self, path: Path, import_time: float = IMPORT_TIME) -> None:
        if not path.is_file():
            raise missing_file(path)
        self.path, self.import_time = path.resolve(), import_time
        self.name = path.name
        self.about: dict[str, Any] = {}
        self.forgotten: list[tuple[int, int]] = []  # environments that nobody holds any more: (start, number)
        self.digest = source_hash(self.path)
        self.worker = Worker(self.program, CALL_TIME, prepare=self._load)
        try:
            self.worker.start()
        except ProcessError as reason:
            if isinstance(reason, Raised) and reason.kind == "Refused":  # it does import, and cannot be used as it is
                has = reason.reason.removeprefix("it has ")
                said = f" has {has}" if has != reason.reason else f": {reason.reason}"
                raise UserError(f"{self.name}{said}") from None
            remedy = "mend it, or install what it needs"
            raise UserError(self.explain(reason, "does not import", remedy, limited=False)) from None
        self.worker.timeout = self.constant("TIMEOUT", CALL_TIME, (int, float))

    def _load(self, worker: Worker) -> None:
        if source_hash(self.path) != self.digest:
            raise VerifierError(f"{self.name} was changed while it was in use; begin again with the new one")
        payload = {"path": str(self.path), "timeout": CALL_TIME}
        self.about = worker.call("load", payload, self.import_time)

    def has(self, function: str) -> bool:
        """Whether the file defines a function."""
        return function in self.about["functions"]

    def constant(self, name: str, default: Any, kinds: tuple[type, ...]) -> Any:
        """A constant of the file, positive if it is a number."""
        value: Any = self.about["constants"].get(name, default)
        if value is default or value is None:
            return default
        wrong = (
            not isinstance(value, kinds) or isinstance(value, bool) or (isinstance(value, int | float) and value <= 0)
        )
        if wrong:
            wanted = "text" if str in kinds else "a whole number above 0" if float not in kinds else "a number above 0"
            raise UserError(f"{self.name}: {name} is {value!r}; it should be {wanted}")
        return value

    @property
    def longer(self) -> str:
        """How a call gets more time."""
        return f"a line TIMEOUT = {2 * self.worker.timeout:g} (seconds) in {self.name} gives it more"

    def need(self, function: str, example: str) -> None:
        """`UserError` if the file lacks a function."""
        if not self.has(function):
            close = nearest(function, self.about["functions"])
            raise UserError(f"{self.name} has no function `{function}`{close}; add one, as in `{example}`")

    def explain(self, reason: ProcessError, what: str, remedy: str, limited: bool = True) -> str:
        """A failure as a sentence: the file, `what` happened, where, and what to do. `limited`: by TIMEOUT."""
        if isinstance(reason, Raised) and reason.kind in ("Refused", "Asked"):  # the program's own words
            return f"{self.name} {what}: {reason.reason}"
        if isinstance(reason, Raised):
            own = [f for f in reason.frames if f[0] == str(self.path)] or reason.frames
            place = f"line {own[-1][1]}: " if own and own[-1][0] == str(self.path) else ""
            if own and not place:
                place = f"{Path(own[-1][0]).name} line {own[-1][1]}: "
            text = f" (`{own[-1][3]}`)" if own and own[-1][3] else ""
            raised = "it calls sys.exit()" if reason.kind == "SystemExit" else str(reason)
            return f"{self.name} {what}: {place}{raised}{text}; {remedy}"
        said = f", and had printed {reason.output.splitlines()[-1][-120:]!r}" if reason.output else ""
        if isinstance(reason, TimedOut):
            more = f"; {self.longer}" if limited else ""
            return f"{self.name} {what}: {reason}{said}; make it faster, or see whether it waits for something{more}"
        return f"{self.name} {what}: {reason}{said}; it must not end the process (os._exit, a crash in a library)"

    def rows(self) -> list[Row]:
        """What `problems()` gives, each row with its split if `problems` takes one."""
        self.need("problems", 'def problems(): return [{"prompt": "2+2=", "answer": "4"}, ...]')
        found: list[Row] = []
        for split in SPLITS if self.about["takes_split"] else ("",):
            try:
                *chunks, _ = self.worker.stream("rows", {"split": split}, self.import_time)
            except ProcessError as reason:
                remedy = "it should give a list of rows, dicts or strings"
                raise UserError(self.explain(reason, "fails in problems()", remedy, limited=False)) from None
            rows = [row for chunk in chunks for row in chunk]
            where = f' of problems("{split}")' if split else ""
            extra = {"split": split} if split else {}
            found += [Row(f"row {i}{where}", {**row, **extra}) for i, row in enumerate(rows)]
        return found

    def openings(self, rows: Sequence[Row]) -> list[str]:
        """The first text of the environment of every row."""
        try:
            *texts, _ = self.worker.stream("openings", {"rows": [r.data for r in rows]})
        except ProcessError as reason:
            raise UserError(self.explain(reason, "fails in environment()", "each row needs an environment")) from None
        return texts
