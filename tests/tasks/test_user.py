"""A user's own task: what may be written, and one sentence for everything that can be wrong with it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from evolvent.core.errors import UserError, VerifierError
from evolvent.core.loop import System
from evolvent.core.random import stream
from evolvent.core.records import Problem
from evolvent.tasks.audit import audit
from evolvent.tasks.base import SPLITS, Attempt, Score, score_all
from evolvent.tasks.registry import Mixed, load_task
from evolvent.tasks.rewrite import rewrite
from evolvent.tasks.user import MOST_ERRORS, UserTask

PROBLEMS = 'def problems(): return [{"prompt": f"{i}+1=", "answer": str(i + 1)} for i in range(40)]\n'
REWARD = "def reward(completion, answer): return float(completion == answer)\n"

Make = Callable[..., UserTask]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """A task from the text of its file."""
    made: list[UserTask] = []

    def write(text: str, **options: object) -> UserTask:
        path = tmp_path / "task.py"
        path.write_text(text)
        made.append(UserTask(path, **options))  # type: ignore[arg-type]
        return made[-1]

    yield write
    for task in made:
        task.close()


def outcomes(task: UserTask, pairs: list[tuple[int, str]]) -> list[float | str]:
    """Scores of completions of the i-th training problem; failures as text."""
    problems = task.listed("train")
    scores = task.score_many([Attempt(problems[i], text) for i, text in pairs])
    return [s.outcome if isinstance(s, Score) else str(s) for s in scores]


@pytest.mark.parametrize(
    "reward",
    [
        REWARD,
        "def reward(answer, completion): return completion == answer\n",
        "def reward(completion, **row): return float(completion == row['answer'])\n",
        "def reward(completion, prompt, answer, *, more=1): return float(prompt[-1] == '=' and completion == answer)\n",
        "def reward(completion, /, answer): return float(completion == answer)\n",
        "def reward(completions, answers): return [float(c == a) for c, a in zip(completions, answers)]\n",
        "def reward(completions, prompts, **columns):\n"
        "    return [float(c == a) for c, a in zip(completions, columns['answer'])]\n",
        "async def reward(completion, answer): return float(completion == answer)\n",
        "async def reward(completions, answer): return [float(c == a) for c, a in zip(completions, answer)]\n",
        "import numpy\ndef reward(completion, answer): return numpy.float32(completion == answer)\n",
        "import numpy\ndef reward(completions, answer): return numpy.array(completions) == numpy.array(answer)\n",
        "import functools\ndef f(base, completion, answer): return float(completion == answer)\n"
        "reward = functools.partial(f, 0)\n",
        "class Judge:\n    def __call__(self, completion, answer): return {'outcome': completion == answer}\n"
        "reward = Judge()\n",
    ],
)
def test_the_ways_to_write_a_reward(make: Make, reward: str) -> None:
    task = make(PROBLEMS + reward)
    answer = task.listed("train")[0].data["answer"]
    assert outcomes(task, [(0, answer), (0, "x"), (1, answer), (0, "")]) == [1, 0, 0, 0]
    problem = task.listed("train")[0]
    assert task.gold(problem) == [(answer, True, 1.0)]


def test_named_rewards_beside_the_outcome(make: Make) -> None:
    task = make(
        PROBLEMS + "def reward(completion, answer):\n"
        "    return {'outcome': completion == answer, 'short': -0.1 * len(completion)}\n"
    )
    score = task.score(task.listed("test")[0], "xyz")
    assert score.outcome == 0
    assert score.shaping == {"short": pytest.approx(-0.3)}
    assert score.answer == "xyz"


@pytest.mark.parametrize(
    "problems",
    [
        "def problems():\n    for i in range(20): yield f'say {i}'\n",
        "def problems():\n    return (dict(prompt=f'say {i}') for i in range(20))\n",
        "async def problems(): return [f'say {i}' for i in range(20)]\n",
        "import numpy\ndef problems(): return [{'prompt': f'say {i}', 'n': numpy.int64(i), 'v': numpy.ones(2), "
        "'t': (1, 2)} for i in range(20)]\n",
    ],
)
def test_the_ways_to_list_problems(make: Make, problems: str) -> None:
    task = make(problems + "def reward(completion): return 0\n")
    assert sum(len(task.listed(s)) for s in SPLITS) == 20
    assert task.gold(task.listed("train")[0]) is None
    data = task.listed("train")[0].data
    assert json.loads(json.dumps(data)) == data


def test_problems_by_split_and_constants(make: Make) -> None:
    task = make(
        "NAME = 'mine'\nMAX_TOKENS = 9\nTIMEOUT = 3\n"
        "def problems(split):\n"
        "    at = {'train': 0, 'gate': 10, 'test': 20}[split]\n"
        "    return [{'prompt': f'{i}=', 'answer': '1'} for i in range(at, at + 5)]\n" + REWARD
    )
    assert (task.name, task.max_tokens, task.file.worker.timeout) == ("mine", 9, 3)
    assert [p.prompt[0].content for p in task.listed("gate")] == [f"{i}=" for i in range(10, 15)]


def test_the_same_file_gives_the_same_splits_although_its_author_forgot_the_seed(make: Make) -> None:
    text = (
        "import random\ndef problems():\n"
        "    return [{'prompt': w, 'answer': w} for w in {str(random.random()) for _ in range(30)}]\n" + REWARD
    )
    assert make(text).listed("train") == make(text).listed("train")


def test_files_beside_the_task_can_be_imported_but_do_not_hide_the_standard_library(make: Make, tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("def right(c, a): return float(c == a)\n")
    (tmp_path / "json.py").write_text("raise RuntimeError('not this one')\n")
    task = make(
        PROBLEMS + "import json, helper\ndef reward(completion, answer): return helper.right(completion, answer)\n"
    )
    assert outcomes(task, [(0, "x")]) == [0]


def test_gold_of_ones_own(make: Make) -> None:
    task = make(
        PROBLEMS
        + "def reward(completion, answer): return completion == f'<{answer}>'\ndef gold(answer): return f'<{answer}>'\n"
    )
    problem = task.listed("train")[0]
    (piece,) = task.gold(problem) or []
    assert task.score(problem, piece.text).outcome == 1


def test_a_column_answer_is_taken_for_a_solution_only_if_the_reward_agrees(make: Make) -> None:
    task = make(PROBLEMS + "def reward(completion, answer): return completion == f'<{answer}>'\n")
    assert task.gold(task.listed("train")[0]) is None


BAD_FILES = [
    (PROBLEMS + "def reward(completion: return 1\n", "does not import: line 2: SyntaxError"),
    (PROBLEMS + REWARD + "x = nothing + 1\n", "does not import: line 3: NameError: name 'nothing'.*`x = nothing . 1`"),
    ("import no_such_package\n", "line 1: ModuleNotFoundError.*install what it needs"),
    (PROBLEMS + "import sys\nsys.exit(3)\n", r"line 3: it calls sys.exit\(\)"),
    (
        "print('bye')\nimport os\nos._exit(3)\n",
        "does not import: the process ended with exit code 3, and had printed 'bye'",
    ),
    ("while True: pass\n", "does not import: no answer after 1 s"),
    ("", "has no function `reward`; add one"),
    (PROBLEMS + "def rewrd(completion): return 1\n", "did you mean rewrd"),
    (PROBLEMS + "reward = 5\n", "has no function `reward`"),
    (REWARD, "has no function `problems`"),
    (REWARD + "def problems(): return []\n", "has no problems"),
    (REWARD + "def problems(): return None\n", "problems.*returned None; return a list of rows"),
    (REWARD + "def problems(): return 5\n", "it returned an int"),
    (REWARD + "def problems(): return {'prompt': 'x'}\n", "it returned a dict"),
    (REWARD + "def problems(): return [(1, 2)] * 20\n", "row 0 is a tuple; a row is a dict"),
    (REWARD + "def problems(): return [{'prompt': 'x', 'answer': {1}}]\n", "row 0, column `answer`, is a set"),
    (REWARD + "def problems(): return [{'prompt': 'x', 'answer': {1: 2}}]\n", "has the key 1; keys are strings"),
    (REWARD + "def problems():\n    yield 'x'\n    raise ValueError('no data')\n", "line 4: ValueError: no data"),
    (REWARD + "import time\ndef problems(): time.sleep(60)\n", "fails in problems.*no answer after 1 s"),
    (REWARD + "def problems(): return [f'say {i % 15}' for i in range(20)]\n", "row 0 and row 15 are the same problem"),
    (REWARD + "def problems(split): return ['a', 'b']\n", r"row 0 of problems\(\"train\"\).*a leak"),
    ("MAX_TOKENS = 'x'\n" + PROBLEMS + REWARD, "MAX_TOKENS is 'x'; it should be a whole number above 0"),
    ("MAX_TOKENS = 0\n" + PROBLEMS + REWARD, "MAX_TOKENS is 0"),
    ("TIMEOUT = -1\n" + PROBLEMS + REWARD, "TIMEOUT is -1; it should be a number above 0"),
    (
        PROBLEMS + "def reward(completion, answer): return float('nan') if completion != answer else 0.0\n",
        r"reward\(\) returned nan for 48 of 64 completions \(first: problem \w{4}, completion \"\"\); return",
    ),
    (PROBLEMS + "def reward(completion, answer): return float('inf')\n", "returned inf for 64 of 64"),
    (
        PROBLEMS + "def reward(completion, answer):\n    if completion == answer: return 1\n",
        "returned None for 48 of 64",
    ),
    (PROBLEMS + "def reward(completion, answer): return 'yes'\n", "returned the string 'yes' for 64 of 64"),
    (PROBLEMS + "def reward(completion, answer): return 2\n", "returned 2, which is not between 0 and 1"),
    (PROBLEMS + "def reward(completion, answer): return [1.0]\n", "returned a list for 64 of 64"),
    (
        PROBLEMS + "def reward(completion, answer): return {'format': 1}\n",
        r"a dict without `outcome` \(it has format\)",
    ),
    (
        PROBLEMS + "def reward(completion, answer): return {'outcome': 1, 'format': None}\n",
        "returned None for `format` for 64",
    ),
    (
        PROBLEMS + "def reward(completions): return [1.0] * 3\n",
        "returned 3 rewards for a batch of 64; return one number",
    ),
    (PROBLEMS + "def reward(completions): return None\n", "returned None instead of a list"),
    (PROBLEMS + "def reward(completions): return ['a'] * len(completions)\n", "returned the string 'a' for 64 of 64"),
    (PROBLEMS + "def reward(completion, anwser): return 1\n", "asks for `anwser`.*did you mean `answer`"),
    (
        PROBLEMS + "def reward(completion, answer):\n    return float(int(completion + '.') == int(answer))\n",
        r"raised ValueError: invalid literal.*\(line 3: `return float.*for 64 of 64.*wrong or odd answer is worth 0",
    ),
    (PROBLEMS + "import sys\ndef reward(completion, answer): sys.exit(1)\n", "raised SystemExit: 1 .line 3"),
    (
        PROBLEMS + "import os\ndef reward(completion, answer): os._exit(1)\n",
        r"fails in reward\(\): the process ended with exit code 1",
    ),
    (
        "TIMEOUT = 0.3\nimport re\n"
        + PROBLEMS
        + "def reward(completion, answer): return bool(re.match(r'(a+)+$', 'a' * 60 + 'b'))\n",
        r"fails in reward\(\): no answer after 0.3 s",
    ),
]


@pytest.mark.parametrize(("text", "said"), BAD_FILES, ids=range(len(BAD_FILES)))
def test_bad_files_end_in_one_sentence(make: Make, text: str, said: str) -> None:
    with pytest.raises(UserError, match=said) as caught:
        make(text, import_time=1.0)
    assert "\n" not in str(caught.value)
    assert "task.py" in str(caught.value)
    assert "Traceback" not in str(caught.value)


SOME_FAIL = {
    "raises": "    if completion == '?': raise RuntimeError('the judge is down')\n",
    "a NaN": "    if completion == '?': return float('nan')\n",
    "an exit": "    if completion == '?': sys.exit(1)\n",
    "half of them": "    int(completion)\n",
    "a crash": "    if completion == '?': os._exit(7)\n",
    "a time-out": "    if completion == '?': time.sleep(60)\n",
}


@pytest.mark.parametrize("style", ["def reward(completion, answer): return one(completion, answer)\n",
    "def reward(completions, answers): return [one(c, a) for c, a in zip(completions, answers)]\n"])  # fmt: skip
@pytest.mark.parametrize("failing", SOME_FAIL.values(), ids=SOME_FAIL)
def test_a_reward_that_fails_as_often_as_a_run_puts_up_with_is_for_the_audit(
    make: Make, failing: str, style: str
) -> None:
    head = "import os, sys, time\nTIMEOUT = 0.3\ndef one(completion, answer):\n"
    task = make(f"{PROBLEMS}{head}{failing}    return float(completion == answer)\n{style}")
    problem = task.listed("train")[0]
    answer = problem.data["answer"]
    assert task.gold(problem) == [(answer, True, 1.0)]  # the tries that did not fail have been looked at
    assert [x for x in outcomes(task, [(0, answer), (0, "?")]) if not isinstance(x, str)] == [1]
    checks = {check.name: check for check in audit(task, problems=8).checks}
    asked = "int(" in failing  # the audit's own garbage has no `?`
    assert checks["errors"].severity == ("fail" if asked else "ok")
    assert ("every try failed, see `errors`" in checks["garbage"].finding) == asked


def test_answers_that_the_reward_fails_on_are_not_taken_for_right(make: Make) -> None:
    task = make(PROBLEMS + "def reward(completion, answer): return 1 / (completion != '7')\n")
    assert all(task.gold(problem) is None for problem in task.listed("train"))


def test_what_the_run_puts_up_with_is_what_the_trial_puts_up_with() -> None:
    assert System.max_errors == MOST_ERRORS


def test_a_column_that_some_rows_lack_is_asked_for_in_vain(make: Make) -> None:
    rows = "[{'prompt': f'{i}=', 'answer': str(i), **({'more': 1} if i else {})} for i in range(12)]"
    with pytest.raises(UserError, match="asks for `more`, which no column is called.*rename the parameter"):
        make(f"def problems(): return {rows}\ndef reward(completion, answer, more): return 1\n")


def test_a_reward_that_always_hangs_is_not_tried_to_the_end(make: Make) -> None:
    begun = time.perf_counter()
    with pytest.raises(UserError, match=r"fails in reward\(\): no answer after 1 s"):
        make("TIMEOUT = 1\nimport time\n" + PROBLEMS + "def reward(completion): time.sleep(60)\n")
    assert time.perf_counter() - begun < 10  # 16 tries, one by one, would be 16 s at least


CRASHES = """
TIMEOUT = 0.5
import os, re, sys
def one(completion, answer):
    if completion == "hang": re.match(r"(a+)+$", "a" * 60 + "b")
    if completion == "die": os._exit(7)
    if completion == "leave": sys.exit(1)
    if completion == "nan": return float("nan")
    if completion == "raise": raise RuntimeError("the judge is down")
    print("judged", completion)
    return float(completion == answer)
