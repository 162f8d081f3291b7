"""What `--help` prints: in a terminal of 80 columns no line is broken by it."""

from __future__ import annotations

import subprocess
import sys

import pytest
from click.testing import CliRunner

from evolvent.cli.main import COMMANDS, cli

COLUMNS = 80


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits_a_terminal_of_80_columns(command: str) -> None:
    shown = CliRunner().invoke(cli, [*command.split(), "--help"], env={"COLUMNS": str(COLUMNS)}, prog_name="evolvent")
    assert shown.exit_code == 0
    assert shown.output.startswith(f"Usage: evolvent {command}".rstrip())
    assert [line for line in shown.output.splitlines() if len(line) > COLUMNS] == []


def test_a_wide_terminal_is_used() -> None:
    """So that the test above measures what a terminal of that width would show."""
    shown = CliRunner().invoke(cli, ["run", "--help"], env={"COLUMNS": "118"})
    assert COLUMNS < max(map(len, shown.output.splitlines())) <= 118


def test_the_first_screen_imports_no_torch() -> None:
    code = "import sys\nfrom evolvent.cli.main import cli\ncli.main(['--help'], standalone_mode=False)\n"
    code += "print('torch' in sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "False"
    assert all(f"\n  {name} " in done.stdout for name in COMMANDS)
