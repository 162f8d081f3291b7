"""What evaluators do with every seventh candidate; number k has X = 1 + k/1000. `FAULT` is put before this text."""

# ruff: noqa: F821

import os
import sys
import time


def happens(k: int, value: float) -> float:
    """The value, or what `FAULT` names."""
    if k % 7 != 3:
        return value
    if FAULT == "raise":
        raise ValueError("boom")
    if FAULT == "os._exit":
        os._exit(3)
    if FAULT == "sys.exit":
        sys.exit(2)
    if FAULT == "segfault":
        import ctypes

        ctypes.string_at(0)
    if FAULT == "hang":
        while True:
            time.sleep(0.2)
    if FAULT == "fork bomb":  # of a bounded size: 2^7 processes, which end by themselves
        for _ in range(7):
            os.fork()
        time.sleep(30)
        os._exit(0)
    if FAULT == "4 GiB":
        held = bytearray(os.urandom(1 << 20)) * 4096
        return value + 0 * len(held)
    if FAULT == "nan":
        return float("nan")
    if FAULT == "grandchildren":
        import subprocess

        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(240)"], start_new_session=True)
    return value


def evaluate(path: str) -> dict[str, float]:
    """Of OpenEvolve's kind."""
    import importlib.util

    spec = importlib.util.spec_from_file_location("program", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    x = module.run()
    return {"combined_score": happens(round(1000 * (x - 1)), x / 10)}


if __name__ == "__main__":  # of ShinkaEvolve's kind
    import argparse
    import json

    parser = argparse.ArgumentParser()
    parser.add_argument("--program_path")
    parser.add_argument("--results_dir")
    given, _ = parser.parse_known_args()
    os.makedirs(given.results_dir, exist_ok=True)
    found, error = {}, ""
    try:
        found = evaluate(given.program_path)
    except Exception as reason:
        error = str(reason)
    for name, data in (("metrics", found), ("correct", {"correct": not error, "error": error})):
        with open(f"{given.results_dir}/{name}.json", "w") as file:
            json.dump(data, file)