"""
STYLES = {
    "single": "def reward(completion, answer): return one(completion, answer)\n",
    "batch": "def reward(completions, answers): return [one(c, a) for c, a in zip(completions, answers)]\n",
    "async": "async def reward(completion, answer): return one(completion, answer)\n",
}


@pytest.mark.parametrize("style", STYLES)
def test_what_goes_wrong_with_one_completion_leaves_the_others_their_scores(make: Make, style: str) -> None:
    task = make(PROBLEMS + CRASHES + STYLES[style])
    right = task.listed("train")[0].data["answer"]
    texts = [right, "no", "hang", right, "die", "nan", right, "raise", "leave", "no", right]
    found = outcomes(task, [(0, text) for text in texts])
    assert [x for x in found if not isinstance(x, str)] == [1, 0, 1, 1, 0, 1]
    said = {text: str(x) for text, x in zip(texts, found, strict=True) if isinstance(x, str)}
    assert "no answer after 0.5 s" in said["hang"]
    assert "exit code 7" in said["die"]
    assert "returned nan" in said["nan"]
    assert "raised RuntimeError: the judge is down" in said["raise"]
    assert "SystemExit" in said["leave"]
    assert all('completion "' + text + '"' in message for text, message in said.items())


def test_a_failure_is_raised_where_one_completion_is_scored(make: Make) -> None:
    task = make(PROBLEMS + CRASHES + STYLES["single"])
    with pytest.raises(VerifierError, match="returned nan"):
        task.score(task.listed("train")[0], "nan")


def test_a_reward_that_always_crashes_does_not_hold_the_run_up_for_ever(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evolvent.tasks.user.MOST_FAILURES", 3)
    task = make(PROBLEMS + CRASHES + STYLES["single"])
    found = [str(x) for x in outcomes(task, [(0, "die")] * 50)]
    assert sum("exit code 7" in x for x in found) == 3
    assert sum("was not tried" in x for x in found) == 47


def test_a_file_that_changes_under_way_is_not_used_half_old_half_new(make: Make, tmp_path: Path) -> None:
    task = make(PROBLEMS + CRASHES + STYLES["single"])
    (tmp_path / "task.py").write_text(PROBLEMS + REWARD)
    assert outcomes(task, [(0, "no")]) == [0]  # the process has the old one loaded
    found = outcomes(task, [(0, "die"), (0, "no")])
    assert all("was changed while it was in use" in str(x) for x in found[1:])


def test_a_batch_of_256_takes_one_round_trip_and_little_time(make: Make) -> None:
    task = make(PROBLEMS + REWARD)
    problems = task.listed("train")[:16]
    attempts = [Attempt(p, "12") for p in problems for _ in range(16)]
    best = float("inf")
    for _ in range(30):
        begun = time.perf_counter()
        task.score_many(attempts)
        best = min(best, time.perf_counter() - begun)
    assert best < 0.01  # about 1 ms on an idle machine; the fastest of 30 leaves room for a busy one
    assert task.file.worker.starts == 1


def test_rows_in_a_file_and_a_function_in_another(tmp_path: Path) -> None:
    (tmp_path / "data.jsonl").write_text(
        "".join(json.dumps({"prompt": f"{i}+1=", "target": i + 1}) + "\n" for i in range(20))
    )
    (tmp_path / "judge.py").write_text("def check(completion, target): return completion == str(target)\n")
    task = load_task(f"{tmp_path}/data.jsonl:{tmp_path}/judge.py:check")
    assert isinstance(task, UserTask)
    problem = task.listed("train")[0]
    assert task.name == "data"
    assert task.score(problem, str(problem.data["target"])).outcome == 1
    with pytest.raises(UserError, match=r"judge\.py has no function `reward`"):
        load_task(f"{tmp_path}/data.jsonl:{tmp_path}/judge.py")
    task.close()


def test_a_sum_of_tasks_asks_each_once(make: Make) -> None:
    own = make(PROBLEMS + REWARD)
    mixed = Mixed([own, load_task("arith:2x1")])
    first, second = own.listed("train")[0], load_task("arith:2x1").draw("train", stream(0))
    attempts = [Attempt(second, "x"), Attempt(first, first.data["answer"]), Attempt(second, str(second.data["answer"]))]
    scores = score_all(mixed, attempts)
    assert [s.outcome for s in scores if isinstance(s, Score)] == [0, 1, 1]


TURNS = """
MAX_TURNS = 4
TURN_END = "."
def problems(): return [{"prompt": "go", "n": i} for i in range(20)]
class Steps:
    def __init__(self, n): self.n, self.state = n, {"left": n % 3}
    def reset(self): return f" {self.n}: "
    def respond(self, turn):
        if turn == "crash.": import os; os._exit(1)
        if turn == "raise.": raise RuntimeError("broken")
        if turn == "odd.": return 5
        self.state["left"] -= 1
        return None if self.state["left"] < 0 else "more "
