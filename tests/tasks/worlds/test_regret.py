"""The world of regret minimisers: what a program's rules give, and that nobody can lie about it."""

from __future__ import annotations

import ast
import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from evolvent.core.errors import UserError
from evolvent.games import variants
from evolvent.games.named import load
from evolvent.games.regret import Minimiser, Rules, solve
from evolvent.games.vad import vad_cfr
from evolvent.games.values import exploitability
from evolvent.search.variation.syntax import mutate
from evolvent.tasks.program import ProgramTask
from evolvent.tasks.registry import load_task
from evolvent.tasks.worlds.regret import COMPONENTS, GAMES, SEED, judge, world

TASK = "program:regret:20"
END = "\n# EVOLVE-BLOCK-END"
VAD = """import numpy as np


def volatility(r, t, memory):
    size = np.abs(r).max(axis=1, keepdims=True)
    memory["e"] = size if t == 1 else 0.1 * size + 0.9 * memory["e"]
    return np.minimum(1.0, memory["e"] / 2.0)


def kept(regret, v, t):
    power = t ** np.where(regret >= 0, np.maximum(0.1, 1.5 - 0.5 * v), -0.1 - 0.5 * v)
    return regret * power / (power + 1.0)


def boosted(r):
    return np.where(r > 0, 1.1 * r, r)


# EVOLVE-BLOCK-START
def accumulate_regret(regret, r, t, memory):
    return np.maximum(-20.0, kept(regret, volatility(r, t, memory), t) + boosted(r))


def policy_from_regret(regret, r, policy, t, memory):
    v = volatility(r, t, memory)
    hope = (1.0 - 0.5 * v) / (1.0 + (t - 1) / 100.0)
    return np.maximum(0.0, kept(regret, v, t) + hope * boosted(r)) ** 1.5


def accumulate_policy(total, policy, r, reach, t, memory):
    size = np.abs(r).max(axis=1, keepdims=True)
    gamma = 2.0 + 1.5 * np.minimum(1.0, size / 2.0)
    weight = t**gamma * np.sqrt(1.0 + size / 2.0) / (1.0 + size**1.5)
    return total if t <= 10 else total + weight * reach * policy
# EVOLVE-BLOCK-END
"""


def digits(names: tuple[str, ...], rules: Rules, iterations: int) -> dict[str, float]:
    """What the world should find."""
    worth = {n: exploitability(load(n), solve(load(n), rules, iterations)) for n in names}
    return {n: -math.log10(max(x, 0.01 / iterations)) for n, x in worth.items()}


def test_games_are_held_out() -> None:
    names = [name for split in ("train", "gate", "test") for name in GAMES[split]]
    assert len(set(names)) == len(names)
    assert "leduc" in GAMES["test"]
    assert world().name == "program:regret:100"
    with pytest.raises(UserError, match="regret:0: the number of iterations goes from 1 to 10000"):
        load_task("program:regret:0")


def test_programs_give_what_their_rules_give_here(task: ProgramTask) -> None:
    train, gate = task.instances("train"), task.instances("gate")
    seed, found, held = task.evaluate([SEED, VAD, VAD], [train, train, gate])
    for evaluation, names, rules in (
        (seed, train, variants.cfr_plus()),
        (found, train, vad_cfr(warmup=10)),
        (held, gate, vad_cfr(warmup=10)),
    ):
        expected = digits(names, rules, 20)
        assert evaluation.value == pytest.approx(sum(expected.values()) / len(expected), rel=1e-9)
        for name, value in expected.items():
            assert evaluation.metrics[f"instance/{name}"] == pytest.approx(value, rel=1e-9)
            worth = exploitability(load(name), solve(load(name), rules, 20))
            assert evaluation.metrics[f"exploitability/{name}"] == pytest.approx(worth, rel=1e-8, abs=1e-15)


def test_programs_that_fail(task: ProgramTask) -> None:
    rule = "    return regret\n\n\ndef policy"
    broken = {
        "nan": ("    return regret / 0\n\n\ndef policy", "not finite"),
        "shape": ("    return regret.sum(axis=1)\n\n\ndef policy", "accumulate_regret gave"),
        "text": ("    return 'regret'\n\n\ndef policy", "could not convert"),
        "error": ("    raise KeyError(t)\n\n\ndef policy", "KeyError"),
    }
    assert SEED.count(rule) == 1
    found = task.evaluate([SEED.replace(rule, new) for new, _ in broken.values()], [("kuhn",)] * len(broken))
    for evaluation, (_, told) in zip(found, broken.values(), strict=True):
        assert (evaluation.value, evaluation.status) == (None, "raised")
        assert told in evaluation.feedback


