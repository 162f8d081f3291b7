"""The world of meta-strategy solvers: what a program's two solvers give, and that nobody can lie about it."""

from __future__ import annotations

import ast
import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evolvent.core.errors import UserError
from evolvent.games import meta, shor
from evolvent.games.meta import MetaSolver
from evolvent.games.named import load
from evolvent.games.population import exploitability_of, mixed, payoffs, profile, psro
from evolvent.games.values import exploitability
from evolvent.lineage.descent import text_of
from evolvent.run.session import begin
from evolvent.run.spec import RunSpec
from evolvent.search.variation.syntax import mutate
from evolvent.tasks.program import ProgramTask
from evolvent.tasks.registry import load_task
from evolvent.tasks.worlds.meta_solver import COMPONENTS, GAMES, SEED, judge, world

N = 5
TASK = f"program:meta-solver:{N}"
WEIGHTS = "    weights = np.ones(payoffs.shape[:2])\n"
HELP = SEED.split("# EVOLVE")[0]
MATCHING = f"""{HELP}
def matching(payoffs, steps):
    players, policies = payoffs.shape[:2]
    weights = np.full((players, policies), 1.0 / policies)
    total, regret = weights.copy(), np.full((players, policies), 1e-6)
    for _ in range(steps):
        u = worth(payoffs, weights)
        regret = regret + u - (weights * u).sum(axis=1, keepdims=True)
        positive = np.maximum(regret, 0.0)
        sums = positive.sum(axis=1, keepdims=True)
        matched = np.where(sums > 0, positive / np.where(sums > 0, sums, 1.0), 1.0 / policies)
        weights = 1e-6 / policies + (1 - 1e-6) * matched
        weights = np.where(sums > 0, weights, 1.0 / policies)
        total = total + weights
    return total


# EVOLVE-BLOCK-START
def train_meta_strategy(weights, payoffs, t, n, memory):
    return matching(payoffs, 40)


def eval_meta_strategy(weights, payoffs, t, n, memory):
    return matching(payoffs, 80)
# EVOLVE-BLOCK-END
"""
SHOR = f"""{HELP}
def hybrid(payoffs, steps, blend, temperature, diversity, momentum, averaged):
    sigma = np.full(payoffs.shape[:2], 1.0 / payoffs.shape[1])
    regret, before, total = 0 * sigma, 0 * sigma, 0 * sigma
    for _ in range(steps):
        for p in range(len(payoffs)):
            u = worth(payoffs, sigma)[p]
            centred = u - u.mean()
            gains = (1 + momentum) * centred - momentum * before[p] + diversity * (1.0 - sigma[p])
            largest = np.abs(gains).max()
            regret[p] = np.maximum(0.0, regret[p] + (gains / largest if largest > 1e-8 else gains))
            mass = regret[p].sum()
            matched = regret[p] / mass if mass > 1e-12 else 1.0 / len(u)
            heat = np.exp((u - u.max()) / temperature)
            sigma[p] = (1 - blend) * matched + blend * heat / heat.sum()
            before[p] = centred
            total[p] += sigma[p]
    return total if averaged else sigma


# EVOLVE-BLOCK-START
def train_meta_strategy(weights, payoffs, t, n, memory):
    done = min(1.0, t / 75)
    steps = min(60, 20 + 10 * (payoffs.shape[1] - 1))
    return hybrid(payoffs, steps, 0.3 - 0.25 * done, 0.5 - 0.49 * done, 0.05 - 0.049 * done, 0.5, True)


def eval_meta_strategy(weights, payoffs, t, n, memory):
    return hybrid(payoffs, 200, 0.01, 0.001, 0.0, 0.2, False)
# EVOLVE-BLOCK-END
"""
SOLVERS: dict[str, tuple[MetaSolver, MetaSolver]] = {
    SEED: (meta.uniform(), meta.uniform()),
    MATCHING: (meta.matching(steps=40), meta.matching(steps=80)),
    SHOR: (shor.shor_train(steps=(20, 10, 60)), shor.shor_evaluate(steps=(200, 0, 200))),
}


def program(train: str, evaluate: str = "    return np.ones(payoffs.shape[:2])", before: str = "") -> str:
    """One with such bodies of the two solvers."""
    heads = [f"def {name}_meta_strategy(weights, payoffs, t, n, memory):\n" for name in ("train", "eval")]
    return f"import numpy as np\n{before}\n\n{heads[0]}{train}\n\n\n{heads[1]}{evaluate}\n"


def worth_of(name: str, train: MetaSolver, evaluate: MetaSolver, iterations: int = N) -> float:
    """Exploitability by `games.population`."""
    *_, populations = psro(load(name), train, iterations)
    return exploitability_of(load(name), populations, evaluate)


