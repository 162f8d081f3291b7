"""What `--help` prints: it is folded to the width of the terminal."""

from __future__ import annotations

import subprocess
import sys

import pytest

from evolvent.cli.main import COMMANDS, cli


def shown(command: str, columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """The help of a command, or that of all of them, in a terminal of so many columns."""
    monkeypatch.setenv("COLUMNS", str(columns))
    cli.main([*command.split(), "--help"], prog_name="evolvent", standalone_mode=False)
    return capsys.readouterr().out


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits_80_columns(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = shown(command, 80, monkeypatch, capsys)
    assert text.startswith(f"Usage: evolvent {command}".rstrip())
    assert [line for line in text.splitlines() if len(line) > 80] == []


def test_a_wider_terminal_is_used(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    wide = shown("run", 118, monkeypatch, capsys).splitlines()
    assert 80 < max(map(len, wide)) <= 118


def test_the_first_screen_names_all_commands_and_imports_no_torch() -> None:
    code = "import sys\nfrom evolvent.cli.main import cli\ncli.main(['--help'], standalone_mode=False)\n"
    code += "print('torch' in sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "False"
    assert [name for name in COMMANDS if f"\n  {name} " not in done.stdout] == []