def environment(n): return Steps(n)
def reward(state): return float(bool(state) and state["left"] < 0)
def gold(n): return ["step."] * (n % 3 + 1)
"""


def test_several_turns(make: Make) -> None:
    task = make(TURNS)
    assert (task.max_turns, task.turn_end) == (4, ".")
    problem = next(p for p in task.listed("train") if p.data["n"] % 3 == 2)
    assert problem.prompt[0].content == f"go {problem.data['n']}: "
    episode = task.episode(problem)
    replies = [episode.respond("step.") for _ in range(3)]
    assert [(r.text, r.done) for r in replies] == [("more ", False), ("more ", False), ("", True)]
    attempts = [Attempt(problem, "step.", r.note) for r in replies] + [Attempt(problem, "")]
    assert [s.outcome for s in task.score_many(attempts) if isinstance(s, Score)] == [0, 0, 1, 0]
    demo = task.gold(problem)
    assert demo is not None
    assert [(p.text, p.policy) for p in demo] == [
        ("step.", True), ("more ", False), ("step.", True), ("more ", False), ("step.", True)
    ]  # fmt: skip


def test_an_environment_that_fails_is_an_error_of_its_episode(make: Make) -> None:
    task = make(TURNS)
    problem = task.listed("train")[0]
    with pytest.raises(VerifierError, match="line 10: RuntimeError: broken"):
        task.episode(problem).respond("raise.")
    with pytest.raises(VerifierError, match="returned an int; return the text that answers, or None"):
        task.episode(problem).respond("odd.")
    lost = task.episode(problem)
    with pytest.raises(VerifierError, match="exit code 1"):
        task.episode(problem).respond("crash.")
    with pytest.raises(VerifierError, match="lost when its process was restarted"):
        lost.respond("step.")
    assert task.episode(problem).respond("step.").note != {}


def test_most_environments_have_to_bear_an_empty_turn(make: Make) -> None:
    bears = 'if not turn and self.n {}: raise RuntimeError("nothing said")\n        self.state["left"]'
    task = make(TURNS.replace('self.state["left"]', bears.format("% 4 == 0"), 1))
    assert task.listed("train")
    with pytest.raises(UserError, match="nothing said.*an empty turn is no reason to fail"):
        make(TURNS.replace('self.state["left"]', bears.format("% 4"), 1))


def test_what_is_rewritten_has_an_environment(make: Make) -> None:
    child = rewritten(make(TURNS + 'def rewrite(n): return {"prompt": "go", "n": n + 100}\n'))
    assert child is not None
    assert child.prompt[0].content == f"go {child.data['n']}: "


def test_environments_nobody_holds_are_closed(make: Make) -> None:
    task = make(
        TURNS.replace(
            "    def reset", "    def close(self): Steps.closed.append(self.n)\n    closed = []\n    def reset"
        ).replace('"left": n % 3}', '"left": n % 3, "closed": len(Steps.closed)}')
    )
    problem = task.listed("train")[0]
    for _ in range(3):
        task.episode(problem)
    note = task.episode(problem).respond("step.").note
    assert note is not None
    assert note["environment"]["state"]["closed"] >= 3


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("return Steps(n)", "return 5"), "environment.*an int, which has no respond"),
        (('return f" {self.n}: "', "return 5"), r"reset\(\) returned an int"),
        (("def environment(n)", "def environment(m)"), "asks for `m`"),
        (("self.n, self.state = n,", "self.n, self.state = 1 / 0,"), "fails in environment.*line 6: ZeroDivisionError"),
    ],
)
def test_bad_environments(make: Make, change: tuple[str, str], said: str) -> None:
    with pytest.raises(UserError, match=said):
        make(TURNS.replace(*change))


def test_a_reset_that_depends_on_more_than_the_row(make: Make) -> None:
    with pytest.raises(UserError, match=r"gave .* now and another text before"):
        make(TURNS.replace('f" {self.n}: "', "str(__import__('time').time_ns())"))


def test_the_fingerprint_follows_the_problems_and_the_source(make: Make) -> None:
    first = make(PROBLEMS + REWARD).fingerprint
    assert make(PROBLEMS + REWARD).fingerprint == first
    assert make(PROBLEMS + REWARD + "# a note\n").fingerprint != first
    assert make(PROBLEMS.replace("40", "41") + REWARD).fingerprint != first


# --- problems that are rewritten -------------------------------------------------------------------------------------

REWRITE = """
def rewrite(prompt, answer, seed, deeper):
    number = int(answer) - 1 + (1000 if deeper else 100)
    return {"prompt": f"{number}+1=", "answer": str(number + 1)}
