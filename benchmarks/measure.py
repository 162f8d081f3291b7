"""What the measurements share: child processes, the peer's environment, summaries, result files. Standard library."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).parent
RESULTS = HERE / "results"
WARM_UP = 2  # steps at the beginning of a process that do not count


def child(python: Path | str, script: Path, *args: object, threads: int) -> dict[str, Any]:
    """Run a script in a process of its own; what it prints in its last line, as data."""
    limits = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(threads))
    quiet = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "PYTHONPATH": str(HERE.parent / "src")}
    command = [str(python), str(script), *map(str, args), "--threads", str(threads)]
    done = subprocess.run(command, env=os.environ | limits | quiet, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr[-4000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def peer(name: str = "trl") -> Path:
    """The Python of the peer's environment, made on the first call from `peers/requirements-NAME.txt`."""
    folder = HERE / ".venvs" / name
    python = folder / "bin" / "python"
    marker = folder / "ready"
    if not marker.is_file():
        print(f"making the environment {folder.relative_to(HERE.parent)} (once)", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        requirements = HERE / "peers" / f"requirements-{name}.txt"
        subprocess.run([python, "-m", "pip", "install", "-q", "-r", requirements], check=True)
        marker.touch()
    return python


class Clock:
    """Seconds and processor seconds of the steps of a run; the time between `stop` and `start` does not count."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.processor: list[float] = []
        self.start()

    def start(self) -> None:
        """A step begins."""
        self.begun = time.perf_counter(), time.process_time()

    def stop(self) -> None:
        """The step has ended."""
        self.seconds.append(time.perf_counter() - self.begun[0])
        self.processor.append(time.process_time() - self.begun[1])

    def lap(self) -> None:
        """The step has ended, and the next one begins."""
        self.stop()
        self.start()


def peak_memory() -> float:
    """The most memory that this process has held, in MiB. What `getrusage` says may be of whoever started it."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))


def steady(values: Sequence[float]) -> float:
    """Median without the warm-up."""
    return median(values[WARM_UP:] or values)


def spread(values: Sequence[float]) -> dict[str, Any]:
    """Median, smallest and largest of some values, and the values."""
    return {
        "median": median(values),
        "least": min(values),
        "most": max(values),
        "values": [round(v, 4) for v in values],
    }


def environment(threads: int) -> dict[str, Any]:
    """Where and when something was measured; no names of machines or users."""
    import evolvent
    from evolvent.run.environment import environment as software

    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").is_file() else []
    names = [line.partition(": ")[2] for line in lines if line.startswith("model name")]
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True)
    return {
        **software(),
        "version": evolvent.__version__,
        "commit": commit.stdout.strip(),
        "processor": names[0] if names else platform.machine(),
        "threads": threads,
        "load": round(os.getloadavg()[0], 2),  # of the whole machine, when the measurement began
        "date": time.strftime("%Y-%m-%d"),
    }


def write(name: str, data: dict[str, Any]) -> None:
    """Keep a result as `results/NAME.json`; say where."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(data, indent=1) + "\n")
    print(f"written to {path.relative_to(HERE.parent)}")


def results(name: str) -> dict[str, Any]:
    """What was kept before as `results/NAME.json`, if anything was."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.is_file() else {}


def command() -> str:
    """How this program was called, as in the documentation."""
    return " ".join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *sys.argv[1:]])