def even(name: str, iterations: int = N) -> list[Any]:
    """The uniform weights of all iterations."""
    return [np.ones((len(load(name).sides), t)).tolist() for t in range(1, iterations + 2)]


def test_games_are_held_out() -> None:
    names = [name for split in ("train", "gate", "test") for name in GAMES[split]]
    assert len(set(names)) == len(names)
    assert "leduc" in GAMES["test"]
    assert world().name == "program:meta-solver:20"
    with pytest.raises(UserError, match="meta-solver:0: the number of iterations goes from 1 to 100"):
        load_task("program:meta-solver:0")


def test_programs_give_what_their_solvers_give_here(task: ProgramTask) -> None:
    asked = [(text, split) for text in SOLVERS for split in ("train", "gate")]
    found = task.evaluate([text for text, _ in asked], [task.instances(split) for _, split in asked])
    for (text, split), evaluation in zip(asked, found, strict=True):
        worth = {name: worth_of(name, *SOLVERS[text]) for name in GAMES[split]}
        digits = {name: -math.log10(max(x, 0.01 / N)) for name, x in worth.items()}
        assert evaluation.value == pytest.approx(sum(digits.values()) / len(digits), rel=1e-9)
        for name, x in worth.items():
            assert evaluation.metrics[f"exploitability/{name}"] == pytest.approx(x, rel=1e-8, abs=1e-14)
            assert evaluation.metrics[f"instance/{name}"] == pytest.approx(digits[name], rel=1e-9)


def test_the_last_mixtures_are_those_of_the_second_solver(task: ProgramTask) -> None:
    newest = "    return np.eye(payoffs.shape[1])[-1:].repeat(len(payoffs), axis=0)"
    first, second = task.evaluate(
        [program("    return [[1] * t] * len(payoffs)", newest), program(newest)], [["kuhn"]] * 2
    )

    def last(tables: Any, asked: int) -> list[np.ndarray]:
        return [np.eye(n)[-1] for n in tables[0].shape]

    assert first.metrics["exploitability"] == pytest.approx(worth_of("kuhn", meta.uniform(), last))
    assert second.metrics["exploitability"] == pytest.approx(worth_of("kuhn", last, meta.uniform()))
    assert first.metrics["exploitability"] != pytest.approx(second.metrics["exploitability"], rel=1e-3)


def test_what_a_solver_is_told(task: ProgramTask) -> None:
    """Iterations from 1, their number, and a memory of each game that both see; tables grow by a policy a player."""
    train = f"""    assert (t, n) == (len(memory) + 1, {N}), (t, n, memory)
    assert payoffs.shape == (len(payoffs),) + (t,) * len(payoffs)
    assert weights.shape == payoffs.shape[:2] and (weights == 1).all()
    memory[t] = True
    return np.ones(payoffs.shape[:2])"""
    evaluate = f"""    assert (t, n, len(memory)) == ({N}, {N}, {N})
    assert payoffs.shape[1:] == (t + 1,) * len(payoffs)
    return np.ones(payoffs.shape[:2])"""
    names = ("kuhn", "kuhn-3")
    told, seed = task.evaluate([program(train, evaluate), SEED], [names, names])
    assert (told.feedback, told.value) == ("", seed.value)


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ("return np.full(payoffs.shape[:2], np.nan)", "weights should be finite and not negative"),
        ("return np.full(payoffs.shape[:2], np.inf)", "weights should be finite and not negative"),
        ("return np.full(payoffs.shape[:2], 1e308)", "the weights of a player should have a finite sum above 0"),
        ("return 0.5 - np.arange(t) * np.ones((2, 1))", "weights should be finite and not negative"),
        ("return np.ones((2, t)) * [[1], [0]]", "the weights of a player should have a finite sum above 0"),
        ("return np.ones(t)", "there should be numbers, 2 rows of 3"),
        ("return np.ones((t, 2))", "there should be numbers, 2 rows of 3"),
        ("return 'even'", "there should be numbers, 2 rows of 3"),
        ("return [[1, 2, 3], [1]]", "there should be numbers, 2 rows of 3"),
        ("return None", "there should be numbers, 2 rows of 3"),
    ],
)
def test_weights_that_are_none(task: ProgramTask, body: str, wrong: str) -> None:
    train = f"    if t == 3:\n        {body}\n    return np.ones(payoffs.shape[:2])"
    late = body.replace("(t", "(1 + t").replace(", t", ", 1 + t")
    texts = [program(train), program("    return np.ones((2, t))", f"    {late}")]
    for evaluation, where in zip(
        task.evaluate(texts, [["kuhn"]] * 2), ("train_meta_strategy in iteration 3", "eval_meta_strategy"), strict=True
    ):
        assert (evaluation.value, evaluation.status) == (None, "invalid")
        told = wrong.replace("rows of 3", f"rows of {N + 1}") if where.startswith("eval") else wrong
        assert evaluation.feedback == f"kuhn: {where}: {told}"


