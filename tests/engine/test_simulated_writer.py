"""The simulated model that writes programs: its habits as shares of real answers, and what it reads in prompts."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import numpy as np
import pytest

from evolvent.core.errors import UserError
from evolvent.core.ledger import Ledger
from evolvent.core.random import stream
from evolvent.engine.choose import open_model
from evolvent.engine.simulated import SimulatedEngine
from evolvent.engine.simulated_prompt import ADVICE, read_prompt
from evolvent.engine.simulated_writer import Habits, SimulatedWriter
from evolvent.search.asking import Prompts
from evolvent.search.candidate import Candidate
from evolvent.search.variation.edits import EditError, apply, parse_diff, rewrite, within
from evolvent.tasks.evaluation import Evaluation, invalid
from evolvent.tasks.worlds.landscape import Landscape
from evolvent.tasks.worlds.terrain import Terrain

LAND = Landscape(Terrain(parts=8, options=4, k=1, seed=3))
PLAIN = Habits(skill=0, breakage=0, unusable=0, lazy=0)
DRAWS = 400
BEST = LAND.terrain.optimum[1]
assert BEST is not None


def candidate(choices: Any, land: Landscape = LAND, **more: Any) -> Candidate:
    text = land.text(choices)
    return Candidate(0, {"program": text}, more.pop("evaluation", land.evaluate([text])[0]), **more)


START = candidate(LAND.terrain.first)


def asked(kind: str, *shown: Candidate, land: Landscape = LAND, error: str = "", more: str = "") -> str:
    """A prompt as `Write` makes it, and the goal."""
    parent, *others = shown or (START,)
    wording = Prompts()
    text = wording.render(
        kind, parent=parent, others=others, marked=True, error=error, opening=wording.lines("openings")[0], texts=[]
    )
    return "\n\n".join([text, more, land.world.goal])


def replies(habits: Habits, prompt: str, land: Landscape = LAND, count: int = DRAWS) -> list[str]:
    writer = SimulatedWriter(land, habits, Ledger())
    return [writer.reply(prompt, stream(i, "test")) for i in range(count)]


def used(kind: str, reply: str, parent: Candidate = START) -> str:
    """The program that comes of a reply, by the rules of `Write`; `unusable` or `lazy` if none does."""
    try:
        made = apply(parent.text, parse_diff(reply)) if kind == "diff" else within(parent.text, rewrite(reply))
    except (EditError, UserError):
        return "unusable"
    return "lazy" if made == parent.text else made


def near(found: int, chance: float, count: int = DRAWS) -> bool:
    """Within four standard deviations of a binomial count."""
    return abs(found - count * chance) <= 4 * np.sqrt(count * chance * (1 - chance)) + 1e-9


def changed(program: str, before: Candidate = START, land: Landscape = LAND) -> dict[int, int]:
    """Places that an answer has changed, and to what."""
    old, new = land.choices(before.text), land.choices(program)
    return {i: int(new[i]) for i in np.flatnonzero(old != new)}


# --- the shares -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["diff", "rewrite"])
def test_shares_of_what_is_unusable_lazy_and_broken(kind: str) -> None:
    habits = Habits(skill=0, breakage=0.3, unusable=0.2, lazy=0.1)
    found: Counter[str] = Counter()
    for reply in replies(habits, asked(kind)):
        made = used(kind, reply)
        broken = made not in ("unusable", "lazy") and LAND.evaluate([made])[0].value is None
        found["broken" if broken else made if made in ("unusable", "lazy") else "sound"] += 1
    assert near(found["unusable"], 0.2)
    assert near(found["lazy"], 0.1)
    assert near(found["broken"], 0.3)
    assert near(found["sound"], 0.4)


@pytest.mark.parametrize(("kind", "parts"), [("diff", 2), ("rewrite", 5)])
def test_as_many_parts_are_changed_as_it_says(kind: str, parts: int) -> None:
    habits = dataclasses.replace(PLAIN, edits=2, rewrites=5)
    for reply in replies(habits, asked(kind), count=50):
        assert len(changed(used(kind, reply))) == parts


@pytest.mark.parametrize("skill", [0.0, 0.5, 1.0])
def test_skill_is_the_chance_of_an_improvement(skill: float) -> None:
    """skill + (1 - skill) x share of better ones among the others where there is a better one; else 0."""
    chances = []
    for part in range(8):
        values = LAND.terrain.neighbours(LAND.terrain.first, part)
        better = int((values > values[LAND.terrain.first[part]]).sum())
        chances.append((skill + (1 - skill) * better / 3) if better else 0.0)
    better = [
        LAND.true_value(used("diff", reply)) > LAND.true_value(START.text)
        for reply in replies(dataclasses.replace(PLAIN, skill=skill), asked("diff"))
    ]
    assert near(sum(better), float(np.mean(chances)))


def test_traits_of_the_parent_make_the_edits_better() -> None:
    land = Landscape(Terrain(parts=8, options=4, k=1, seed=3, traits=2, boost=0.8))
    choices = land.terrain.first.copy()
    shares = []
    for number in (None, 8, 9):
        if number is not None:
            choices[number] = land.terrain.targets[number]
        parent = candidate(choices, land)
        made = [used("diff", r, parent) for r in replies(PLAIN, asked("diff", parent, land=land), land)]
        shares.append(np.mean([land.true_value(m) > land.true_value(parent.text) for m in made]))
    assert shares[0] + 0.08 < shares[1] < shares[2] - 0.08


def test_without_diversity_it_has_one_favourite_for_each_program() -> None:
    same = {used("diff", r) for r in replies(dataclasses.replace(PLAIN, diversity=0), asked("diff"), count=30)}
    assert len(same) == 1
    other = candidate(BEST)
    assert {used("diff", r, other) for r in replies(dataclasses.replace(PLAIN, diversity=0), asked("diff", other))}
    half = Counter(used("diff", r) for r in replies(dataclasses.replace(PLAIN, diversity=0.5), asked("diff")))
    assert near(half[same.pop()], 0.5 + 0.5 / 24)
    assert len({used("diff", r) for r in replies(PLAIN, asked("diff"))}) == 24  # eight parts, three others each


# --- what is in the prompt ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("usefulness", [0.0, 0.6, 1.0])
def test_an_inspiration_helps_as_often_as_it_says(usefulness: float) -> None:
    terrain = LAND.terrain
    better = {
        (i, int(BEST[i]))
        for i in range(8)
        if terrain.neighbours(terrain.first, i)[BEST[i]] > terrain.value(terrain.first)
    }
    assert better
    prompt = asked("diff", START, candidate(BEST))
    made = [changed(used("diff", r)) for r in replies(dataclasses.replace(PLAIN, inspiration=usefulness), prompt)]
    taken = sum(next(iter(m.items())) in better for m in made)
    assert near(taken, usefulness + (1 - usefulness) * len(better) / 24)


def test_an_inspiration_that_has_nothing_better_is_of_no_use() -> None:
    top = candidate(BEST)
    prompt = asked("diff", top, START)
    made = Counter(
        str(changed(used("diff", r, top), top)) for r in replies(dataclasses.replace(PLAIN, inspiration=1.0), prompt)
    )
    assert len(made) == 24


def test_a_crossing_takes_parts_of_the_other_program() -> None:
    other = candidate(BEST)
    differ = changed(other.text)
    counts: Counter[int] = Counter()
    for reply in replies(PLAIN, asked("cross", START, other)):
        made = changed(used("rewrite", reply))
        assert made
        assert made.items() <= differ.items()
        counts.update(made.keys())
    first, *rest = sorted(differ, key=lambda i: LAND.lines.index(LAND.names[i]))
    assert all(near(counts[i], 0.5) for i in rest)
    assert near(counts[first], 0.5 + 0.5 ** len(differ))  # taken as well where no other is
    better = [
        changed(used("rewrite", r))
        for r in replies(dataclasses.replace(PLAIN, inspiration=1.0), asked("cross", START, other))
    ]
    terrain = LAND.terrain
    assert all(
        terrain.neighbours(terrain.first, i)[o] > terrain.value(terrain.first) for m in better for i, o in m.items()
    )


@pytest.mark.parametrize("usefulness", [0.0, 0.5])
def test_advice_is_followed_as_often_as_it_says(usefulness: float) -> None:
    part = 2
    option = (int(LAND.terrain.first[part]) + 1) % 4
    sentence = f'Lesson: {LAND.names[part]} = "{LAND.options[option]}" was good.'
    habits = dataclasses.replace(PLAIN, lesson=usefulness)
    made = [changed(used("diff", r)) for r in replies(habits, asked("diff", more=sentence))]
    assert near(sum(m == {part: option} for m in made), usefulness + (1 - usefulness) / 24)
    against = [
        changed(used("diff", r)) for r in replies(habits, asked("diff", more=sentence.replace("Lesson", "Avoid")))
    ]
    assert near(sum(m == {part: option} for m in against), (1 - usefulness) / 24)


def test_the_part_that_the_evaluator_names_is_changed_as_often_as_it_says() -> None:
    told = Evaluation(0.5, {}, f"The part that adds least: {LAND.names[4]}")
    parent = candidate(LAND.terrain.first, evaluation=told)
    for usefulness in (0.0, 0.7):
        made = replies(dataclasses.replace(PLAIN, feedback=usefulness), asked("diff", parent))
        hits = sum(4 in changed(used("diff", r)) for r in made)
        assert near(hits, usefulness + (1 - usefulness) / 8)


def test_a_stated_error_is_heeded_as_often_as_it_says() -> None:
    habits = Habits(skill=0, unusable=0.5, lazy=0, breakage=0, feedback=0.6)
    error = 'diff 1 of 1: the search text matches nowhere:\n  cache = "lazy"'
    assert near(sum(used("diff", r) == "unusable" for r in replies(habits, asked("diff"))), 0.5)
    assert near(sum(used("diff", r) == "unusable" for r in replies(habits, asked("diff", error=error))), 0.2)


@pytest.mark.parametrize("kind", ["diff", "rewrite"])
def test_a_program_that_does_not_run_is_mended(kind: str) -> None:
    line = f'    {LAND.lines[3]} = "'
    at = START.text.index(line)
    stop = START.text.index("\n", at)
    for wrong in (START.text[: stop - 1] + START.text[stop:], START.text[:at] + START.text[stop + 1 :]):
        parent = Candidate(0, {"program": wrong}, invalid("it fails"))
        for reply in replies(PLAIN, asked(kind, parent), count=20):
            assert LAND.evaluate([used(kind, reply, parent)])[0].value is not None


def test_where_no_program_is_wanted_it_gives_advice_that_it_can_read_itself() -> None:
    shown = [
        f"Program {i} (value {c.value}):\n\n```python\n{c.text}```" for i, c in enumerate((START, candidate(BEST)))
    ]
    text = "\n\n".join([*shown, "What is to be learned from these?", LAND.world.goal])
    said = replies(dataclasses.replace(PLAIN, skill=1.0), text, count=1)[0]
    prompt = read_prompt(asked("diff", more=said))
    assert prompt is not None
    assert 1 <= len(prompt.advice) <= 3
    terrain = LAND.terrain
    for part, option in prompt.advice:
        values = terrain.neighbours(terrain.first, LAND.places[part])
        assert values[LAND.options.index(option)] > terrain.value(terrain.first)
    plan = replies(PLAIN, "\n\n".join([shown[0], "What would you do?", LAND.world.goal]), count=1)[0]
    assert plan.startswith("Plan: ")
    assert "machine" in replies(PLAIN, "What is the time?", count=1)[0]


def test_lessons_notes_and_recommendations_of_a_search_are_understood() -> None:
    """The prompts of `search/prompts` that ask for text: what is said in one is heeded in the next."""
    wording, top = Prompts(), candidate(BEST)
    habits = dataclasses.replace(PLAIN, skill=1.0, lesson=1.0, rewrites=1)

    def said(name: str, **values: Any) -> str:
        return replies(habits, f"{wording.render(name, **values)}\n\n{LAND.world.goal}", count=1)[0]

    lesson = said("lesson", parent=START, candidate=top, plan="")
    assert lesson.startswith("Lesson: ")
    notes = said("notes", best=top, notes="", summaries=[(top, lesson), (START, lesson)])
    assert sorted(set(notes.split("\n"))) == sorted(set(lesson.split("\n")))
    recommended = said("recommend", notes=notes, best=START, most=3)
    told = {(LAND.places[p], LAND.options.index(o)) for p, o in ADVICE.findall(lesson)}
    planned = {(LAND.places[p], LAND.options.index(o)) for p, o in ADVICE.findall(recommended)}
    assert planned <= told
    followed = changed(used("diff", replies(habits, asked("diff", more=recommended), count=1)[0]))
    assert followed.items() <= planned
    assert said("summary", candidate=START).startswith("Plan: ")


# --- settings and the ledger ----------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_answers() -> None:
    prompt = asked("rewrite")
    assert replies(Habits(), prompt, count=20) == replies(Habits(), prompt, count=20)
    assert len(set(replies(Habits(), prompt, count=20))) > 10


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ("simulated:skill=2", "skill is a chance from 0 to 1"),
        ("simulated:lazy=-0.1", "lazy is a chance"),
        ("simulated:lazy=0.5,breakage=0.4,unusable=0.2", "more than 1 together"),
        ("simulated:edits=0", "at least 1"),
        ("simulated:skil=0.3", "did you mean skill"),
        ("simulated:skill", "is no setting"),
        ("simulated:skill=high", "simulated: skill must be float"),
        ("simulated:skill=nan", "skill must be a number"),
        ("simulated:edits=1.5", "simulated: edits must be int"),
    ],
)
def test_settings_that_cannot_be(model: str, told: str) -> None:
    with pytest.raises(UserError, match=told):
        open_model(model, "program:landscape", Ledger())


def test_settings_in_the_name() -> None:
    _, engine, task = open_model("simulated:skill=0.4,edits=2", "program:landscape", Ledger())
    assert isinstance(engine, SimulatedWriter)
    assert engine.habits == Habits(skill=0.4, edits=2)
    assert engine.landscape is task
    policy, answers, _ = open_model("simulated:skill=1.5,spread=0", "arith:1x1", Ledger())
    assert isinstance(answers, SimulatedEngine)
    assert (policy.skills, policy.spread) == ({"1x1": 1.5}, 0)
    for model in ("none:skill=1", "simulate:skill=1"):
        with pytest.raises(UserError):
            open_model(model, "arith:1x1", Ledger())
