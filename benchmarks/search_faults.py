"""What a candidate's fault does to a search: ours beside OpenEvolve, ShinkaEvolve and GEPA, fault by fault.

Each row is a search of 40 iterations with a scripted model, in which the evaluation of every seventh candidate fails in
the same way; in the last rows a tenth of the answers holds nothing of use, or the search is killed and carried on. A
search has survived if it ends by itself, says so by its exit code, and has evaluated all the other candidates.

Peers run with the Python that is named on the command line, where they are installed, under limits of this program on
address space and time; whatever they leave behind is counted, and then ended. The fork bomb is one of 128 processes.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from measure import command, environment, write

PEERS = Path(__file__).with_name("peers")
FAULTS = (
    "raise", "os._exit", "sys.exit", "segfault", "hang", "fork bomb", "4 GiB", "nan", "grandchildren", "unusable",
    "kill -9",
)  # fmt: skip
ITERATIONS = 40
SOUND = ITERATIONS - 6  # candidates that no fault is planted in
KILLED_AT = 20  # answers of the model
SPACE = 3 << 30  # bytes of address space of each process of a peer: it has no limit of its own
MARK = "EVOLVENT_FAULTS"
PROGRAM = "# EVOLVE-BLOCK-START\nX = 1.0\n# EVOLVE-BLOCK-END\ndef run():\n    return X\n"


@dataclass
class Job:
    """One search: its folder, the model's port, the fault, seconds that an evaluation may take."""

    python: str
    folder: Path
    port: int
    seconds: int


def marked(mark: str) -> list[psutil.Process]:
    """Processes that were started by a row, whatever session they are in."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            environ = Path(f"/proc/{process.pid}/environ").read_bytes()
            if f"{MARK}={mark}".encode() in environ and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


@contextmanager
def model(mark: str, unusable: int) -> Iterator[int]:
    """The port of a scripted model."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, PEERS / "script.py", str(port), str(unusable)], stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(600):
            with suppress(OSError):
                answers(port)
                break
            time.sleep(0.1)
        yield port
    finally:
        server.kill()
        server.wait()


def answers(port: int) -> int:
    """How many answers the model has given."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/stats") as reply:
        return int(json.load(reply)["n"])


def ours(job: Job, again: bool) -> list[str]:
    """Our command line."""
    program = str(Path(job.python).parent / "evolvent")
    if again:
        return [program, "resume", "run", "--store", "runs", "--quiet", "--no-report"]
    settings = {"propose.children": "1", "rollout": "evolvent.search.write:Write", "rollout.attempts": "1"}
    return [
        program, "run", "hill-climbing", "--task", "evaluator.py", "--seed-program", "first.py", "--name", "run",
        "--model", f"http://127.0.0.1:{job.port}/v1#stub", "--budget", f"{ITERATIONS + 1} steps", "--store", "runs",
        "--quiet", "--no-report", *(x for name, value in settings.items() for x in ("--set", f"{name}={value}")),
    ]  # fmt: skip


def peer(name: str) -> Callable[[Job, bool], list[str]]:
    """A peer's command line; it carries on by itself where it finds an earlier search."""
    return lambda job, again: [job.python, str(PEERS / f"fault_{name}.py"), str(job.port), str(ITERATIONS),
                               str(job.seconds)]  # fmt: skip


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
    "openevolve": (peer("openevolve"), evaluated_by_openevolve),
    "shinka": (peer("shinka"), evaluated_by_shinka),
    "gepa": (peer("gepa"), evaluated_by_gepa),
}


def limited() -> None:
    """In a peer before it starts: no core files, and no more memory than this machine can spare."""
    os.nice(5)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (SPACE, SPACE))


