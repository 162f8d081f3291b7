"""One search of OpenEvolve in the present folder. usage: search_openevolve.py PORT ITERATIONS SECONDS"""

import glob
import os
import sys
from pathlib import Path

port, iterations, seconds = sys.argv[1:4]
Path("config.yaml").write_text(
    f"""checkpoint_interval: 10
llm: {{api_base: "http://127.0.0.1:{port}/v1", api_key: none, models: [{{name: stub, weight: 1.0}}],
  timeout: 60, retries: 1}}
database: {{num_islands: 2, archive_size: 40}}
evaluator: {{timeout: {seconds}, parallel_evaluations: 1, cascade_evaluation: false, max_retries: 0}}
"""
)
call = [
    str(Path(sys.executable).parent / "openevolve-run"),
    "first.py",
    "evaluator.py",
    "-c",
    "config.yaml",
    "-o",
    "out",
]
left = int(iterations)
saved = sorted(glob.glob("out/checkpoints/checkpoint_*"), key=os.path.getmtime)
if saved:
    call += ["--checkpoint", saved[-1]]
    left -= int(saved[-1].rpartition("_")[2])
os.execv(call[0], [*call, "-i", str(left)])