def test_weights_need_not_sum_to_1(task: ProgramTask) -> None:
    """As in the paper's listing 2; truth values are weights, too."""
    texts = [
        program(f"    return {x}", f"    return {x}") for x in ("[[7] * len(payoffs[0])] * 2", "payoffs[:, 0] < 99")
    ]
    seed, *same = task.evaluate([SEED, *texts], [["kuhn"]] * 3)
    assert [x.value for x in same] == [seed.value] * 2


@pytest.mark.parametrize(
    ("body", "status", "wrong"),
    [("    raise KeyError(t)", "raised", "KeyError: 1"), ("    while True:\n        pass", "timeout", "")],
)
def test_programs_that_fail(task: ProgramTask, body: str, status: str, wrong: str) -> None:
    call = task.world.call(program(body), ("kuhn",))
    [outcome] = task.sandbox.run([call], replace(task.world.limits, seconds=1.0))
    assert outcome.status == status
    assert wrong in outcome.error


CHEATS = {
    "the payoffs changed": (f"    payoffs[:] = 0\n{WEIGHTS}    return weights", ""),
    "weights changed after they were given": (
        f"    for old in memory.get('all', []):\n        old[:, :-1] = 0\n{WEIGHTS}"
        "    memory.setdefault('all', []).append(weights)\n    return weights",
        "",
    ),
    "an array of its own kind": (
        f"{WEIGHTS}    return weights.view(Mine)",
        "\n\nclass Mine(np.ndarray):\n    def __array_ufunc__(self, *args, **kw):\n        return np.zeros((2, 1))",
    ),
}


@pytest.mark.parametrize("name", CHEATS)
def test_what_is_done_to_arrays_changes_nothing(task: ProgramTask, name: str) -> None:
    body, before = CHEATS[name]
    seed, found = task.evaluate([SEED, program(body, body, before)], [["kuhn"]] * 2)
    assert (found.value, found.feedback) == (seed.value, "")


@pytest.mark.parametrize(
    "lie",
    [
        "import evolvent.games.population as p\np.best_response = lambda game, i, _: game.sides[i].uniform() ** 9\n",
        "import run\nrun.psro = lambda game, train, n, old=run.psro: old(game, train, 9 * n)\n",
        "import run\nrun.payoffs = lambda *_: 'perfect'\n",
        "import run\nrun.given = lambda game, *_: [side.uniform() for side in game.sides]\n",
        "import run\nrun.given = lambda game, *_: 'perfect'\n",
    ],
)
def test_a_program_that_has_the_loop_in_its_hands_gains_nothing(task: ProgramTask, lie: str) -> None:
    """Not even one that nobody has read before: PSRO is done again, so many iterations, with what it gave."""
    call = task.world.call(SEED, ("kuhn",))
    calls = [replace(call, files={**call.files, "program.py": text + SEED}) for text in ("", lie)]
    outcomes = task.sandbox.run(calls, task.world.limits)
    honest, lying = (task.world.judge(o.value, ("kuhn",)) if o.status == "ok" else None for o in outcomes)
    assert honest is not None
    assert honest.value is not None
    assert lying is None or lying.value in (None, honest.value)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("import evolvent.games.population as P; P.psro = None", "it imports evolvent"),
        ("import sys; sys.modules['run'].psro = None", "it imports sys"),
        ("from run import psro", "it imports run"),
        ("open('run.py')", "it uses open"),
        ("import numpy as np; np.einsum = lambda *_, **kw: 0", "it assigns to .einsum"),
        ("import numpy as np; del np.einsum", "it assigns to .einsum"),
        ("import numpy as np\nfor np.einsum in [sum]: pass", "it assigns to .einsum"),
        ("import functools as f; f.update_wrapper(np, Mine, ('einsum',), ())", "it uses update_wrapper"),
        ("from functools import wraps", "it uses wraps"),
        ("import numpy as np; np.linalg._linalg.functools", "it uses _linalg"),
        ("import numpy as np; np.ma.core.functools.wraps", "it uses wraps"),
        ("from numpy.distutils.misc_util import exec_mod_from_location", "it uses distutils"),
        ("from numpy import distutils", "it uses distutils"),
    ],
)
def test_a_program_that_reaches_for_the_loop_is_not_run(task: ProgramTask, line: str, told: str) -> None:
    found = task.evaluate([f"{line}\n{SEED}"], [["kuhn"]])[0]
    assert (found.value, found.status) == (None, "refused")
    assert told in found.feedback