def bounded() -> None:
    """In ours before it starts: its sandbox has limits of its own."""
    os.nice(5)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def row(name: str, python: str, fault: str, seconds: int, patience: int) -> dict[str, Any]:
    """One search with one fault."""
    call, count = SEARCHES[name]
    mark, begun = uuid.uuid4().hex, time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="faults-") as at, model(mark, 10 if fault == "unusable" else 0) as port:
        folder, log = Path(at), Path(at, "log")
        text = f"FAULT = {fault!r}\n" + (PEERS / "fault.py").read_text()
        if name == "ours":
            text += f"\n\nTIMEOUT = {seconds}\n"
        for file in ("evaluator.py", "shinka_evaluate.py", "faulty.py"):
            (folder / file).write_text(text)
        (folder / "first.py").write_text(PROGRAM)
        job = Job(python, folder, port, seconds)
        environ = {**os.environ, MARK: mark, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", "PYTHONPATH": ""}
        if name == "ours":
            environ["PYTHONPATH"] = str(PEERS.parent.parent / "src")
        elif name == "gepa":
            environ["PYTHONPATH"] = str(folder)
        code: int | str = 0
        orphans = 0
        try:
            for again in (False, True) if fault == "kill -9" else (False,):
                with log.open("a") as file:
                    process = subprocess.Popen(call(job, again), cwd=folder, env=environ, stdout=file, stderr=file,
                                               stdin=subprocess.DEVNULL, start_new_session=True,
                                               preexec_fn=bounded if name == "ours" else limited)  # fmt: skip
                end = time.monotonic() + patience
                while process.poll() is None and time.monotonic() < end:
                    if fault == "kill -9" and not again and answers(port) >= KILLED_AT:
                        process.send_signal(signal.SIGKILL)
                        process.wait()
                        time.sleep(5)
                        orphans = len(marked(mark))
                        for left in marked(mark):
                            left.kill()
                    time.sleep(0.05)
                code = process.poll() if process.poll() is not None else "did not end"
            if fault != "kill -9":
                time.sleep(3)
                orphans = len([p for p in marked(mark) if p.pid != process.pid])
            paid = answers(port)
        finally:
            for _ in range(5):
                for left in marked(mark):
                    with suppress(psutil.Error):
                        left.kill()
                time.sleep(0.2)
        said = log.read_text(errors="replace")
        try:
            done, valid = count(folder, said)
        except (OSError, IndexError, sqlite3.Error) as reason:
            done, valid = 0, 0
            said += f"\n{reason}"
        return {
            "exit": code, "evaluated": done, "valid": valid, "answers": paid, "left behind": orphans,
            "seconds": round(time.perf_counter() - begun, 1), "log": said[-600:],
            "survived": code == 0 and valid >= SOUND and not orphans,
        }  # fmt: skip


def main() -> None:
    """Measure, print the table and write `results/search_faults.json`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("openevolve", "shinka", "gepa"):
        parser.add_argument(f"--{name}", metavar="PYTHON", help="of an environment where it is installed")
    parser.add_argument("--faults", default=",".join(FAULTS))
    parser.add_argument("--only", default=",".join(SEARCHES))
    parser.add_argument("--seconds", type=int, default=4, help="that an evaluation may take")
    parser.add_argument("--patience", type=int, default=300, help="seconds after which a search is ended")
    parser.add_argument("--dry", action="store_true", help="print only")
    args = parser.parse_args()
    pythons = {"ours": sys.executable, **{n: getattr(args, n) for n in ("openevolve", "shinka", "gepa")}}
    where, found = environment(1), {}
    for fault in args.faults.split(","):
        found[fault] = {}
        for name in args.only.split(","):
            if pythons[name]:
                got = found[fault][name] = row(name, pythons[name], fault, args.seconds, args.patience)
                print(f"{fault:14s} {name:11s} exit {got['exit']}, {got['evaluated']} evaluated, {got['valid']} valid, "
                      f"{got['answers']} answers paid, {got['left behind']} left behind, {got['seconds']} s"
                      f"{'' if got['survived'] else '   NOT SURVIVED'}", flush=True)  # fmt: skip
    if not args.dry:
        write("search_faults", {"command": shown(command(), args), "environment": where, "rows": found})


def shown(line: str, args: argparse.Namespace) -> str:
    """The command without the places of environments."""
    for name in ("openevolve", "shinka", "gepa"):
        if getattr(args, name):
            line = line.replace(getattr(args, name), f"{name}/bin/python")
    return line


if __name__ == "__main__":
    main()
