"""The card of a seed model: which levels it counts as what, and a page with all of it."""

from evolvent.bench.card import ASKED, Bench, competence, proposals, readme, room
from evolvent.models.load import load_policy
from evolvent.tasks.roles import Propose


def measured(sampled: float, gap: float) -> dict[str, float]:
    return {"greedy": sampled + gap, "sampled": sampled, "gap": gap, "pass16": 90.0}


LEVELS = {
    "1": measured(41, 5),
    "2": measured(40, 10),
    "3": measured(20, 10.1),
    "4": measured(2, 0),
    "5": measured(2.1, 0),
}
ROLES = {
    "judge": {
        level: {"balanced": x, "right": x, "wrong": x, "kinds": {"near": x}}
        for level, x in {"a": 74.9, "b": 75.0, "c": 95.0, "d": 95.1}.items()
    },
    "propose": {
        "a": {"valid": 89.9, "distinct": 99.0, "cooler": {"0.7": {"valid": 90.0, "distinct": 80.0}}},
        "b": {"valid": 95.0, "distinct": 90.0, "cooler": {"0.7": {"valid": 99.0, "distinct": 79.9}}},
    },
    "revise": {"a": {"right": 50.0, "draft shuffled": 30.0, "draft missing": 0.0}},
    "hint": {"a": {"right": 50.0, "hint shuffled": 30.1, "hint missing": 0.0}},
    "memory": {"a": {"right": 50.0, "notes shuffled": 0.0, "notes missing": 31.0}},
    "prefix": {"a": {"right": 20.0, "prefix shuffled": 0.0, "prefix missing": 0.0}},
}


def test_levels_to_learn_on_and_out_of_reach():
    assert room(LEVELS) == (["2"], ["4"])


def test_roles_are_held_against_what_is_asked():
    assert competence(ROLES) == {
        "judge": ["b", "c"],
        "propose": ["a at 0.7", "b at 1"],
        "revise": ["a"],
        "hint": [],
        "memory": [],
        "prefix": ["a"],
    }
    assert set(ASKED) == set(ROLES)


def test_the_page_shows_every_level_and_temperature():
    page = readme("toy", {"parameters": 1234, "problems": 8, "tasks": {"ab": LEVELS}, "roles": ROLES})
    assert "| ab | 2 | 4 |" in page
    assert "| judge | 75-95 % balanced accuracy | b, c |" in page
    for level, temperature, x in proposals(ROLES["propose"]):
        assert f"| {level} | {temperature} | {x['valid']} | {x['distinct']} |" in page


def test_proposals_are_measured_at_a_temperature():
    bench, task = Bench(load_policy("tiny-0"), 32), Propose(("countdown:3x12",))
    hot, cold = bench.proposing(task), bench.proposing(task, 0.1)
    assert hot["distinct"] > 80 > cold["distinct"]
    assert hot["valid"] <= cold["valid"]
