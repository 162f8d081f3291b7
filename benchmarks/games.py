"""Exploitability after 1,000 iterations of CFR, its variants and VAD-CFR, also with each of its mechanisms off; of PSRO
on Kuhn poker after 30, with each meta-solver. And milliseconds an iteration.

Nothing here is random: a second call gives the same exploitabilities.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable

from measure import RESULTS, command, environment, write

from evolvent.games import meta, shor, variants
from evolvent.games.named import load
from evolvent.games.population import exploitability_of, psro
from evolvent.games.regret import Minimiser, Rules
from evolvent.games.vad import ABLATIONS, vad_cfr
from evolvent.games.values import exploitability

GAMES = (
    "kuhn",
    "kuhn-3",
    "goofspiel-4",
    "liars-dice-4",
    "kuhn-4",
    "liars-dice-3",
    "leduc",
    "goofspiel-5",
    "liars-dice-5",
)
AT = (100, 200, 500, 1000)
KNOWN: dict[str, Callable[[], Rules]] = {
    "CFR": variants.cfr,
    "CFR+": variants.cfr_plus,
    "linear CFR": variants.linear_cfr,
    "DCFR": variants.dcfr,
    "PCFR+": variants.predictive_cfr_plus,
    "DPCFR+": variants.discounted_predictive_cfr_plus,
}
META = {
    "uniform": (meta.uniform(), meta.uniform()),
    "Nash": (meta.nash(), meta.nash()),
    "PRD": (meta.replicator(), meta.replicator()),
    "RM": (meta.matching(), meta.matching()),
    "SHOR": (shor.shor_train(), shor.shor_evaluate()),
    "SHOR to train and Nash to evaluate": (shor.shor_train(), meta.nash()),
    "SHOR without annealing": (shor.shor_train(over=1), shor.shor_evaluate()),
    "SHOR without blend": (shor.shor_train(blend=(0, 0)), shor.shor_evaluate(blend=0)),
    "SHOR without diversity": (shor.shor_train(diversity=(0, 0)), shor.shor_evaluate()),
    "SHOR without optimism": (shor.shor_train(momentum=0), shor.shor_evaluate(momentum=0)),
    "SHOR with the average to evaluate": (shor.shor_train(), shor.shor_evaluate(averaged=True)),
}
ASKED = (10, 30)  # PSRO iterations


def rules() -> dict[str, Rules]:
    """All variants by name."""
    found = {name: make() for name, make in KNOWN.items()}
    found["VAD-CFR"] = vad_cfr()
    found["VAD-CFR, one volatility"] = vad_cfr(shared=True)
    found |= {f"VAD-CFR without {name}": vad_cfr(**settings) for name, settings in ABLATIONS.items()}  # type: ignore[arg-type]
    # How much of the gain is the warm start alone.
    for name in ("CFR+", "DCFR", "PCFR+", "DPCFR+"):
        found[f"{name}, warm start"] = late(KNOWN[name]())
    return found


def late(given: Rules, warmup: int = 500) -> Rules:
    """A variant that averages nothing up to iteration `warmup`."""

    def accumulate(total, policy, r, reach, t, memory):  # type: ignore[no-untyped-def]
        return total if t <= warmup else given.accumulate_policy(total, policy, r, reach, t, memory)

    return Rules(given.accumulate_regret, given.policy_from_regret, accumulate)


def measured(name: str, given: Rules) -> dict[str, object]:
    """Exploitability at the iterations AT, and the time of one iteration of a game."""
    run, seconds, found = Minimiser(load(name), given), 0.0, {}
    for t in range(1, max(AT) + 1):
        begun = time.process_time()
        run.step()
        seconds += time.process_time() - begun
        if t in AT:
            found[str(t)] = exploitability(run.game, run.average())
    return {"exploitability": found, "milliseconds": round(1000 * seconds / max(AT), 3)}


def grown(train: meta.MetaSolver, evaluate: meta.MetaSolver) -> dict[str, float]:
    """Exploitability of PSRO's populations on Kuhn poker, after the iterations ASKED."""
    game = load("kuhn")
    grew = enumerate(psro(game, train, max(ASKED)), 1)
    return {str(k): exploitability_of(game, populations, evaluate) for k, populations in grew if k in ASKED}


def main() -> None:
    """Measure and write `results/games.json`; what is there of other games and solvers stays."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--games", default=",".join(GAMES))
    parser.add_argument("--meta", default=",".join(META), help="meta-solvers of PSRO")
    parser.add_argument("--dry", action="store_true", help="print only")
    args = parser.parse_args()
    file = RESULTS / "games.json"
    before = json.loads(file.read_text()) if file.is_file() else {"games": {}, "psro": {}}
    result = {"command": command(), "environment": environment(1), "games": before["games"], "psro": before["psro"]}

    def keep(kind: str, name: str, found: object) -> None:
        result[kind][name] = found
        print(f"{name}: {json.dumps(found)}", flush=True)
        if not args.dry:
            write("games", result)

    for game in filter(None, args.games.split(",")):
        keep("games", game, {name: measured(game, given) for name, given in rules().items()})
    for name in filter(None, args.meta.split(",")):
        keep("psro", name, grown(*META[name]))


if __name__ == "__main__":
    main()