"""


def rewritten(task: UserTask, deeper: bool = False) -> Problem | None:
    """What becomes of the first problem for training."""
    return rewrite(task.listed("train")[0], task, np.random.default_rng(0), depth=float(deeper))


def test_a_task_says_what_becomes_of_its_problems(make: Make) -> None:
    task = make(PROBLEMS + REWARD + REWRITE)
    parent = task.listed("train")[0]
    for deeper, more in ((False, 100), (True, 1000)):
        child = rewritten(task, deeper)
        assert child is not None
        assert child.data["answer"] == str(int(parent.data["answer"]) + more)
        assert child.origin == parent.key != child.key
        assert child.prompt[0].content == child.data["prompt"]
        assert task.score(child, child.data["answer"]).outcome == 1


def test_what_is_in_the_file_already_is_no_child(make: Make) -> None:
    for split in SPLITS:
        known = make(PROBLEMS + REWARD).listed(split)[1].data
        again = {**known, "note": "with the prompt of a row"}
        assert rewritten(make(f"{PROBLEMS}{REWARD}def rewrite(): return {known!r}\n")) is None
        assert rewritten(make(f"{PROBLEMS}{REWARD}def rewrite(): return {again!r}\n")) is None
    assert rewritten(make(PROBLEMS + REWARD + "def rewrite(**row): return None\n")) is None


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("1 / 0", "fails in rewrite.*line 3.*ZeroDivisionError"),
        ("return 3", "an int; return a row, or None"),
        ('return {"answer": "3"}', "has no `prompt`"),
        ('return {"prompt": "3=", "answer": {3}}', "is a set"),
        ("import time; time.sleep(60)", "fails in rewrite.*0.5 s"),
    ],
)
def test_a_rewriting_that_fails_is_a_sentence(make: Make, body: str, what: str) -> None:
    task = make(f"{PROBLEMS}{REWARD}def rewrite(): {body}\nTIMEOUT = 0.5\n")
    with pytest.raises(VerifierError, match=what):
        rewritten(task)


def test_children_are_of_the_categories_that_there_are(make: Make) -> None:
    rows = PROBLEMS.replace('"answer"', '"category": "easy" if i % 2 else "hard", "answer"')
    for given, there in (("", True), ('"category": "hard", ', True), ('"category": "odd", ', False)):
        task = make(f'{rows}{REWARD}def rewrite(): return {{{given}"prompt": "x", "answer": "y"}}\n')
        if there:
            child, parent = rewritten(task), task.listed("train")[0]
            assert child is not None
            assert child.category == ("hard" if given else parent.category)
        else:
            with pytest.raises(VerifierError, match="category odd, which is none of easy, hard|hard, easy"):
                rewritten(task)


def test_a_list_without_a_rewriting_is_refused(make: Make) -> None:
    with pytest.raises(UserError, match="task is a list of problems.*write a function `rewrite`"):
        rewritten(make(PROBLEMS + REWARD))