def test_a_program_that_takes_the_place_of_the_run_gains_nothing(task: ProgramTask) -> None:
    """Not even one that nobody has read before."""
    lies = [
        f"import evolvent.games.regret as run\n\nrun.solve = lambda game, *_: {x}\n"
        for x in ("'perfect'", "game.uniform()")
    ]
    call = task.world.call(SEED, ("kuhn",))
    calls = [replace(call, files={**call.files, "program.py": lie + SEED}) for lie in ("", *lies)]
    honest, *lying = [task.world.judge(o.value, ("kuhn",)).value for o in task.sandbox.run(calls, task.world.limits)]
    assert honest is not None
    assert lying == [honest] * 2


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (
            "import evolvent.games.regret as R; R.solve = lambda game, rules, n, old=R.solve: old(game, rules, 40 * n)",
            "it imports evolvent.games.regret",
        ),
        ("import sys; sys.modules['run'].solve = None", "it imports sys"),
        ("from collections import _sys; _sys.modules['run'].solve = None", "it uses _sys"),
        ("import numpy as np; np.einsum = None", "it assigns to .einsum"),
        ("import numpy as np\nfor np.einsum in [sum]: pass", "it assigns to .einsum"),
    ],
)
def test_a_program_that_reaches_for_the_loop_is_not_run(task: ProgramTask, line: str, told: str) -> None:
    found = task.evaluate([f"{line}\n{SEED}"], [("kuhn",)])[0]
    assert (found.value, found.status) == (None, "refused")
    assert told in found.feedback


def test_what_is_solved_is_solved() -> None:
    game = load("goofspiel-3")  # an equilibrium of pure strategies
    policies = [policy.tolist() for policy in solve(game, vad_cfr(warmup=30), 60)]
    assert judge({"goofspiel-3": policies}, ("goofspiel-3",), 50).value == pytest.approx(-math.log10(0.01 / 50))


def test_what_is_no_policy_is_not_judged() -> None:
    game = load("goofspiel-3")
    right = [policy.tolist() for policy in game.uniform()]
    known = judge({"goofspiel-3": right}, ("goofspiel-3",), 50)
    assert known.metrics["exploitability"] == pytest.approx(exploitability(game, game.uniform()))

    def with_row(row: Any) -> list[Any]:
        return [[row, *right[0][1:]], right[1]]

    beyond = next(int(row) for row in np.flatnonzero(~game.sides[0].legal[:, 2]))
    illegal = [list(row) for row in right[0]]
    illegal[beyond] = [0.25, 0.25, 0.5]
    wrong = [
        with_row([0.5, 0.5]),
        with_row([0.5, 0.5, 0.5]),
        with_row([1.5, -0.5, 0.0]),
        with_row([float("nan"), 0.5, 0.5]),
        with_row([float("inf"), 0.0, 0.0]),
        with_row(["1", "0", "0"]),
        with_row(None),
        [illegal, right[1]],
        right[:1],
        "perfect",
        None,
    ]
    for value in wrong:
        evaluation = judge({"goofspiel-3": value}, ("goofspiel-3",), 50)
        assert (evaluation.value, evaluation.status) == (None, "invalid")
        assert evaluation.feedback.startswith("goofspiel-3: ")
    for value in ({}, [], {"kuhn": right}, {"goofspiel-3": right, "kuhn": right}):
        assert judge(value, ("goofspiel-3",), 50).value is None


def test_sums_that_are_off_by_rounding_are_made_whole() -> None:
    near = [(policy * (1 + 1e-10)).tolist() for policy in load("kuhn").uniform()]
    exact = exploitability(load("kuhn"), load("kuhn").uniform())
    assert judge({"kuhn": near}, ("kuhn",), 50).metrics["exploitability"] == pytest.approx(exact, abs=1e-14)


def rules_of(program: str) -> Rules:
    names: dict[str, Any] = {}
    exec(program, names)
    return Rules(names["accumulate_regret"], names["policy_from_regret"], names["accumulate_policy"])


def test_components_run_in_the_seed() -> None:
    functions = SEED.split("\n\n\ndef ")
    for component in COMPONENTS:
        [statement] = ast.parse(component).body
        if isinstance(statement, ast.Expr):
            component = f"weights = weights * ({component})"
        place = 2 if "weight " in component or "total" in component else 1 if "weights" in component else 0
        lines = functions[place].split("\n")
        last = next(i for i, line in enumerate(lines) if line.startswith("    return"))
        first = ["    size = np.abs(r).max(axis=1, keepdims=True)"] if "size" in component else []
        lines[last:last] = [*first, f"    {component}"]
        program = "\n\n\ndef ".join([*functions[:place], "\n".join(lines), *functions[place + 1 :]])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            run = Minimiser(load("kuhn"), rules_of(program))
            for _ in range(3):
                run.step()


@pytest.mark.slow
def test_operators_find_better_rules() -> None:
    rng, game = np.random.default_rng(0), load("kuhn")
    found = [(exploitability(game, solve(game, rules_of(SEED), 30)), SEED)]
    for _ in range(60):
        program = mutate(min(found)[1], rng, (), COMPONENTS).source
        try:
            with np.errstate(all="ignore"):
                found.append((exploitability(game, solve(game, rules_of(program), 30)), program))
        except Exception:  # most changes break something
            continue
    assert min(found)[0] < 0.5 * found[0][0]
