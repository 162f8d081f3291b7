"""What `evolvent list` and `evolvent show` print."""

from __future__ import annotations

from click.testing import CliRunner

from evolvent.cli.main import cli
from evolvent.cli.show import topmost


def test_paths_below_another_one_are_left_out() -> None:
    assert topmost(["learn", "learn.lr", "credit.scale.eps", "credit.scale", "learner"]) == [
        "learn",
        "credit.scale",
        "learner",
    ]


def test_the_list_names_every_recipe_and_what_it_changes() -> None:
    shown = CliRunner().invoke(cli, ["list"], env={"COLUMNS": "200"}).output
    (line,) = [x for x in shown.splitlines() if x.startswith("eggroll ")]
    assert line.split() == ["eggroll", "grpo", "rollout.temperature,", "credit.scale,", "learn", "arXiv", "2511.16652"]
