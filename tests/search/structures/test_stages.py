"""Auto-Evolve's stages: by rules, whose choices are worked out by hand here, and by a model behind an endpoint."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from tests.loopback import Answering, Scripted, chat_reply

from evolvent.core.errors import UserError
from evolvent.run.assemble import assemble
from evolvent.run.session import begin
from evolvent.run.spec import RunSpec
from evolvent.search.archive import archive_of
from evolvent.search.structures.modules import anchors, generated, implemented, keyed, refined, relevance, selected
from evolvent.search.structures.stages import ByRules, structure_in
from evolvent.tasks.worlds.structures.operations import FIXED, fill
from evolvent.tasks.worlds.structures.world import TASKS, problem, structures_of

GCD = [problem("gcd", "examples", i)["question"] for i in range(6)]
COLON, NUMBERS = "Take what follows the last colon.", "List the numbers."
DIVISOR = "Find the greatest common divisor of the list."


def test_anchors_are_what_all_examples_have_around_what_differs() -> None:
    found = anchors(["Add up 1, 2 now.", "Add up 37, 5 now.", "Add up 4, 86 now."])
    assert found == ["Take what stands between 'Add up' and 'now.'."]
    assert anchors(["Reverse: ab", "Reverse: cd"]) == ["Take what stands after 'Reverse:'."]
    assert fill(keyed(found), "Add up 1, 2 now.").answer == "1, 2"


def test_relevance_is_the_words_that_a_question_has_too() -> None:
    # find, greate(st), common, diviso(r), list: four of five stand in the question
    assert relevance(DIVISOR, GCD[:1]) == pytest.approx(4 / math.sqrt(5))
    assert relevance("Take what follows 'greatest'.", ["the greatest"]) == 0  # pieces of text do not count


def test_modules_are_the_tasks_own_or_of_the_list() -> None:
    own = generated(GCD[:3], 3)
    assert own[0].startswith("Take what stands between")
    assert DIVISOR in own
    fixed = selected(GCD[:3], len(FIXED))
    assert DIVISOR not in fixed  # nothing in the list begins with `Find`
    assert NUMBERS in fixed
    primes = [problem("count_primes", "examples", i)["question"] for i in range(3)]
    assert "Count the prime numbers between the two, inclusive." in selected(primes, len(FIXED))  # adapted


def test_a_structure_has_a_step_of_each_place_in_their_order() -> None:
    found = implemented([DIVISOR, NUMBERS, COLON, "Count the entries of the list."], GCD[:3])
    assert list(found.values()) == [COLON, NUMBERS, DIVISOR]
    assert list(found) == ["step 1", "step 2", "step 3"]


def test_refinement_adds_what_is_missing_and_leaves_what_is_good() -> None:
    mended = refined(keyed([COLON, DIVISOR]), GCD)  # there is no list to find it of
    assert list(mended.values())[1:] == [NUMBERS, DIVISOR]
    assert all(fill(mended, q).answer for q in GCD)
    again = refined(mended, GCD)
    assert [fill(again, q).answer for q in GCD] == [str(math.gcd(*_numbers(q))) for q in GCD]


def _numbers(question: str) -> list[int]:
    return [int(piece) for piece in question.replace(",", " ").replace(".", " ").split() if piece.isdecimal()]


def test_no_answer_is_read() -> None:
    """Examples with other answers lead to the same structure: only their questions are handed on."""
    data = {"task": "gcd", "source": "generated", "modules": 5, "rounds": [[0, 1, 2], [3, 4, 5]]}
    stages = ByRules().stages(data)
    questions = [[problem("gcd", "examples", i)["question"] for i in row] for row in data["rounds"]]  # type: ignore[attr-defined]
    first = implemented(generated(questions[0], 5), questions[0])
    assert stages == [first, refined(first, [*questions[0], *questions[1]])]
    assert len(ByRules().stages({**data, "source": "none"})) == 1


def test_each_step_hands_in_the_structure_of_one_task() -> None:
    settings = {"propose.refinements": 1, "propose.examples": 2}
    made = assemble(RunSpec("auto-evolve", "program:structures:problems=2", "none", seed=1000, settings=settings))
    for _ in range(4):
        made.system.step()
    history = archive_of(made.main_role).history
    books = [structures_of(c.text) for c in history]
    for before, after, c in zip(books, books[1:], history[1:], strict=False):
        assert {name for name in TASKS if before[name] != after[name]} <= {c.notes["task"]}
        assert after[c.notes["task"]] == c.notes["stages"][-1]
        assert len(c.notes["stages"]) == 2
    assert len({c.notes["task"] for c in history[1:]}) == 3
    assert made.system.ledger.of("verifier_calls") == 12 + 3


@pytest.mark.parametrize(
    ("settings", "said"),
    [({"propose.source": "books"}, "source"), ({"propose.examples": 1}, "at least 2"),
     ({"propose.refinements": -1}, "at least 0")],
)  # fmt: skip
def test_settings_that_cannot_be(settings: dict[str, object], said: str) -> None:
    with pytest.raises(UserError, match=said):
        assemble(RunSpec("auto-evolve", "program:structures", "none", settings=settings))


def test_other_tasks_are_refused() -> None:
    with pytest.raises(UserError, match="program:structures"):
        assemble(RunSpec("auto-evolve", "program:landscape", "none"))


def test_structures_in_answers() -> None:
    assert structure_in('So:\n```json\n{"a": "b", "c": ["d"]}\n```') == {"a": "b", "c": '["d"]'}
    assert structure_in('{"a": "b"}') == {"a": "b"}
    assert structure_in("I have none {") is None
    assert structure_in("[1]") is None
    assert structure_in('{"a": ' + "[" * 2000 + "}") is None
    assert structure_in('```json\n{"a": "b"}\n```\n```json\n{"a": ' + "[" * 2000 + "}\n```") == {"a": "b"}


def test_a_model_goes_through_the_stages_and_fills_in(tmp_path: Path) -> None:
    shown: list[tuple[str, str]] = []

    def model(a: Answering) -> None:
        system = "\n".join(m["content"] for m in a.body["messages"] if m["role"] == "system")
        kinds = {
            "modules of your own": "generate",
            "Make them a": "implement",
            "Rewrite the": "refine",
            "Solve the": "solve",
        }
        kind = next(name for mark, name in kinds.items() if mark in system)
        count = sum(k == "refine" for k, _ in shown)
        shown.append((kind, system))
        texts = {
            "generate": "Look at the signs.",
            "implement": '```json\n{"one": "first"}\n```',
            "refine": json.dumps({"one": f"better {count}"}) if count == 0 else "It is good as it is.",
            "solve": "one: done\nAnswer: 42",
        }
        a.say(chat_reply(texts[kind]))

    (tmp_path / "structures").mkdir()
    (tmp_path / "structures/solve.md").write_text("Solve the problem in verse: {{ structure }}")
    settings = {"propose.refinements": "2", "propose.examples": "2", "judge.prompts": str(tmp_path)}
    with Scripted(model) as server:
        spec = RunSpec("auto-evolve", "program:structures:problems=1", f"{server.url}#m", "2 steps", 1, settings)
        result = begin(spec, tmp_path / "runs", logs=("jsonl",), final=False)
    kinds = [kind for kind, _ in shown]
    assert kinds == ["solve"] * 12 + ["generate", "implement", "refine", "refine", "solve"]
    assert "Look at the signs." in shown[13][1]
    assert '"one": "first"' in shown[14][1]
    assert '"one": "better 0"' in shown[15][1]
    assert "in verse" in shown[16][1]
    assert '"one": "better 0"' in shown[16][1]  # what could not be used left what was there
    *_, last = result.view.candidates.values()
    assert [s["one"] for s in last["notes"]["stages"]] == ["first", "better 0", "better 0"]
    assert result.ledger.of("verifier_calls") == 13