def test_only_so_many_iterations_are_judged() -> None:
    known = judge({"kuhn": even("kuhn")}, ("kuhn",), N)
    assert known.metrics["exploitability"] == pytest.approx(worth_of("kuhn", meta.uniform(), meta.uniform()))
    more, fewer = even("kuhn", N + 1), even("kuhn", N - 1)
    for value in (
        more,
        fewer,
        fewer[:1],
        [],
        "perfect",
        None,
        [None],
        {},
        [p.tolist() for p in load("kuhn").uniform()],
    ):
        evaluation = judge({"kuhn": value}, ("kuhn",), N)
        assert (evaluation.value, evaluation.status) == (None, "invalid")
        assert evaluation.feedback.startswith("kuhn: ")
    for value in ({}, [], {"kuhn-3": even("kuhn-3")}, {"kuhn": even("kuhn"), "kuhn-3": even("kuhn-3")}):
        assert judge(value, ("kuhn",), N).value is None


def test_what_is_solved_is_solved() -> None:
    """By the equilibrium of each table, which double oracle ends in: exactly 0 after so many iterations."""
    game, given = load("kuhn"), []

    def nash(tables: Any, asked: int) -> list[np.ndarray]:
        given.append(meta.nash()(tables, asked))
        return given[-1]

    *_, populations = psro(game, nash, 12)
    last = nash(payoffs(game, populations), 12)
    assert exploitability(game, profile(game, mixed(populations, last))) < 1e-9
    value = [np.array(mixtures).tolist() for mixtures in given]
    assert judge({"kuhn": value}, ("kuhn",), 12).value == pytest.approx(-math.log10(0.01 / 12))


def solver(text: str) -> Callable[..., Any]:
    """The one to train against."""
    names: dict[str, Any] = {}
    exec(text, names)
    return names["train_meta_strategy"]


@pytest.mark.parametrize("sizes", [(3,), (2, 3), (2, 3, 4), (3, 2, 2, 4)])
def test_the_expectation_of_the_seed_program(sizes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    most = max(sizes)
    tables = rng.normal(size=(len(sizes), *(most,) * len(sizes)))
    weights = rng.random((len(sizes), most))
    names: dict[str, Any] = {}
    exec(SEED, names)
    shares = weights / weights.sum(axis=1, keepdims=True)
    expected = [meta.against(tables[p], p, list(shares)) for p in range(len(sizes))]
    assert names["worth"](tables, weights) == pytest.approx(np.array(expected))


@pytest.mark.parametrize("component", COMPONENTS)
def test_components_run_in_the_seed(component: str) -> None:
    [statement] = ast.parse(component).body
    if isinstance(statement, ast.Expr):
        component = f"weights = weights + ({component}) ** 2"
    place = "        u = worth(payoffs, weights)\n"
    lines = "".join(f"        {line}\n" for line in component.split("\n"))
    text = SEED.replace(place, place + lines, 1)
    game = load("kuhn-3")
    memory: dict[str, Any] = {}
    train = solver(text)

    def mixed_by(tables: Any, asked: int) -> list[np.ndarray]:
        weights = train(np.ones((3, asked + 1)), np.array(tables), asked + 1, 3, memory)
        return list(weights / weights.sum(axis=1, keepdims=True))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        *_, populations = psro(game, mixed_by, 3)
    assert len(populations[0]) == 4


@pytest.mark.slow
def test_operators_find_better_solvers(task: ProgramTask) -> None:
    rng = np.random.default_rng(0)
    texts = [SEED, *(mutate(SEED, rng, (), COMPONENTS).source for _ in range(80))]
    seed, *found = task.evaluate(texts, [["kuhn"]] * len(texts))
    assert seed.value is not None
    assert sum(x.value is not None for x in found) > 40
    assert max(x.value for x in found if x.value is not None) > seed.value + 0.1


def test_a_search_without_a_model(task: ProgramTask, tmp_path: Path) -> None:
    spec = RunSpec("vad-cfr", TASK, "none", "40 evaluations", seed=0)
    candidates = begin(spec, tmp_path, "one", logs=(), final=False).view.candidates
    worth = {uid: c["evaluation"]["value"] for uid, c in candidates.items() if c["evaluation"]["value"] is not None}
    best = max(worth, key=lambda uid: worth[uid])
    seed, found = task.evaluate([SEED, text_of(candidates[best])])
    assert (seed.value, found.value) == (worth[0], worth[best])
    assert len(worth) > 3
