"""A composed recipe: GRPO with the curriculum of SEC, and which levels its bandit goes to.

python examples/curriculum.py "200 steps"
"""

from __future__ import annotations

import sys

import evolvent as ev

LEVELS = ("2x1", "2x2-chain", "2x3-chain", "2x4-chain")


def main(budget: str = "100 steps") -> None:
    """Print how likely each level is at the start, half-way and at the end."""
    task = f"arith:{','.join(LEVELS)}"
    result = ev.run(recipe="grpo+sec", task=task, model="tiny", budget=budget, settings={"propose.n": 4}, final=False)
    curves = {level: result.curve(f"bandit/{level}") for level in LEVELS}
    print("level      start  middle     end")
    for level, curve in curves.items():
        shares = (curve[i][1] for i in (0, len(curve) // 2, -1))
        print(f"{level:<9}" + "".join(f"{share:>8.0%}" for share in shares))


if __name__ == "__main__":
    main(*sys.argv[1:])
