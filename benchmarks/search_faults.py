"""What a candidate's fault does to a search: ours beside OpenEvolve, ShinkaEvolve and GEPA, fault by fault.

Each row is a search of 40 iterations with a scripted model, in which the evaluation of every seventh candidate fails in
the same way; in the last rows a tenth of the answers holds nothing of use, or the search is killed and carried on. A
search has survived if it ends by itself, says so by its exit code, and has evaluated all the other candidates.

Peers run in environments of their own, under limits of this program on address space and time; whatever they leave
behind is counted, and then ended. The fork bomb is one of 128 processes.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import tempfile
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
from measure import environment, write
from script import scripted
from searches import Job, add_options, evaluated, prepare, pythons, shown, started, versions

FAULTS = (
    "raise", "os._exit", "sys.exit", "segfault", "hang", "fork bomb", "4 GiB", "nan", "grandchildren", "unusable",
    "kill -9",
)  # fmt: skip
ITERATIONS = 40
SOUND = ITERATIONS - 6  # candidates that no fault is planted in
KILLED_AT = 20  # answers of the model
SPACE = 3 << 30  # bytes of address space of each process of a peer: it has no limit of its own
MARK = "EVOLVENT_FAULTS"


def marked(mark: str) -> list[psutil.Process]:
    """Processes that were started by a row, whatever session they are in."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            environ = Path(f"/proc/{process.pid}/environ").read_bytes()
            if f"{MARK}={mark}".encode() in environ and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


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
    mark, begun = uuid.uuid4().hex, time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="faults-") as at, scripted(10 if fault == "unusable" else 0) as model:
        job = Job(python, Path(at), model.server_port, ITERATIONS, seconds)
        prepare(name, job, fault)
        limits = bounded if name == "ours" else limited
        code: int | str = 0
        orphans = 0
        try:
            for again in (False, True) if fault == "kill -9" else (False,):
                process = started(name, job, {MARK: mark}, again, preexec_fn=limits)
                end = time.monotonic() + patience
                while process.poll() is None and time.monotonic() < end:
                    if fault == "kill -9" and not again and len(model.asked) >= KILLED_AT:
                        process.send_signal(signal.SIGKILL)
                        process.wait()
                        time.sleep(5)
                        orphans = len(marked(mark))
                        for left in marked(mark):
                            left.kill()
                    time.sleep(0.05)
                code = "did not end" if process.returncode is None else process.returncode
            if fault != "kill -9":
                time.sleep(3)
                orphans = len([p for p in marked(mark) if p.pid != process.pid])
        finally:
            for _ in range(5):
                for left in marked(mark):
                    with suppress(psutil.Error):
                        left.kill()
                time.sleep(0.2)
        done, valid, said = evaluated(name, job)
        return {
            "exit": code, "evaluated": done, "valid": valid, "answers": len(model.asked), "left behind": orphans,
            "seconds": round(time.perf_counter() - begun, 1), "log": said[-600:],
            "survived": code == 0 and valid >= SOUND and not orphans,
        }  # fmt: skip


def main() -> None:
    """Measure, print the table and write `results/search_faults.json`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    parser.add_argument("--faults", default=",".join(FAULTS))
    parser.add_argument("--seconds", type=int, default=4, help="that an evaluation may take")
    parser.add_argument("--patience", type=int, default=300, help="seconds after which a search is ended")
    parser.add_argument("--dry", action="store_true", help="print only")
    args = parser.parse_args()
    programs = pythons(args)
    where = environment(1)
    found: dict[str, dict[str, Any]] = {}
    for fault in args.faults.split(","):
        found[fault] = {}
        for name, python in programs.items():
            got = found[fault][name] = row(name, python, fault, args.seconds, args.patience)
            print(f"{fault:14s} {name:11s} exit {got['exit']}, {got['evaluated']} evaluated, {got['valid']} valid, "
                  f"{got['answers']} answers paid, {got['left behind']} left behind, {got['seconds']} s"
                  f"{'' if got['survived'] else '   NOT SURVIVED'}", flush=True)  # fmt: skip
    if not args.dry:
        how = {"command": shown(args), "environment": where, "versions": versions(programs)}
        write("search_faults", how | {"rows": found})


if __name__ == "__main__":
    main()
