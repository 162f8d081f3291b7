"""Two loops: a proxy, tests with results that are late, guard-rails, launches, and the gauge of the proxy."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from tests.loopback import Answering, Scripted, chat_reply
from tests.recipes.recipe_runs import steps

from evolvent.core.errors import UserError
from evolvent.core.step import Step
from evolvent.run.assemble import Assembled, assemble
from evolvent.run.session import begin
from evolvent.run.spec import RunSpec
from evolvent.search.archive import archive_of
from evolvent.search.candidate import Candidate
from evolvent.search.launches import TwoLoops, alignment, highest_proxy, loops_of
from evolvent.tasks.evaluation import Evaluation


def spec(task: str = "program:digits-live", model: str = "none", count: int = 3, **settings: str) -> RunSpec:
    named = {"propose.children": "3"} | {name.replace("__", "."): value for name, value in settings.items()}
    return RunSpec("self-evolving-recsys", task, model, f"{count} steps", seed=1, settings=named)


def ready(made: Assembled) -> TwoLoops:
    (role,) = made.system.roles.values()
    for part in role.parts.values():
        if hasattr(part, "setup"):
            part.setup(role)
    return loops_of(role)


def test_the_alignment_is_spearmans() -> None:
    pairs = [(0.1, 5.0), (0.4, 1.0), (0.2, 2.0), (0.9, 4.0)]
    ranks = [(1, 4), (3, 1), (2, 2), (4, 3)]
    assert alignment(pairs) == pytest.approx(1 - 6 * sum((a - b) ** 2 for a, b in ranks) / (4 * 15))
    assert alignment(pairs[:2]) is None
    assert alignment([(0.1, 1.0), (0.1, 2.0), (0.1, 3.0)]) is None


@pytest.mark.slow
def test_candidates_are_tested_late_and_launched_when_better(sandboxed: str) -> None:
    made = assemble(spec(propose__slots="2", propose__delay="1"))
    loops, archive = ready(made), archive_of(next(iter(made.system.roles.values())))
    begun: dict[int, int] = {}
    for t in range(14):
        steps(made.system, 1)
        for uid, stage, due, _ in loops.running:
            begun.setdefault(uid, t)
            measured = {n for n in archive.history[uid].evaluation.metrics if n.startswith("instance/")}
            assert due > begun[uid]
            assert len(measured) in ({0: (0, 1), 1: (1, 3)}[stage])
            if t < begun[uid] + 1:
                assert not measured  # the result comes a step later
        assert len(loops.running) <= 2
    assert loops.ended
    ended = dict(loops.ended)
    for c in archive.history[1:]:
        measured = {n for n in c.evaluation.metrics if n.startswith("instance/")}
        if c.uid not in ended and c.uid not in begun:
            assert not measured
            assert not c.evaluation.complete
        if c.valid:
            assert "proxy/lesson-0" in c.evaluation.metrics
    values = [archive.history[uid].value for uid in loops.launched]
    assert values == sorted(values)
    assert [uid for uid, why in loops.ended if why == "launched"] == loops.launched[1:]
    assert all(archive.history[uid].evaluation.complete for uid in loops.launched)
    assert archive.best is archive.history[loops.launched[-1]]
    for uid, why in loops.ended:
        if why == "guard":
            assert len([n for n in archive.history[uid].evaluation.metrics if n.startswith("instance/")]) in (1, 3)


def history_of(aligned: bool) -> list[Candidate]:
    made = [Candidate(0, {"program": ""}, Evaluation(0.5, {"instance/x": 0.5}))]
    for i in range(1, 8):
        value = (i if aligned else 8 - i) / 10
        metrics = {"proxy/a": i / 10, "proxy/b": value, "instance/x": value}
        made.append(Candidate(i, {"program": ""}, Evaluation(value, metrics), (0,)))
    return made


@pytest.mark.parametrize(
    ("aligned", "drop", "proxies", "place"),
    [
        (False, "switch", ("a", "b"), 1),
        (False, "switch", ("a",), -1),
        (False, "stop", ("a", "b"), -1),
        (False, "ignore", ("a", "b"), 0),
        (True, "switch", ("a", "b"), 0),
    ],
)
def test_a_proxy_that_misleads_is_given_up(
    sandboxed: str, aligned: bool, drop: str, proxies: tuple[str, ...], place: int
) -> None:
    made = assemble(spec(propose__drop=drop))
    loops = ready(made)
    (s,) = steps(made.system, 1)
    history = history_of(aligned)
    loops.ended = [[c.uid, "no gain"] for c in history[1:6]]
    loops._gauge(history, proxies, s)
    assert loops.place == 0  # five are not enough
    loops.ended = [[c.uid, "no gain"] for c in history[1:]]
    loops._gauge(history, proxies, s)
    assert s.metrics["alignment"] == pytest.approx(1 if aligned else -1)
    assert loops.place == place
    loops._gauge(history, proxies, s)
    assert loops.place == place  # only what is tested from now on counts


def measured(proxies: list[float | None], name: str = "lesson-0") -> list[Candidate]:
    """The launched one and children of it, each with its proxy; None: it is not valid."""
    made = []
    for i, proxy in enumerate(proxies):
        evaluation = Evaluation(None) if proxy is None else Evaluation(0.5, {f"proxy/{name}": proxy}, complete=not i)
        made.append(Candidate(i, {"program": f"x = {i}"}, evaluation, (0,) if i else ()))
    return made


def begun(loops: TwoLoops, made: Assembled, t: int) -> list[tuple[int, tuple[str, ...]]]:
    """Who is evaluated further in a step, and on what."""
    (requests,) = loops(Step(t, made.main_role))
    return [(r.resume[0].info["candidate"], r.resume[0].info["instances"]) for r in requests if r.resume]


def test_the_highest_by_the_proxy_are_tested_first_and_nobody_below_the_launched_one(sandboxed: str) -> None:
    made = assemble(spec(propose__slots="2", propose__delay="0"))
    loops, archive = ready(made), archive_of(made.main_role)
    # 0 is launched; 3 is as good, 4 worse and 6 not valid
    archive.history = measured([0.5, 0.6, 0.9, 0.5, 0.4, 0.7, None, 0.8])
    archive.members = archive.history[:1]
    first = made.task.world.stages[0]  # type: ignore[attr-defined]
    assert begun(loops, made, 2) == [(2, first), (7, first)]  # two at once
    assert begun(loops, made, 3) == [(2, first), (7, first)]  # these are not through: nobody else starts
    loops.running, loops.ended = loops.running[1:], [[2, "no gain"]]
    assert begun(loops, made, 4) == [(7, first), (5, first)]
    loops.running, loops.ended = [], [[uid, "no gain"] for uid in (2, 7, 5)]
    assert begun(loops, made, 5) == [(1, first)]  # one slot stays free: nobody left is better than the launched one
    loops.running, loops.ended = [], [[uid, "no gain"] for uid in (2, 7, 5, 1)]
    assert begun(loops, made, 6) == []


def test_who_is_launched_sets_the_bar(sandboxed: str) -> None:
    made = assemble(spec(propose__slots="9", propose__delay="0"))
    loops, archive = ready(made), archive_of(made.main_role)
    archive.history = measured([0.5, 0.6, 0.9, 0.7, 0.8])
    archive.members = archive.history[:1]
    loops.launched, loops.ended = [0, 3], [[3, "launched"]]
    assert [uid for uid, _ in begun(loops, made, 2)] == [2, 4]


def test_without_a_proxy_chance_says_who_is_tested(sandboxed: str) -> None:
    made = assemble(spec(propose__slots="9", propose__delay="0"))
    loops, archive = ready(made), archive_of(made.main_role)
    archive.history = measured([0.5, 0.6, 0.9, 0.5, 0.4])
    archive.members = archive.history[:1]
    loops.place = -1
    order = [uid for uid, _ in begun(loops, made, 2)]
    assert sorted(order) == [1, 2, 3, 4]  # also who is not better by the proxy
    orders = set()
    for t in range(3, 9):
        loops.running = []
        orders.add(tuple(uid for uid, _ in begun(loops, made, t)))
    assert len(orders) > 1


def test_guard_rails(sandboxed: str) -> None:
    loops = ready(assemble(spec(propose__guard="0.05")))

    def settle(uid: int, **values: float) -> None:
        metrics = {f"instance/{name}": value for name, value in values.items()}
        c = Candidate(uid, {"program": ""}, Evaluation(sum(values.values()) / len(values), metrics), (0,))
        base = Candidate(0, {"program": ""}, Evaluation(0.6, {"instance/x": 0.5, "instance/y": 0.7}))
        history = [base] * uid + [c]
        loops.running = [[uid, len(values) - 1, 3, 1]]
        loops._settle(history, [("x",), ("y",)], 3)

    settle(1, x=0.44)
    assert loops.ended[-1] == [1, "guard"]
    settle(2, x=0.46)
    assert loops.running == [[2, 1, 5, 0]]
    settle(3, x=0.46, y=0.72)
    assert loops.ended[-1] == [3, "no gain"]
    settle(4, x=0.5, y=0.8)
    assert loops.ended[-1] == [4, "launched"]
    assert loops.launched == [0, 4]


def test_proxy_only_search_tests_nobody(tmp_path: Path, sandboxed: str) -> None:
    made = assemble(spec(propose__slots="0", keep__final="evolvent.search.launches:highest_proxy"))
    archive = archive_of(next(iter(made.system.roles.values())))
    ready(made)
    steps(made.system, 4)
    children = [c for c in archive.history[1:] if c.valid]
    assert not any(name.startswith("instance/") for c in children for name in c.evaluation.metrics)
    assert archive.best is highest_proxy(archive.history)
    assert archive.best.evaluation.metrics["proxy/lesson-0"] == max(
        c.evaluation.metrics["proxy/lesson-0"] for c in [*children, archive.history[0]]
    )


@pytest.mark.slow
def test_with_a_model_the_journal_is_read(tmp_path: Path, sandboxed: str) -> None:
    lock, prompts = threading.Lock(), []

    def act(a: Answering) -> None:
        shown = "\n".join(m["content"] for m in a.body["messages"] if m["role"] == "system")
        with lock:
            prompts.append(shown)
            rate = 0.2 + len(prompts) / 20
        diff = f"<<<<<<< SEARCH\n    rate = 0.2\n=======\n    rate = {rate:.2f}\n>>>>>>> REPLACE"
        a.say(chat_reply(f"HYPOTHESIS: steps of {rate:.2f} are better.\n{diff}"))

    only = {"propose__build": "0", "propose__delay": "0", "propose__children": "2"}
    only |= {f"rollout__write__kinds__{k}": str(float(k == "diff")) for k in ("diff", "rewrite", "cross")}
    with Scripted(act) as server:
        result = begin(spec(model=f"{server.url}#m", count=7, **only), tmp_path / "runs", logs=("jsonl",))
    assert result.view.errors == {}
    assert "The journal" not in prompts[0]
    assert all(f"steps of {0.2 + (i + 1) / 20:.2f} are better" in shown for shown in prompts[2:4] for i in range(2))
    assert "proxy/lesson-0" in prompts[2]
    assert any("; tested: " in shown for shown in prompts)
    assert all(
        any(f"from one side: {p}" in shown for p in ("optimiser", "architecture", "reward")) for shown in prompts
    )
    found = [c for c in result.view.candidates.values() if c["parents"]]
    assert all("hypothesis" in c["notes"] for c in found)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"propose__drop": "forget"}, "switch, stop, ignore"),
        ({"propose__enough": "2"}, "at least 3"),
        ({"propose__guard": "-1"}, "propose.guard must be at least 0, got -1"),
    ],
)
def test_settings_that_cannot_work(settings: dict[str, str], told: str) -> None:
    with pytest.raises(UserError, match=told):
        assemble(spec(**settings))
