"""The seed models are what their cards say, and their cards say what evidence needs."""

import json

import pytest

from evolvent.bench.card import Bench, room
from evolvent.models.load import SEEDS, load_policy, seed_models
from evolvent.models.shipped import SHAPES, shape_of
from evolvent.tasks.registry import load_task

TINY = [name for name in seed_models() if name.startswith("tiny")]


def card(name: str) -> dict:
    return json.loads((SEEDS / name / "card.json").read_text())


def test_four_tiny_models_ship():
    assert TINY == ["tiny-0", "tiny-1", "tiny-2", "tiny-3"]


@pytest.mark.parametrize("name", TINY)
def test_size_and_files(name):
    policy = load_policy(name)
    assert 100_000 <= policy.size <= 250_000
    assert policy.size == card(name)["parameters"]
    assert policy.model.config.num_hidden_layers == SHAPES["tiny"].layers
    assert sum(f.stat().st_size for f in (SEEDS / name).iterdir()) < 2_000_000


@pytest.mark.parametrize("name", TINY)
@pytest.mark.parametrize("spec", ["countdown:2x50", "arith:2x2-chain"])
def test_the_card_can_be_measured_again(name, spec):
    family, level = spec.split(":")
    stated = card(name)["tasks"][family][level]
    task = load_task(spec)
    bench = Bench(load_policy(name), 256)
    assert 100 * bench.greedy(task, bench.draw(task)).mean() == pytest.approx(stated["greedy"], abs=1.0)


@pytest.mark.parametrize("name", TINY)
def test_there_is_room_to_learn_and_something_out_of_reach(name):
    for family, levels in card(name)["tasks"].items():
        learn, beyond = room(levels)
        assert learn, family
        assert beyond, family


@pytest.mark.parametrize("name", TINY)
def test_roles_are_competent_and_use_their_inputs(name):
    roles = card(name)["roles"]
    assert 75 <= roles["judge"]["3x20"]["balanced"] <= 95
    assert all(x["distinct"] >= 80 for x in roles["propose"].values())
    assert all(x["valid"] >= 90 for level, x in roles["propose"].items() if level.startswith("arith"))
    for role in ("revise", "hint", "memory", "prefix"):
        for level, x in roles[role].items():
            others = [value for key, value in x.items() if key != "right"]
            assert x["right"] >= max(others) + 20, (role, level)


def test_other_shapes_have_the_usual_proportions():
    assert (shape_of("2x64").inner, shape_of("2x64").heads) == (176, 4)
    assert shape_of("tiny") == SHAPES["tiny"]
