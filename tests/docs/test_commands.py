"""Every command line in the documentation is one that the program understands, and every command is documented."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from evolvent.bench.compare import parse_arm
from evolvent.cli.main import COMMANDS, cli, main
from evolvent.cli.options import pairs
from evolvent.recipes.catalogue import settings_of
from evolvent.run.assemble import SERVICE
from evolvent.tasks.registry import BUILT_IN, load_task

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES += sorted(p for p in (ROOT / "examples").rglob("*.*") if p.parent.name != "__pycache__")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SHELLS = ("console", "bash", "sh", "")
COMMENT = re.compile(r"\s{3,}\S.*|\s+#\s.*")  # what stands behind a command, to explain it


def command_lines(text: str) -> list[str]:
    """Lines of a page's shell blocks, or of a program's docstring, that call evolvent."""
    blocks = [block for language, block in FENCE.findall(text) if language in SHELLS] or [text]
    lines = (line.strip() for block in blocks for line in block.splitlines())
    return [COMMENT.sub("", line) for line in lines if re.match(r"evolvent [a-z]+( |$)", line)]


LINES = [(page.relative_to(ROOT).as_posix(), line) for page in PAGES for line in command_lines(page.read_text())]


@pytest.mark.parametrize(("page", "line"), dict.fromkeys(LINES), ids=lambda text: text)
def test_a_command_line_is_understood(page: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for language, block in FENCE.findall((ROOT / page).read_text()):
        if language == "toml":  # begins with its name, as in # experiment.toml
            (tmp_path / block.splitlines()[0].removeprefix("# ")).write_text(block)
            monkeypatch.chdir(tmp_path)
    name, *args = shlex.split(line)[1:]
    command: Any = cli.get_command(None, name)  # type: ignore[arg-type]
    assert command is not None, f"{page}: no command {name}"
    given = command.make_context(name, args).params
    recipes = {"run": "recipe", "show": "composition", "claims": "names", "compare": "arms"}.get(name)
    for composition in as_tuple(given.get(recipes) if recipes else None):
        arm = parse_arm(composition) if name == "compare" else None
        named = arm.recipe if arm else composition
        if ".py" in named or re.fullmatch(r".*-\d+", named):  # a file of the reader's, or a run
            continue
        settings = pairs(given.get("settings", ()), "--set") | (arm.settings if arm else {})
        settings = {k: v for k, v in settings.items() if not k.startswith(SERVICE)}  # of an endpoint, not of a recipe
        settings_of(named, settings, pairs(given.get("take", ()), "--take"), "tiny")  # all that is set is read
    task = given.get("task") or (given.get("name") if name == "tasks" else None)
    if task and task.partition(":")[0] in BUILT_IN:
        load_task(task)


def as_tuple(value: Any) -> tuple[str, ...]:
    """One name or several."""
    return tuple(value) if isinstance(value, list | tuple) else (value,) if value else ()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_and_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main([name, "--help"])
    assert end.value.code in (0, None)
    assert "Usage:" in capsys.readouterr().out
    page = (ROOT / "docs" / "cli.md").read_text()
    assert f"\n**{name}** " in page
    assert any(line.startswith(f"evolvent {name}") for line in command_lines(page))


@pytest.mark.parametrize("page", [p for p in PAGES if p.suffix == ".md"], ids=lambda p: p.name)
def test_commands_and_links_in_prose_exist(page: Path) -> None:
    text = page.read_text()
    for name in re.findall(r"`evolvent ([a-z]+)", text):
        assert name in COMMANDS, name
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", text):
        place, _, heading = target.partition("#")
        there = (page.parent / place).resolve() if place else page
        assert there.exists(), f"{page.name} links to {target}"
        if heading and there.suffix == ".md":
            anchors = [anchor(line) for line in there.read_text().splitlines() if line.startswith("#")]
            assert heading in anchors, f"{page.name} links to {target}; there are {anchors}"


def anchor(heading: str) -> str:
    """A heading's anchor, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lstrip("# ").lower()).replace(" ", "-")
