"""What a search takes beside its evaluators: milliseconds an iteration, seconds to the first evaluation, workers, and
whether it slows down as its history grows.

An iteration is one candidate: varied, evaluated in namespaces of its own, put into the archive, the store and a
checkpoint. The evaluator loads the program and returns a number, and the model is a script that answers at once, so all
of an iteration's time is overhead. Histories of the last part are made up: variants of the seed program by number.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
from measure import command, environment, spread, write
from processor import seconds_of
from script import scripted
from searches import PROGRAM as SMALL

from evolvent.lineage.store import Store
from evolvent.run.assemble import Assembled, assemble
from evolvent.run.session import Progress, Session
from evolvent.run.spec import RunSpec
from evolvent.search.archive import archive_of
from evolvent.search.candidate import PROGRAM, Candidate
from evolvent.tasks.evaluation import Evaluation
from evolvent.tasks.worlds.circle_packing import world

PARTS = ("overhead", "start", "workers", "flat")
STAGES = ("propose", "rollout", "judge", "keep")
WARM_UP = 2  # steps that do not count
EVALUATOR = """
import importlib.util, time

def evaluate(path):
    spec = importlib.util.spec_from_file_location("program", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    {work}
    return {{"combined_score": float(getattr(module, "X", 0.0))}}
"""
NOTHING, WAIT = "pass", "time.sleep(0.25)"
COUNT = "sum(i * i for i in range({}))"
Search = tuple[str, str, str, dict[str, Any]]  # recipe, program, model, settings
# where the programs of a made-up history differ
NUMBERS = {"(i % side + 0.5) / side": "(i % side + 0.5 + {}e-9) / side", "X = 1.0": "X = {}e-9"}


def files(folder: Path, program: str, work: str = NOTHING) -> str:
    """An evaluator and a program, as a task."""
    (folder / "evaluator.py").write_text(EVALUATOR.format(work=work))
    (folder / "first.py").write_text(program)
    return f"program:{folder / 'evaluator.py'}:{folder / 'first.py'}"


def processor(made: Assembled) -> float:
    """Processor seconds of this process, and of the sandbox with all that it has run."""
    pid = made.task.sandbox.pid  # type: ignore[attr-defined]
    root = [psutil.Process(pid)] if pid else []
    return time.process_time() + seconds_of([*root, *(p for r in root for p in r.children(recursive=True))])


def taken(made: Assembled, folder: Path) -> tuple[list[dict[str, float]], float]:
    """Milliseconds a candidate of every step, by stage, and of the processor a candidate."""
    rows: list[dict[str, float]] = []
    begun, used, made_so_far = time.perf_counter(), 0.0, 0.0

    def watch(progress: Progress) -> None:
        nonlocal begun, used, made_so_far
        seconds = time.perf_counter() - begun
        m = progress.metrics
        count = m["trajectories"] + m["errors"]
        made_so_far += count
        assert progress.spent["verifier_calls"] == made_so_far, "an iteration without an evaluation is none"
        row = {stage: 1000 * m[f"seconds/{stage}"] / count for stage in STAGES}
        rows.append({"all": 1000 * seconds / count, **row, "record": 1000 * seconds / count - sum(row.values())})
        if len(rows) == WARM_UP:
            used = processor(made)
        begun = time.perf_counter()

    Session(Store(folder), made.spec, "run", final=False, watch=watch).start(made)
    steps = len(rows) - WARM_UP
    children = made.main_role.slots["propose"].children
    spent = 1000 * (processor(made) - used) / (steps * children)
    made.task.sandbox.close()  # type: ignore[attr-defined]
    return rows[WARM_UP:], spent


def summary(rows: Sequence[dict[str, float]], spent: float) -> dict[str, Any]:
    """Median, p90 and range of each stage."""
    found: dict[str, Any] = {}
    for name in rows[0]:
        values = [row[name] for row in rows]
        found[name] = spread(values) | {"p90": sorted(values)[int(0.9 * (len(values) - 1))]}
    return found | {"processor": round(spent, 2)}


def overhead(search: Search, children: int, steps: int, history: int = 0) -> dict[str, Any]:
    """An iteration of a search, with so many candidates made up before it."""
    recipe, program, model, settings = search
    [(number, other)] = [(old, new) for old, new in NUMBERS.items() if old in program]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        settings = settings | {"propose.children": children}
        spec = RunSpec(recipe, files(folder, program), model, f"{steps + WARM_UP} steps", settings=settings)
        made = assemble(spec)
        archive = archive_of(made.main_role)
        for i in range(history):
            text = program.replace(number, other.format(i + 1))
            candidate = Candidate(i, {PROGRAM: text}, Evaluation(1e-6 * i), (i // 2,) if i else ())
            archive.history.append(candidate)
            archive.children[i // 2] += 1
        archive.members = list(archive.history)
        archive.told = history
        if history:  # a run has hashed each of them when it was new
            archive.forms.begin()
            archive.forms.hashes.update(f"{i}" for i in range(history))
            archive.forms.count, archive.forms.read = history, archive.history[-1:]
        return summary(*taken(made, folder / "runs"))


def first_evaluation(times: int) -> dict[str, Any]:
    """Seconds from the start of `evolvent run` until the first candidate is in the store."""
    program, found = Path(sys.executable).parent / "evolvent", []
    for _ in range(times):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            options = ["--budget", "1 steps", "--store", str(folder / "runs"), "--quiet", "--no-report"]
            begun = time.time()
            call = [program, "run", "hill-climbing", "--task", files(folder, SMALL), *options]
            subprocess.run(call, check=True, capture_output=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
            store = Store(folder / "runs")
            found.append(store.events(None, ("candidate",))[0].time - begun)
            store.close()
    return spread(found)


def with_workers(search: Search, work: str, workers: int) -> float:
    """Candidates a second of the evaluating stage and the rest together, in steps of 16."""
    recipe, program, model, settings = search
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        settings = settings | {"propose.children": 16, "judge.workers": workers}
        task = files(folder, program, work)
        made = assemble(RunSpec(recipe, task, model, f"{2 + WARM_UP} steps", settings=settings))
        rows, _ = taken(made, folder / "runs")
        return 1000 * len(rows) / sum(row["all"] for row in rows)


def loops(seconds: float) -> int:
    """How many rounds of the loop of `COUNT` take so long here."""
    begun, n = time.perf_counter(), 1_000_000
    sum(i * i for i in range(n))
    return int(n * seconds / (time.perf_counter() - begun))


def searches(seed: str, address: str) -> dict[str, Search]:
    """What is measured, by label; with the scripted model's address."""
    diffs = {"rollout.write.kinds": {"diff": 1.0, "rewrite": 0.0, "cross": 0.0}}
    return {
        "a model's diffs, program of 0.1 kB": ("hill-climbing", SMALL, f"{address}#stub", diffs),
        "rules, program of 2.5 kB": ("random-search", seed, "none", {}),
    }


def main() -> None:
    """Measure and write `results/search.json`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--pairs", type=int, default=3, help="of runs with one worker and with two")
    parser.add_argument("--histories", default="100,1000,10000")
    parser.add_argument("--only", default=",".join(PARTS), help="some of these parts; nothing is written then")
    parser.add_argument("--dry", action="store_true", help="print only")
    args = parser.parse_args()
    where, found, parts = environment(1), {}, args.only.split(",")
    if unknown := set(parts) - set(PARTS):
        parser.error(f"no part is called {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    seed = world("26").seed
    if "overhead" in parts:
        rows = {}
        with scripted() as model:
            for label, search in searches(seed, model.address).items():
                for children in (8, 1):
                    steps = args.steps if children > 1 else 3 * args.steps
                    row = rows[f"{label}, {children} a step"] = overhead(search, children, steps)
                    line = ", ".join(f"{stage} {row[stage]['median']:.1f}" for stage in (*STAGES, "record"))
                    print(f"{label}, {children} a step: {row['all']['median']:.1f} ms ({line}), p90 "
                          f"{row['all']['p90']:.1f}, processor {row['processor']:.1f}")  # fmt: skip
        found["overhead"] = rows
    if "start" in parts:
        found["start"] = first_evaluation(5)
        print(f"first evaluation after {found['start']['median']:.2f} s")
    if "workers" in parts:
        found["workers"] = {}
        with scripted() as model:
            for writer, search in searches(seed, model.address).items():
                for doing, work in (("waiting", WAIT), ("counting", COUNT.format(loops(0.25)))):
                    made = [[with_workers(search, work, n) for n in (1, 2)] for _ in range(args.pairs)]
                    row = found["workers"][f"{writer}, evaluators that are {doing}"] = {
                        "one": spread([a for a, _ in made]), "two": spread([b for _, b in made]),
                        "ratio": spread([b / a for a, b in made]),
                    }  # fmt: skip
                    print(f"two workers, {writer}, evaluators {doing}: {row['ratio']['median']:.2f} times one")
    if "flat" in parts:
        rows = {}
        with scripted() as model:
            for label, search in searches(seed, model.address).items():
                for history in map(int, args.histories.split(",")):
                    long = f"{label}, {history:,} candidates before it"
                    row = rows[long] = overhead(search, 8, args.steps, history)
                    print(f"{long}: {row['all']['median']:.1f} ms, processor {row['processor']:.1f}")
        found["flat"] = rows
    if not args.dry and set(parts) == set(PARTS):
        write("search", {"command": command(), "environment": where, **found})


if __name__ == "__main__":
    main()
