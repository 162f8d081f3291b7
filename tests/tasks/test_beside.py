"""Evaluators written for OpenEvolve, with what lies beside them, in the real sandbox."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import numpy as np
import pytest

from evolvent.core.errors import UserError
from evolvent.guard.cage import installed
from evolvent.guard.sandbox import Sandbox
from evolvent.run.check import fingerprint
from evolvent.run.session import begin
from evolvent.run.spec import RunSpec
from evolvent.tasks.beside import MANY, MOST, beside, left_behind
from evolvent.tasks.evaluation_result import EvaluationResult
from evolvent.tasks.program import ProgramTask, load

EVALUATOR = '''"""Evaluator for a curve that should pass through given points, with a cascade."""

import importlib.util
import json
import time
import traceback
from pathlib import Path

import numpy as np
from openevolve.evaluation_result import EvaluationResult

from scoring import combined, errors_of
from tools.timing import took

POINTS = json.loads(Path(__file__).with_name("points.json").read_text())


def load_program(program_path):
    spec = importlib.util.spec_from_file_location("program", program_path)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    if not hasattr(program, "curve"):
        raise AttributeError("Missing curve function")
    return program


def _run(program_path, points):
    start = time.time()
    try:
        errors = errors_of(load_program(program_path).curve, points)
    except Exception as e:
        return EvaluationResult(
            metrics={"combined_score": 0.0, "error": float(1)},
            artifacts={"stderr": str(e), "traceback": traceback.format_exc(), "raw": b"\\x00", "stage": "run"},
        )
    score = np.float64(combined(errors))
    return EvaluationResult(
        metrics={"combined_score": score, "worst": max(errors), "eval_time": took(start)},
        artifacts={"summary": f"{len(points)} points", "plot": b"\\x89PNG"},
    )


def evaluate_stage1(program_path):
    return _run(program_path, POINTS[:2])


def evaluate_stage2(program_path):
    return _run(program_path, POINTS)


def evaluate(program_path):
    """All points."""
    return evaluate_stage2(program_path)
'''
SCORING = """
import csv

from weights import WEIGHT

with open("extra.csv") as file:
    ROWS = list(csv.reader(file))


def errors_of(curve, points):
    return [abs(curve(x) - y) for x, y in points]


def combined(errors):
    return WEIGHT / (1.0 + sum(errors)) + 0.0 * len(ROWS)
"""
PROGRAM = """
# EVOLVE-BLOCK-START
def curve(x):
    return 1.0 * x + 0.5
