"""One search by us, OpenEvolve, ShinkaEvolve or GEPA, of the same small program with the same scripted model.

Each is a command line; one candidate is varied and evaluated at a time. A peer runs in an environment of its own, which
is made on the first call (`measure.peer`) unless an option names another.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measure import HERE, command, peer

PEERS = {"openevolve": "openevolve", "shinka": "shinka-evolve", "gepa": "gepa"}  # and the names of their packages
PROGRAM = "# EVOLVE-BLOCK-START\nX = 1.0\n# EVOLVE-BLOCK-END\ndef run():\n    return X\n"


@dataclass
class Job:
    """One search: its folder, the model's port, how many candidates, seconds that an evaluation of one may take."""

    python: str
    folder: Path
    port: int
    iterations: int
    seconds: int

    @property
    def log(self) -> Path:
        """Where all goes that it prints."""
        return self.folder / "log"


def ours(job: Job, again: bool) -> list[str]:
    """Our command line."""
    program = str(Path(job.python).parent / "evolvent")
    if again:
        return [program, "resume", "run", "--store", "runs", "--quiet", "--no-report"]
    settings = {"propose.children": "1", "rollout": "evolvent.search.write:Write", "rollout.attempts": "1"}
    return [
        program, "run", "hill-climbing", "--task", "evaluator.py", "--seed-program", "first.py", "--name", "run",
        "--model", f"http://127.0.0.1:{job.port}/v1#stub", "--budget", f"{job.iterations + 1} steps", "--store", "runs",
        "--quiet", "--no-report", *(x for name, value in settings.items() for x in ("--set", f"{name}={value}")),
    ]  # fmt: skip


def theirs(name: str) -> Callable[[Job, bool], list[str]]:
    """A peer's command line; it carries on by itself where it finds an earlier search."""
    script = str(HERE / "peers" / f"search_{name}.py")
    return lambda job, again: [job.python, script, str(job.port), str(job.iterations), str(job.seconds)]


def evaluated_by_us(folder: Path, log: str) -> tuple[int, int]:
    """Candidates in the store beside the seed program, and how many of these are valid."""
    from evolvent.lineage.store import Store

    store = Store(folder / "runs")
    found = {e.data["uid"]: e.data["evaluation"]["value"] for e in store.events(None, ("candidate",))}
    store.close()
    return len(found) - 1, sum(value is not None for value in found.values()) - 1


def evaluated_by_openevolve(folder: Path, log: str) -> tuple[int, int]:
    """Iterations in its log; how many of these had no error."""
    done = log.count("completed in")
    return done, done - log.count("'error': 0.0") - log.count("error=0.0000")


def evaluated_by_shinka(folder: Path, log: str) -> tuple[int, int]:
    """Rows of its data base beside the first; the correct ones."""
    found = list(folder.glob("out/**/*.sqlite"))
    with sqlite3.connect(found[0]) as db:
        rows = db.execute("select correct from programs where generation > 0").fetchall()
    return len(rows), sum(bool(correct) for (correct,) in rows)


def evaluated_by_gepa(folder: Path, log: str) -> tuple[int, int]:
    """Variants that came to a value."""
    seen = {int(line) for line in (folder / "evaluated").read_text().split()} - {0}
    return len(seen), len(seen)


SEARCHES = {
    "ours": (ours, evaluated_by_us),
    "openevolve": (theirs("openevolve"), evaluated_by_openevolve),
    "shinka": (theirs("shinka"), evaluated_by_shinka),
    "gepa": (theirs("gepa"), evaluated_by_gepa),
}


def prepare(name: str, job: Job, fault: str = "none") -> None:
    """The files of the search: its program, and the evaluator with a fault."""
    text = f"FAULT = {fault!r}\n" + (HERE / "peers" / "fault.py").read_text()
    if name == "ours":
        text += f"\n\nTIMEOUT = {job.seconds}\n"
    for file in ("evaluator.py", "shinka_evaluate.py", "faulty.py"):
        (job.folder / file).write_text(text)
    (job.folder / "first.py").write_text(PROGRAM)


def started(
    name: str, job: Job, more: Mapping[str, str], again: bool = False, **options: Any
) -> subprocess.Popen[bytes]:
    """Its process, in a session of its own; with more variables in its environment, and options of `Popen`."""
    paths = {"ours": str(HERE.parent / "src"), "gepa": str(job.folder)}
    own = {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", "PYTHONPATH": paths.get(name, "")}
    call, _ = SEARCHES[name]
    with job.log.open("a") as file:
        return subprocess.Popen(call(job, again), cwd=job.folder, env={**os.environ, **own, **more},
                                stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True,
                                **options)  # fmt: skip


def evaluated(name: str, job: Job) -> tuple[int, int, str]:
    """How many candidates it has evaluated, how many of these are valid, and what it printed."""
    _, count = SEARCHES[name]
    said = job.log.read_text(errors="replace")
    try:
        return *count(job.folder, said), said
    except (OSError, IndexError, sqlite3.Error) as reason:
        return 0, 0, f"{said}\n{reason}"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Which of the searches run, and with which Python."""
    parser.add_argument("--only", default=",".join(SEARCHES))
    for name in PEERS:
        parser.add_argument(f"--{name}", metavar="PYTHON", help="of an environment where it is installed already")


def pythons(args: argparse.Namespace) -> dict[str, str]:
    """The Python of each search that runs."""
    return {n: sys.executable if n == "ours" else getattr(args, n) or str(peer(n)) for n in args.only.split(",")}


def versions(found: dict[str, str]) -> dict[str, str]:
    """Which versions of the peers are installed."""
    asked = {n: f"from importlib.metadata import version; print(version({PEERS[n]!r}))" for n in found if n in PEERS}
    return {n: subprocess.check_output([found[n], "-c", asked[n]], text=True).strip() for n in asked}


def shown(args: argparse.Namespace) -> str:
    """The command without the places of environments."""
    line = command()
    for name in PEERS:
        if getattr(args, name):
            line = line.replace(getattr(args, name), f"{name}/bin/python")
    return line
