"""`evolvent`: one screen of help, commands that are imported when they are called, errors in one sentence."""

from __future__ import annotations

import errno
import importlib
import os
import signal
import sys
import sysconfig
import traceback
from typing import Any

import click

import evolvent
from evolvent import __version__
from evolvent.core import places
from evolvent.core.errors import UserError, nearest
from evolvent.core.secrets import redact

HELP = """\
Evolve a model, an agent or a program on a task with a verifier.

\b
  evolvent run grpo --task countdown           improve a model, get a report
  evolvent run grpo --task my_task.py          the same on a task of your own
  evolvent compare grpo dr-grpo --task arith   better at equal budget?
  evolvent claims mc-grpo                      does the paper's claim hold?
  evolvent list | show | tasks | models        what there is, by paper
  evolvent runs | report | resume | rollback   what happened, how to go back
"""
EPILOG = """\
\b
Every command has its own --help. Runs are kept in ./runs (another place:
--store, or EVOLVENT_STORE). Methods combine: `evolvent run grpo+sec`. Any
value can be set: `--set learn.lr=3e-4`; `evolvent show grpo` lists them.
Shell completion: `evolvent completion bash`.
"""

# name -> (where it is, what it does, the group that it is listed in)
COMMANDS = {
    "run": ("run:run", "evolve a model on a task", "Evolve"),
    "resume": ("run:resume", "carry on a run that was stopped or killed", "Evolve"),
    "try": ("talk:try_", "talk to a model before and after a run", "Evolve"),
    "serve": ("serve:serve", "serve an evolved model over the OpenAI API", "Evolve"),
    "export": ("runs:export", "write an evolved model as a Hugging Face folder or an adapter", "Evolve"),
    "list": ("show:list_", "the recipes: paper, what each changes, evidence", "Look up"),
    "show": ("show:show", "a recipe as a patch: values, mechanisms, claims, evidence", "Look up"),
    "tasks": ("show:tasks", "the tasks and their levels", "Look up"),
    "models": ("show:models", "the seed models and what they can do", "Look up"),
    "runs": ("runs:runs", "the runs in the store", "What happened"),
    "report": ("runs:report", "one HTML page about a run", "What happened"),
    "lineage": ("runs:lineage", "the versions of a run, with evidence and verdicts", "What happened"),
    "diff": ("runs:diff", "what differs between two runs or versions", "What happened"),
    "rollback": ("runs:rollback", "go back to an earlier version", "What happened"),
    "gc": ("runs:gc", "free disk space", "What happened"),
    "compare": ("bench:compare", "methods against each other at equal budget, several seeds", "Evidence"),
    "claims": ("bench:claims", "measure the claims of a recipe by the protocol", "Evidence"),
    "audit": ("make:audit", "test a task's verifier before money is spent on it", "Make your own"),
    "new": ("make:new", "scaffold a task or a recipe", "Make your own"),
    "pretrain": ("make:pretrain", "make a seed model from nothing", "Make your own"),
    "completion": ("make:completion", "print the script for shell completion", "Make your own"),
}

COMPLETE = "_EVOLVENT_COMPLETE"  # the environment variable by which a shell asks for what can be completed
FULL = (errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT)  # what the system says where nothing can be written
ODD_PLACE = (errno.ENOENT, errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ENOTEMPTY, errno.EEXIST)
MOST_FRAMES = 3  # of a user's own file, of an error that it raised


class Commands(click.Group):
    """A group that imports a command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import a command."""
        if name not in COMMANDS:
            return None
        return places.at(f"evolvent.cli.{COMMANDS[name][0]}")

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Unknown commands suggest the nearest one."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            raise UserError(f"no command `{args[0]}`{nearest(args[0], COMMANDS)} (`evolvent --help` lists them)")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands by group, from the table alone: nothing is imported."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for name, (_, text, group) in COMMANDS.items():
            groups.setdefault(group, []).append((name, text))
        for group, rows in groups.items():
            with formatter.section(group):
                formatter.write_dl(rows)


@click.group(cls=Commands, help=HELP, epilog=EPILOG, context_settings={"max_content_width": 118})
@click.version_option(__version__, message="evolvent %(version)s")
def cli() -> None:
    """The root of all commands."""


def main(args: list[str] | None = None) -> None:
    """Run the command line; bad input ends with one sentence and exit code 2."""
    if COMPLETE in os.environ:
        importlib.import_module("evolvent.cli.complete")  # it has bash's own way to ask
    try:
        code = cli.main(args, standalone_mode=False)
    except UserError as reason:
        fail(str(reason))
    except click.exceptions.NoArgsIsHelpError as reason:
        click.echo(reason.format_message())
        sys.exit(0)
    except click.ClickException as reason:
        fail(" ".join(reason.format_message().split()))
    except (KeyboardInterrupt, click.exceptions.Abort):
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # another one, as Python ends, ends it at once and without a word
        click.echo("evolvent: interrupted", err=True)
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as reason:
        if reason.errno in FULL:
            fail(
                f"cannot write {reason.filename or 'a file'}: {reason.strerror}; free some space or use another folder"
            )
        if reason.errno in ODD_PLACE and reason.filename:
            fail(f"cannot use {reason.filename}: {reason.strerror}; name another place")
        raise
    except Exception as reason:
        if not (said := mishap(reason)):
            raise
        click.echo(redact(said), err=True)
        sys.exit(1)
    sys.exit(code if isinstance(code, int) else 0)


def mishap(reason: Exception) -> str:
    """What a user's own file raised, with its lines and what to do next; empty for what the package itself raised."""
    package = os.path.dirname(evolvent.__file__)
    others = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
    frames = traceback.extract_tb(reason.__traceback__)
    ours = [f.filename.startswith(package + os.sep) for f in frames]
    known = [i for i, f in enumerate(frames) if ours[i] or not f.filename.startswith((*others, "<"))]
    if not known or ours[known[-1]]:
        return ""
    first = max((i for i in known if ours[i]), default=-1) + 1
    own = [frames[i] for i in known if i >= first][-MOST_FRAMES:]
    lines = "".join(traceback.format_list(own)) + "".join(traceback.format_exception_only(reason))
    return f"evolvent: an error in {own[-1].filename}, line {own[-1].lineno}\n{lines.rstrip()}"


def fail(text: str) -> None:
    """Say what was wrong and end with exit code 2."""
    click.echo(f"evolvent: {redact(text)}", err=True)
    sys.exit(2)


if __name__ == "__main__":
    main()
