"""What evidence rests on: the code that a cell runs, and nothing that it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from evolvent.bench import closure as page
from evolvent.bench.claims import IMPORTED_LATE
from evolvent.bench.closure import closure, combined, module_file, read_module, weights_hash

CODE = '''"""What it is."""

from evolvent.other import thing


def twice(x: int) -> int:
    """Two times."""
    return 2 * x  # quickly
'''


def code_hash(folder: Path, text: str) -> str:
    """The hash of a module with this text."""
    path = folder / f"m{len(list(folder.iterdir()))}.py"
    path.write_text(text)
    return read_module(path)[0]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("What it is.", "What it was."),
        ("Two times.", "Double."),
        ('    """Two times."""\n', ""),
        ("  # quickly", ""),
        ("2 * x", "(2 * x)"),
        ("\n\n\n", "\n"),
    ],
)
def test_words_and_layout_do_not_count(old: str, new: str, tmp_path: Path) -> None:
    assert old in CODE
    assert code_hash(tmp_path, CODE) == code_hash(tmp_path, CODE.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"), [("2 * x", "3 * x"), ("twice", "double"), ("x: int", "x: float"), ("thing", "things")]
)
def test_code_does(old: str, new: str, tmp_path: Path) -> None:
    assert code_hash(tmp_path, CODE) != code_hash(tmp_path, CODE.replace(old, new))


def test_a_text_that_is_no_docstring_counts(tmp_path: Path) -> None:
    code = 'def f():\n    """Said."""\n    return "a"\n'
    assert code_hash(tmp_path, code) != code_hash(tmp_path, code.replace('"a"', '"b"'))


def test_a_function_that_is_only_a_docstring(tmp_path: Path) -> None:
    assert code_hash(tmp_path, 'def f():\n    """Said."""\n') == code_hash(tmp_path, "def f():\n    pass\n")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with a cycle, a package within, and an import in a function."""
    files = {
        "a.py": "import evolvent.b\nfrom evolvent.inner import c\nimport json\n",
        "b.py": "from evolvent import a\n\n\ndef late():\n    from evolvent import d\n",
        "d.py": "",
        "inner/__init__.py": "from evolvent import d\n",
        "inner/c.py": "",
        "alone.py": "",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(page, "ROOT", tmp_path)
    return tmp_path


def test_it_follows_imports_at_the_top(package: Path) -> None:
    assert set(closure(["evolvent.a"])) == {"evolvent.a", "evolvent.b", "evolvent.inner.c"}
    assert set(closure(["evolvent.alone", "evolvent.nowhere"])) == {"evolvent.alone"}


def test_a_change_far_below_changes_the_whole(package: Path) -> None:
    before = combined(closure(["evolvent.a"]))
    (package / "inner/c.py").write_text("x = 1\n")
    read_module.cache_clear()
    assert combined(closure(["evolvent.a"])) != before
    (package / "inner/c.py").write_text("# nothing\n")
    (package / "alone.py").write_text("x = 1\n")
    read_module.cache_clear()
    assert combined(closure(["evolvent.a"])) == before


def test_what_a_cell_runs_is_in_it_and_what_shows_results_is_not() -> None:
    found = set(closure(["evolvent.bench.cell", *IMPORTED_LATE, "evolvent.recipes.policy_gradient.grpo"]))
    assert {
        "evolvent.core.loop",
        "evolvent.engine.local",
        "evolvent.engine.noise",
        "evolvent.models.decoder",
        "evolvent.learn.credit",
        "evolvent.rollout.sample",
        "evolvent.bench.evaluate",
        "evolvent.recipes.profiles",
    } <= found
    rooms = {name.split(".")[1] for name in found}
    assert not rooms & {"cli", "serve", "lineage"}
    assert "evolvent.bench.claims" not in found
    assert module_file("evolvent.core.loop") is not None


def test_weights_are_known_by_their_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text("{}")
        (tmp_path / name / "model.safetensors").write_bytes(b"123")
        (tmp_path / name / "README.md").write_text(name)
    one, two = tmp_path / "one", tmp_path / "two"
    assert weights_hash(one) == weights_hash(two)
    (two / "model.safetensors").write_bytes(b"124")
    assert weights_hash(one) != weights_hash(two)