# EVOLVE-BLOCK-END
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {
        "eval.v2.py": EVALUATOR,
        "scoring.py": SCORING,
        "weights.py": "WEIGHT = 1.0\n",
        "tools/__init__.py": "",
        "tools/timing.py": "import time\n\n\ndef took(start):\n    return time.time() - start\n",
        "points.json": "[[0, 0], [1, 1], [2, 2]]",
        "extra.csv": "1,2\n",
        "initial_program.py": PROGRAM,
        "secret.txt": "nobody names this",
        "runs/best.py": "x = 1",
        ".venv/lib/big.py": "x = 1",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def the_task(folder: Path, name: str = "eval.v2.py") -> ProgramTask:
    return load(f"{folder / name}:{folder / 'initial_program.py'}")


def test_an_evaluator_of_openevolve_works_unchanged(folder: Path, sandboxed: str) -> None:
    task = the_task(folder)
    broken = PROGRAM.replace("def curve", "def other")
    with task.sandbox:
        found, wrong, first = task.evaluate([PROGRAM, broken, PROGRAM], [(), (), ("stage1",)])
    assert (found.status, found.value) == ("ok", pytest.approx(1 / 2.5))
    assert found.metrics["worst"] == 0.5
    assert found.feedback == "summary: 3 points"
    assert wrong.value == 0.0
    assert "stderr: Missing curve function" in wrong.feedback
    assert "raw" not in wrong.feedback
    assert first.value == pytest.approx(1 / 2.0)


def test_its_cascade_stops_early(folder: Path, tmp_path: Path, sandboxed: str) -> None:
    settings = {"judge.promote": "above", "judge.promote.thresholds": "0.9"}
    task = f"program:{folder / 'eval.v2.py'}:{folder / 'initial_program.py'}"
    spec = RunSpec("hill-climbing", task, "none", "3 steps", settings=settings)
    found = begin(spec, tmp_path / "store", logs=("jsonl",)).view.candidates.values()
    assert any(not c["evaluation"]["complete"] for c in found)
    assert all(c["evaluation"]["status"] != "raised" or "curve" in c["evaluation"]["feedback"] for c in found)


def test_what_is_named_goes_along_and_nothing_else(folder: Path) -> None:
    (folder / "openevolve").mkdir()
    (folder / "openevolve" / "settings.yaml").write_text("")  # no module of that name
    named = "open('openevolve/settings.yaml')"
    found = beside(folder, [EVALUATOR, PROGRAM, named], folder / "initial_program.py")
    assert set(found) == {"openevolve/settings.yaml",
        "scoring.py", "weights.py", "tools/__init__.py", "tools/timing.py", "points.json", "extra.csv",
        "openevolve/__init__.py", "openevolve/evaluation_result.py",
    }  # fmt: skip


def test_the_program_goes_along_once(folder: Path) -> None:
    code = "import initial_program, json\nNAMES = 'initial_program.py', '../x.json', '/etc/a.txt', '\\0.txt'\n"
    (folder / "json.py").write_text("")
    assert beside(folder, [code], folder / "initial_program.py") == {}


@pytest.mark.parametrize(
    "line",
    [
        'open("data/deep/x.jsonl")',
        'Path("data/deep/x.jsonl").read_text()',
        'Path(__file__).parent / "data" / "deep" / "x.jsonl"',
        'Path(__file__).resolve().parent.joinpath("data", "deep", "x.jsonl")',
        'Path(__file__).with_name("data") / "deep/x.jsonl"',
        'os.path.join(HERE, "data", "deep", "x.jsonl")',
        'os.path.join(os.path.dirname(os.path.abspath(__file__)), "data/deep", "x.jsonl")',
        'str(Path(os.path.join(HERE, "data")) / "deep" / "x.jsonl")',
        'HERE + "/data/deep/x.jsonl"',
        'f"{HERE}/data/deep/x.jsonl"',
        'DATA = HERE / "data"\nDEEP = DATA / "deep"\nopen(DEEP / "x.jsonl")',
        'DATA = "data"\nopen(f"{DATA}/deep/x.jsonl")',
    ],
)
def test_a_file_in_a_folder_below_is_found_by_its_path(folder: Path, line: str) -> None:
    for name in ("data/deep/x.jsonl", "data/deep/y.jsonl"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("{}")
    assert beside(folder, [line], folder / "initial_program.py") == {"data/deep/x.jsonl": "{}"}


@pytest.mark.parametrize(
    "line",
    [
        'HERE / ".." / "runs" / "best.py"',
        'HERE / "secret" / name',
        'f"{number}.txt"',
        'HERE / ".git" / "config.txt"',
        'open(".env.local")',
        'open("runs/best.py")',
        'open("/etc/hosts.txt")',
        "x = x + x\ny = " + "+".join(["x"] * 500),
    ],
)
def test_what_is_not_named_or_hidden_or_a_program_stays(folder: Path, line: str) -> None:
    (folder / ".git").mkdir()
    for name in (".git/config.txt", ".env.local", ".txt", "secret"):
        (folder / name).write_text("secret")
    assert beside(folder, [line], folder / "initial_program.py") == {}


@pytest.mark.parametrize("suffix", [".tsv", ".md", ".yaml", ".yml", ".toml", ".dat", ".cpp"])
def test_text_goes_along_whatever_its_suffix(folder: Path, suffix: str) -> None:
    (folder / f"x{suffix}").write_bytes(b"a\tb\n")
    assert beside(folder, [f"open('x{suffix}')"], folder / "initial_program.py") == {f"x{suffix}": "a\tb\n"}


def test_what_may_be_written_by_the_evaluator_stays_without_a_word(folder: Path) -> None:
    (folder / "all.log").write_text("x" * (MOST + 1))
    (folder / "most.log").write_text("x" * (MOST - 10))
    (folder / "big.csv").write_text("x" * (MOST // 2))
    names = "all.log", "most.log", "big.csv"
    assert set(beside(folder, [f"NAMES = {names}"], folder / "initial_program.py")) == {"big.csv"}


def test_what_is_no_text_goes_along_as_bytes(folder: Path) -> None:
    contents = {"x.npy": b"\x93NUMPY", "zero.bin": b"\0\0\xff", "latin.csv": b"M\xfcller"}
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    assert beside(folder, [f"NAMES = {list(contents)}"], folder / "initial_program.py") == contents


def test_arrays_and_pickles_are_read_in_the_sandbox(folder: Path, sandboxed: str) -> None:
    np.save(folder / "X.npy", np.arange(1000.0))
    np.savez(folder / "Y.npz", y=np.array([0.5]))
    (folder / "z.pkl").write_bytes(pickle.dumps({"z": "ü", "b": b"\xff"}))
    (folder / "e.py").write_text("""
import os, pickle
import numpy as np
HERE = os.path.dirname(os.path.abspath(__file__))
def evaluate(path):
    with open(os.path.join(HERE, "z.pkl"), "rb") as file:
        assert pickle.load(file) == {"z": "ü", "b": b"\\xff"}
    return float(np.load(os.path.join(HERE, "X.npy"))[-1] + np.load(os.path.join(HERE, "Y.npz"))["y"][0])
""")
    task = the_task(folder, "e.py")
    with task.sandbox:
        [found] = task.evaluate([PROGRAM])
    assert (found.value, found.feedback) == (999.5, "")
    assert len(str(fingerprint(task))) == len(str(fingerprint(the_task(folder))))


CASES = {"cases/a.json", "cases/b.bin", "cases/deep/c.json", "cases/deep/right.py"}


@pytest.fixture
def cases(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with one of cases in it, and what of it stays behind."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "x.json").write_text("0")
    aside = {"cases/.hidden.json", "cases/.git/x.json", "cases/__pycache__/x.json", "cases/deep/x.pyc"}
    for name in CASES | aside:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"\xff" if name.endswith(".bin") else b"1")
    (folder / "cases" / "out.json").symlink_to(elsewhere / "x.json")
    (folder / "cases" / "out").symlink_to(elsewhere)
    (folder / "linked").symlink_to(elsewhere)
    return folder


@pytest.mark.parametrize(
    "line",
    [
        '(Path(__file__).parent / "cases").glob("*.json")',
        '(Path(__file__).resolve().parent / "cases").rglob("*")',
        'glob.glob(os.path.join(dirname, "cases", "*.json"))',
        'glob.glob(f"{HERE}/cases/*.json")',
        'glob.glob("cases/**/*.json", recursive=True)',
        'D = os.path.join(os.path.dirname(__file__), "cases")\nfor name in os.listdir(D): pass',
        'D = "cases"\nos.walk(D)',
        'os.scandir("cases")',
        'for path in (HERE / "cases").iterdir(): pass',
        'CASES = HERE / "cases"\nload(CASES)',
        'class A:\n    cases: Path = HERE / "cases"',
        'self.cases = HERE / "cases"',
        'open(os.path.join(HERE, "cases", name))',
        'open(HERE / "cases" / f"{n}.json")',
        'open(f"{HERE}/cases/a_{n}.json")',
        'open("cases/" + name)',
        'open("cases/%d.json" % n)',
        'open("cases/{}.json".format(n))',
        'def load(folder):\n    return os.listdir(folder)\nload("cases")',
        'def load(folder="cases"):\n    return os.listdir(folder)',
        'CASES = HERE / "cases"\nos.makedirs(CASES, exist_ok=True)\nos.listdir(CASES)',
    ],
)
def test_a_named_folder_goes_along_whole(cases: Path, line: str) -> None:
    told: list[str] = []
    found = beside(cases, [line], cases / "initial_program.py", told.append)
    assert set(found) == CASES
    assert found["cases/b.bin"] == b"\xff"
    [only] = told
    assert re.search(r"cases/out\S* and 1 more does not go into the sandbox: it is a link; put a copy", only)


@pytest.mark.parametrize(
    "line",
    [
        '"""The cases/ of cases, in cases."""',
        'result["cases"] = {"cases": 1}.get("cases")',
        'OUT = HERE / "cases"\nOUT.mkdir(exist_ok=True)\n(OUT / f"{n}.json").write_text("")',
        'if os.path.exists(os.path.join(HERE, "cases")): pass',
        'HERE / ".." / "cases" / name',
        'HERE / "cases" / ".git" / name',
        "Path(__file__).parent / name",
        "sys.path.insert(0, str(Path(__file__).parent))",
        'os.path.join(os.path.dirname(__file__), "nowhere", name)',
        'os.listdir("/cases")',
        'ast.walk(tree); folder.glob("*.json")',
    ],
)
def test_a_word_or_the_own_folder_names_no_folder(cases: Path, line: str) -> None:
    told: list[str] = []
    assert beside(cases, [line], cases / "initial_program.py", told.append) == {}
    assert told == []


@pytest.mark.parametrize(
    "line",
    [
        'Path(__file__).parent.glob("*.json")',
        'HERE = Path(__file__).resolve().parent\nsorted(HERE.glob("*.json"))',
        'glob.glob(os.path.join(os.path.dirname(os.path.abspath(__file__)), "*.json"))',
        'HERE = os.path.dirname(__file__)\nglob.glob(f"{HERE}/*.json")',
        'glob("*.json")',
        'self.root: Path = Path(__file__).parent\nself.root.glob("*.json")',
        'glob.iglob("p*s.json")',
    ],
)
def test_a_pattern_in_the_own_folder_takes_what_it_matches(cases: Path, line: str) -> None:
    (cases / ".points.json").write_text("secret")
    assert set(beside(cases, [line], cases / "initial_program.py")) == {"points.json"}


@pytest.mark.parametrize(
    "line",
    [
        "os.listdir(os.path.dirname(os.path.abspath(__file__)))",
        "HERE = Path(__file__).parent\nfor path in HERE.iterdir(): pass",
        'os.walk(".")',
        "os.listdir()",
        'Path(__file__).parent.rglob("*")',
        "Path(__file__).parent.glob(pattern)",
        "glob.glob(os.path.join(os.path.dirname(__file__), pattern))",
    ],
)
def test_who_looks_through_the_own_folder_is_told(cases: Path, line: str) -> None:
    told: list[str] = []
    assert beside(cases, [line], cases / "initial_program.py", told.append) == {}
    [only] = told
    assert only.startswith(f"`{line.splitlines()[-1]}` looks through the evaluator's own folder, of which only")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (
            'os.listdir("cases")',
            r"the folder .*/cases, which .* has 5 files and 16.0 MiB; all that goes .* 16 MiB: make",
        ),
        ('HERE / "cases" / name', "the folder .*/cases, which"),
        ('glob("*.npy")', r"what \*.npy matches in .*, which the evaluator names, has 2 files and 18.0 MiB"),
        ('os.listdir("many")', "the folder .*/many, which the evaluator names, has 4,097 files"),
        ('os.listdir("linked")', "linked leads out of the evaluator's folder; put a copy of the folder there"),
    ],
)
def test_a_folder_that_cannot_go_along_is_refused(cases: Path, line: str, told: str) -> None:
    (cases / "cases" / "big.npy").write_bytes(b"\xff" * MOST)
    for name in ("x.npy", "y.npy"):
        (cases / name).write_bytes(b"\xff" * (9 << 20))
    (cases / "many").mkdir()
    for n in range(MANY + 1):
        (cases / "many" / f"{n}.txt").touch()
    with pytest.raises(UserError, match=told) as refused:
        beside(cases, [line], cases / "initial_program.py")
    assert "\n" not in str(refused.value)


def test_files_of_a_folder_are_counted_in_the_sandbox(cases: Path, sandboxed: str) -> None:
    (cases / "e.py").write_text("""
import glob, os
from pathlib import Path
D = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cases")
def evaluate(path):
    found = list((Path(__file__).parent / "cases").glob("*.json")) + glob.glob(os.path.join(D, "deep", "*.json"))
    return {"score": len(found), "listed": len(os.listdir(D))}
""")
    task = the_task(cases, "e.py")
    with task.sandbox:
        [found] = task.evaluate([PROGRAM])
    assert (found.value, found.metrics["listed"]) == (2, 3)
    assert len(task.notes) == 1


def test_multiprocessing_behind_sandlock_says_what_it_needs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not installed("sandlock"):
        pytest.skip("sandlock is not installed")
    (folder / "e.py").write_text("""
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
def evaluate(path):
    with ProcessPoolExecutor(2) as pool:
        return sum(pool.map(abs, [1, -2]))
def evaluate_stage1(path):
    try:
        multiprocessing.Queue()
    except OSError as reason:
        return {"score": 0.0, "error": str(reason)}
    return 1.0
def evaluate_stage2(path):
    open("/nowhere/x.csv")
""")
    task = the_task(folder, "e.py")
    for kind, told in (("sandlock", True), ("bubblewrap", False)):
        try:
            task.sandbox = Sandbox(kind=kind)
            with task.sandbox:
                found = task.evaluate([PROGRAM] * 3, [(), ("stage1",), ("stage2",)])
        except UserError:
            continue  # it does not work here
        says = "multiprocessing's semaphores, queues and pools, .* need bubblewrap .*apt install bubblewrap"
        assert [bool(re.search(says, one.feedback)) for one in found] == [told, told, False]
        assert told or found[0].value == 3


def test_links_may_not_lead_out_of_the_folder(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "x.csv").write_text("1")
    (elsewhere / "x.dat").write_text("1")
    (folder / "out").symlink_to(elsewhere)
    (folder / "here.csv").symlink_to(folder / "extra.csv")
    assert beside(folder, ["open('here.csv'), open('out/x.dat')"], folder / "initial_program.py") == {
        "here.csv": "1,2\n"
    }
    with pytest.raises(UserError, match=r"out/x.csv leads out of the evaluator's folder; put a copy"):
        beside(folder, ["open('out/x.csv')"], folder / "initial_program.py")


def test_openevolve_of_ones_own_is_not_replaced(folder: Path) -> None:
    (folder / "openevolve").mkdir()
    (folder / "openevolve" / "__init__.py").write_text("")
    assert "openevolve/evaluation_result.py" not in beside(folder, [EVALUATOR], folder / "initial_program.py")


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("points.json", b"[" + b"0, " * (MOST // 3), "larger than 16 MiB with .*points.json; make them smaller"),
        ("weights.py", b"\xff", "weights.py is not UTF-8"),
        ("weights.py", b"WEIGHT = (", "weights.py is not Python"),
    ],
)
def test_files_that_cannot_go_along(folder: Path, name: str, content: bytes, told: str) -> None:
    (folder / name).write_bytes(content)
    with pytest.raises(UserError, match=told) as refused:
        the_task(folder)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("open(f'{KIND}/{NAME}.txt')", "data/x.txt lies beside .*: its name, with a suffix, has to be written out in"),
        ("np.loadtxt(f'{KIND}/x.npy')", "data/x.npy lies beside .*: its name"),
        ("open('big.dat')", "big.dat lies beside .*: all files together may have 16 MiB; make it smaller"),
        ("open('runs/best.py')", "runs/best.py lies beside .*: Python goes where it is imported"),
        ("os.listdir(KIND)", "data lies beside .*: a folder goes where the evaluator names it, as in .*; or name its"),
        ("open('.venv/x.txt')", ".venv/x.txt lies beside .*: it is hidden, or leads out of the folder; put a copy"),
        ("caught(lambda: open(KIND + '/x.npy'))", "^error: .*; data/x.npy lies beside"),
    ],
)
def test_a_verdict_says_which_file_stayed_behind_and_why(folder: Path, line: str, told: str, sandboxed: str) -> None:
    (folder / "data").mkdir()
    (folder / "data" / "x.txt").write_text("x")
    (folder / "data" / "x.npy").write_bytes(b"\x93NUMPY")
    (folder / ".venv" / "x.txt").write_text("x")
    (folder / "big.dat").write_text("x" * (MOST + 1))
    (folder / "e.py").write_text(f"""
import os
import numpy as np
KIND, NAME = "data", "x"
def caught(call):
    try:
        call()
    except OSError as reason:
        return {{"score": 0.0, "error": str(reason)}}
def evaluate(path):
    return {line}
""")
    task = the_task(folder, "e.py")
    with task.sandbox:
        [found] = task.evaluate([PROGRAM])
    assert re.search(told, found.feedback)
    assert "\n" not in found.feedback


