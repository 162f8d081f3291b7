"""How strategy sections change: the diagnosis of a run, what it makes likely, and what a model is shown."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from tests.tasks.worlds.text_games.test_scripted import log_of

from evolvent.core.errors import UserError
from evolvent.run.assemble import Assembled, assemble
from evolvent.run.spec import RunSpec
from evolvent.search.adaptation.inner import games_of
from evolvent.search.adaptation.strategy import SYMPTOMS, Directives, diagnosis, relevance, told
from evolvent.search.archive import archive_of
from evolvent.tasks.worlds.text_games.adviser import DIRECTIVES, REFLEXION
from evolvent.tasks.worlds.text_games.notes import LINES
from evolvent.tasks.worlds.text_games.world import Run, strategy_of

TASK = "program:text-games:games=4,episodes=3,limit=20"


def run_of(*episodes: tuple[str, str]) -> Run:
    return Run(tuple(0.0 for _ in episodes), tuple(log for log, _ in episodes), tuple(text for _, text in episodes))


def test_a_diagnosis_counts_what_the_logs_show() -> None:
    first = log_of("open chest", "take lamp", "east", "go east", "take coin", "go west", "dance")
    second = log_of("go east")  # dies in the dark
    found = diagnosis([run_of((first, "Good luck."), (second, "\n".join(f"line {i}" for i in range(LINES + 3))))])
    assert found["deaths"] == 1
    assert found["vain"] == 2  # `east` was no way any more in the cave, and one cannot dance
    assert found["missed"] == 1  # the coin
    assert found["left out"] == 3
    assert found["lost"] == 1
    assert found["locked"] == 1 + 2  # the locked door in both logs, and the dark in the second
    assert "1 episodes in which the actor died" in told(found)
    assert all(line.split(" ", 1)[1] in SYMPTOMS.values() for line in told(found))


def test_relevance_is_words_in_common() -> None:
    assert relevance("List commands that failed, and where.", {"vain": 4, "deaths": 2}) == pytest.approx(
        2 * math.log(5)
    )  # `commands` and `failed`
    assert relevance("Sing.", {"vain": 4}) == 0
    assert relevance("List commands that failed.", {"vain": 0}) == 0


def test_edits_follow_the_diagnosis() -> None:
    library, symptoms = tuple(DIRECTIVES.values()), {"vain": 20}
    counts = {}
    for guided in (0.0, 5.0):
        part, rng = Directives(edits=1, guided=guided), np.random.default_rng(1)
        counts[guided] = Counter(tuple(part.edited((), library, symptoms, rng)) for _ in range(1500))
    weights = {line: 1 + 5 * relevance(line, symptoms) for line in library}
    for line in library:
        assert counts[0.0][(line,)] / 1500 == pytest.approx(1 / len(library), abs=0.03)
        assert counts[5.0][(line,)] / 1500 == pytest.approx(weights[line] / sum(weights.values()), abs=0.03)


def test_edits_add_remove_and_move() -> None:
    library, rng, lines = tuple(DIRECTIVES.values()), np.random.default_rng(2), tuple(DIRECTIVES.values())[:4]
    for symptoms, gone in (({}, 0.25), ({"left out": 3}, 0.4)):
        made = [Directives(edits=1).edited(lines, library, symptoms, rng) for _ in range(1200)]
        sizes = Counter(len(new) for new in made)
        assert sizes[3] / 1200 == pytest.approx(gone, abs=0.04)
        assert sizes[5] / 1200 == pytest.approx(0.5 if not symptoms else 0.4, abs=0.04)
        assert all(sorted(new) == sorted(lines) for new in made if len(new) == 4)
        assert all(len(set(new)) == len(new) for new in made)
    assert Directives(edits=0).edited(lines, library, {}, rng) == list(lines)
    distances = {len(set(Directives(edits=3).edited((), library, {}, rng))) for _ in range(200)}
    assert distances >= {1, 2, 3}


def system(**settings: object) -> Assembled:
    named = {name.replace("__", "."): value for name, value in settings.items()}
    return assemble(RunSpec("meta-ttl", TASK, "none", seed=1000, settings=named))


def test_a_search_keeps_who_beats_its_parent_and_pays_for_every_inner_run() -> None:
    made = system()
    archive, task = archive_of(made.main_role), games_of(made.main_role)
    paid = []
    for _ in range(18):
        made.system.step()
        paid.append(made.system.ledger.of("verifier_calls"))
    assert paid[0] == 4  # the seed program, on all games
    whole = 0
    for c, before, after in zip(archive.history[1:], paid, paid[1:], strict=False):
        [name] = c.notes["minibatch"]
        parent = archive.history[c.parents[0]]
        better = c.evaluation.metrics[f"instance/{name}"] > parent.evaluation.metrics[f"instance/{name}"]
        assert c.evaluation.complete == better
        assert after - before == 1 + 1 + 3 * better  # the parent's run, the child's, and the other games
        whole += better
    assert 0 < whole < 17
    assert strategy_of(archive.history[0].text) == ()
    best = archive.best
    assert best is not None
    [anew] = task.evaluate([best.text])
    assert anew.value == pytest.approx(best.value)


def test_fixed_policies_stay_as_they_are() -> None:
    made = system(judge__start="reflexion", rollout__mutate__edits=0)
    steps = [s for _ in range(6) for s in made.system.step()]
    texts = {strategy_of(c.text) for c in archive_of(made.main_role).history}
    assert texts == {tuple(DIRECTIVES[name] for name in REFLEXION)}
    assert len({s.metrics["gain"] for s in steps[1:]}) == 1
    nothing = system(rollout__mutate__edits=0)
    gains = [s.metrics["gain"] for _ in range(3) for s in nothing.system.step() if "gain" in s.metrics]
    assert gains[-1] < steps[-1].metrics["gain"]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"judge__start": "socratic"}, "start"),
        ({"rollout__mutate__edits": -1}, "at least 0"),
        ({"rollout__write__longest": 0}, "at least 1"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, object], said: str) -> None:
    with pytest.raises(UserError, match=said):
        system(**settings)


def test_other_tasks_are_refused() -> None:
    with pytest.raises(UserError, match="program:text-games"):
        assemble(RunSpec("meta-ttl", "program:repair:10", "none"))
