"""The world `text-games`: a policy that adapts an actor between episodes of a game that is played several times.

    program:text-games                                12 games to learn from, 4 episodes each, 40 steps an episode
    program:text-games:games=6,episodes=3,limit=30    others

A candidate is a meta-prompt: a header and a footer that stay as they are, and between them a strategy section, a list
of sentences. It is a Python text, which is read and not run. An inner run plays all episodes of one game: after each
the adaptation policy reads the log, and writes the guidance that the actor has in the next one. With the share s_k of
all points in episode k, the value of an instance is

    sum_k k s_k / sum_k k          (Meta-TTL, arXiv 2604.00830, and its released code)

and on the split `test` the gain s_K - s_1. Games of `test` are of other families than those of `train` and `gate`.
Without a model player and adviser are scripted (`player.py`, `adviser.py`), and what is found holds for these. An actor
begins each episode of a game with the same draws, whoever advises it, so that first episodes are all alike.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from evolvent.core.errors import UserError, VerifierError
from evolvent.core.random import stream
from evolvent.core.records import Message, Problem
from evolvent.guard.sandbox import Call
from evolvent.tasks.base import Reply, key_of
from evolvent.tasks.evaluation import Evaluation, invalid, over_instances
from evolvent.tasks.program import PROGRAM, ProgramTask, World
from evolvent.tasks.settings import read_settings
from evolvent.tasks.worlds.text_games.adviser import DIRECTIVES, REFLEXION, advise
from evolvent.tasks.worlds.text_games.families import LEARNED, UNSEEN, layout
from evolvent.tasks.worlds.text_games.game import COMMANDS, Game
from evolvent.tasks.worlds.text_games.notes import LINES
from evolvent.tasks.worlds.text_games.player import Player

TESTED = 60  # games of the split test
GAIN = "gain/"  # before the name of a game: the value is what the last episode has gained on the first one
GOAL = """Improve the strategy section of a prompt. With it a language model reads the log of an episode of a text game
and writes guidance for an actor, who plays the same game again. The value is the mean share of points, later episodes
count more. Games differ."""
HEADER = """You advise an actor who plays a text game several times, from the beginning each time. You read the log of
the latest episode: what the actor saw [OBS], its command [ACTION], the reply [REPLY], the points that it brought
[REWARD] and all points so far [CUM_REWARD]."""
FOOTER = f"""Write your guidance for the next episode between <learn> and </learn>, a sentence each line. It takes the
place of the guidance before it, and the actor reads {LINES} lines of it."""
ACTOR = "You play a text game. Explore systematically."
STARTS = {"": (), "reflexion": tuple(DIRECTIVES[name] for name in REFLEXION)}


@dataclass(frozen=True)
class Settings:
    """How many games there are to learn from, and for gates; episodes of an inner run; steps of an episode."""

    games: int = 12
    episodes: int = 4
    limit: int = 40

    def __post_init__(self) -> None:
        if not 1 <= self.games <= 300 or not 2 <= self.episodes <= 20 or not 1 <= self.limit <= 500:
            raise UserError("text-games: games goes from 1 to 300, episodes from 2 to 20, limit from 1 to 500")


@dataclass(frozen=True)
class Run:
    """An inner run: of each episode the share of points, its log, and the guidance that it had."""

    scores: tuple[float, ...]
    logs: tuple[str, ...]
    guidance: tuple[str, ...]

    @property
    def fitness(self) -> float:
        """Later episodes count more."""
        return sum(k * s for k, s in enumerate(self.scores, 1)) / sum(range(1, len(self.scores) + 1))

    @property
    def gain(self) -> float:
        """Of the last episode over the first one."""
        return self.scores[-1] - self.scores[0]


Play = Callable[[Sequence[str], Sequence[str]], list[Run]]  # a strategy, names of games -> an inner run of each


def meta_prompt(strategy: Sequence[str]) -> str:
    """What the adaptation policy is told."""
    return "\n\n".join(part for part in (HEADER, "\n".join(strategy), FOOTER) if part)


def text_of(strategy: Sequence[str]) -> str:
    """The candidate with this strategy section."""
    lines = "".join(f"    {line!r},\n" for line in strategy)
    return (
        f'"""A policy that adapts an actor between episodes."""\n\nHEADER = {HEADER!r}\n'
        f"# EVOLVE-BLOCK-START\nSTRATEGY = [\n{lines}]\n# EVOLVE-BLOCK-END\nFOOTER = {FOOTER!r}\n"
    )


def strategy_of(text: str) -> tuple[str, ...]:
    """The strategy section of a candidate. ValueError for what is in another form, or has another header or footer;
    SyntaxError for what is no Python."""
    found: dict[str, Any] = {}
    for node in ast.parse(text).body:
        match node:
            case ast.Assign([ast.Name(name)], value):
                found[name] = ast.literal_eval(value)
            case ast.Expr(ast.Constant(str())):
                pass
            case _:
                raise ValueError(f"line {node.lineno} must be an assignment of texts")
    if set(found) != {"HEADER", "STRATEGY", "FOOTER"}:
        raise ValueError("there must be HEADER, STRATEGY and FOOTER, and nothing else")
    if (found["HEADER"], found["FOOTER"]) != (HEADER, FOOTER):
        raise ValueError("header and footer must stay as they are; only STRATEGY may change")
    lines = found["STRATEGY"]
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        raise ValueError("STRATEGY must be a list of texts")
    return tuple(lines)


def entry(seen: str, command: str, reply: str, reward: int, score: int) -> str:
    """One step of a log."""
    return f"[OBS] {seen}\n[ACTION] {command}\n[REPLY] {reply}\n[REWARD] {reward}\n[CUM_REWARD] {score}\n"


def episode(name: str, number: int, guidance: str, limit: int) -> tuple[float, str]:
    """One episode of the scripted player: its share of points, and the log."""
    game, player, log = Game(layout(name), limit), Player(guidance, stream(0, "player", name, number)), []
    while not game.over:
        seen = game.see()
        command = player.command(seen)
        log.append(entry(seen, command, *game.step(command), game.score))
    return game.score / game.layout.most, "".join(log)


@lru_cache(maxsize=1024)
def inner_run(strategy: tuple[str, ...], name: str, settings: Settings) -> Run:
    """All episodes of a game with the scripted player and the scripted adviser; the same each time."""
    scores, logs, guidance = [], [], [""]
    for k in range(settings.episodes):
        score, log = episode(name, k, guidance[k], settings.limit)
        scores.append(score)
        logs.append(log)
        guidance.append(advise(strategy, log, guidance[k]))
    return Run(tuple(scores), tuple(logs), tuple(guidance[:-1]))


class TextGames(ProgramTask):
    """The world as a task. `play` makes inner runs: by default those of the scripted player and adviser."""

    scripted_agent: ClassVar = True  # evidence says so: rules act where a model would

    sandbox: Any = None  # nothing runs

    def __init__(self, settings: Settings, name: str) -> None:
        self.settings, self.max_turns = settings, settings.limit
        self.play: Play = lambda strategy, names: [inner_run(tuple(strategy), n, settings) for n in names]
        n = settings.games
        super().__init__(
            World(
                name=name,
                goal=GOAL,
                seed=text_of(()),
                call=lambda text, names: Call({PROGRAM: text}, "program", "STRATEGY"),
                judge=lambda value, names: invalid("nothing is run here"),
                instances={
                    "train": named(LEARNED, range(n)),
                    "gate": named(LEARNED, range(1000, 1000 + n)),
                    "test": tuple(GAIN + name for name in named(UNSEEN, range(TESTED))),
                },
                components=tuple(DIRECTIVES.values()),
            )
        )

    def evaluate(self, programs: Sequence[str], names: Sequence[Sequence[str]] | None = None) -> list[Evaluation]:
        """Verdicts, in the order of the programs, with the metrics `first/GAME` and `last/GAME`."""
        asked = [self.instances("train")] * len(programs) if names is None else names
        return [self._worth(program, tuple(own)) for program, own in zip(programs, asked, strict=True)]

    def _worth(self, program: str, names: tuple[str, ...]) -> Evaluation:
        try:
            strategy = strategy_of(program)
        except (SyntaxError, RecursionError, MemoryError) as reason:
            return invalid(f"{type(reason).__name__}: {reason}", "unreadable")
        except ValueError as reason:
            return invalid(str(reason))
        try:
            runs = self.play(strategy, [name.removeprefix(GAIN) for name in names])
        except VerifierError as reason:
            return invalid(str(reason), "lost")
        values, metrics = dict[str, float](), dict[str, float]()
        for name, run in zip(names, runs, strict=True):
            values[name] = run.gain if name.startswith(GAIN) else run.fitness
            metrics |= {f"first/{name}": run.scores[0], f"last/{name}": run.scores[-1]}
        return over_instances(values, metrics)

    def game(self, name: str, guidance: str) -> Problem:
        """An episode as a problem for a model that plays: the guidance, the rules and what there is to see first."""
        told = f"Commands: {COMMANDS}.\nEnd each turn with a line that is one command.\n\n{Game(layout(name), 1).see()}"
        prompt = (Message("system", f"{ACTOR}\n\n{guidance}".strip()), Message("user", told))
        return Problem(key_of("text-games", [name, guidance]), prompt, {"game": name}, name, self.name)

    def episode(self, problem: Problem) -> Playing | None:
        """A model's episode; None for what is no game."""
        return Playing(problem.data["game"], self.settings.limit) if "game" in problem.data else None


class Playing:
    """A model's episode: the last line of each turn is its command. The note `played` is (share of points, log)."""

    def __init__(self, name: str, limit: int) -> None:
        self.game, self.log = Game(layout(name), limit), ""

    def respond(self, turn: str) -> Reply:
        """What comes of a command."""
        lines = [line.strip("> ").strip() for line in turn.splitlines() if line.strip()]
        command, game = lines[-1] if lines else "", self.game
        seen = game.see()
        reply, reward = game.step(command)
        self.log += entry(seen, command, reply, reward, game.score)
        told = "" if game.over else f"{reply}\n\n{game.see()}\nScore: {game.score}."
        return Reply(told, done=game.over, note={"played": (game.score / game.layout.most, self.log)})


def named(families: Sequence[str], numbers: range) -> tuple[str, ...]:
    """So many games, of each family in turn."""
    return tuple(f"{families[i % len(families)]}-{i // len(families)}" for i in numbers)


def world(settings: str = "") -> TextGames:
    """The task with these settings. `UserError` for those that there are not."""
    return TextGames(
        read_settings(Settings, settings, "text-games"), "program:text-games" + (f":{settings}" if settings else "")
    )