def test_other_errors_are_told_as_they_are(folder: Path) -> None:
    for error in (
        "ValueError: extra.csv",
        "[Errno 2] No such file or directory: 'nowhere.csv'",
        "[Errno 2] No such file or directory: '../secret.txt'",
        "[Errno 2] No such file or directory: 'extra.csv'",
        f"[Errno 2] No such file or directory: '{'x' * 3000}'",
    ):
        assert left_behind(folder, {"extra.csv"}, error) == ""


def test_files_of_folders_below_are_read_in_the_sandbox(folder: Path, sandboxed: str) -> None:
    (folder / "data").mkdir()
    (folder / "data" / "x.yaml").write_text("2.5")
    (folder / "e.py").write_text("""
from pathlib import Path
DATA = Path(__file__).parent / "data"
def evaluate(path):
    return float((DATA / "x.yaml").read_text())
""")
    task = the_task(folder, "e.py")
    with task.sandbox:
        [found] = task.evaluate([PROGRAM])
    assert (found.value, found.feedback) == (2.5, "")


def test_an_evaluator_called_program(folder: Path, sandboxed: str) -> None:
    (folder / "eval.v2.py").rename(folder / "program.py")
    task = the_task(folder, "program.py")
    with task.sandbox:
        [found] = task.evaluate([PROGRAM])
    assert found.value == pytest.approx(1 / 2.5)


def test_the_stand_in() -> None:
    made = EvaluationResult({"a": 1.0}, {"log": "ü", "raw": b"1"})
    assert made.to_dict() == EvaluationResult.from_dict({"a": 1.0}).metrics
    assert made.has_artifacts()
    assert made.get_artifact_keys() == ["log", "raw"]
    assert (made.get_artifact_size("log"), made.get_artifact_size("none"), made.get_total_artifact_size()) == (2, 0, 3)
