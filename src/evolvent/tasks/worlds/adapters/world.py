"""The world `adapters`: low-rank changes of a seed model's weights, searched as programs that call `add(seed, size)`.

    value = mean over the problems of p(the known solution | problem), at temperature 1
    accuracy (a metric) = share of the problems that the model answers right, greedily; in train of the first 100

The value is a lower bound of the accuracy of sampled answers, without the noise of sampling: the known solution is the
simplest of perhaps several. The share of right answers itself is too coarse to climb on: 1 of 100 is a step, and small
changes of the weights make none. Few problems are learned by heart: what hill climbing found on 200 was worse on
others, what it found on 400 was better. The program runs in the sandbox and gives back numbers; the model and the
problems are here, so nothing can be looked up. The problems are countdown's, by its own splits. Torch is imported when
a genome is first judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import evolvent
from evolvent.core.errors import UserError
from evolvent.guard.sandbox import Call, Limits
from evolvent.tasks.evaluation import Evaluation, invalid, over_instances
from evolvent.tasks.program import PROGRAM, ProgramTask, World
from evolvent.tasks.worlds.adapters.genome import LARGEST, MOST, Genome, read
from evolvent.tasks.worlds.sized import read_size

if TYPE_CHECKING:
    from evolvent.models.policy import Policy

RESTS_ON = (  # what evidence rests on beside what is imported here: the model's code and its weights
    "evolvent.tasks.worlds.adapters.model",
    Path(evolvent.__file__).parent / "models" / "seeds" / "tiny-0" / "model.safetensors",
)
PROBLEMS = {"gate": 300, "test": 500}  # the size says how many there are in train
ANSWERED = 100  # problems of train that are answered: that takes longer than their probabilities, and decides nothing

GOAL = """Write down a change of the weights of a small language model that makes it better at a number puzzle: reach
a target from given numbers, each used once, with + - * /. adapter(add) calls add(seed=s, size=x) up to {most} times.
Each call adds a random direction of low rank to all weight matrices but the embedding: which one is up to the seed, a
whole number from 0 to 2**32 - 1, and how far is up to the size, from -{largest:g} to {largest:g}. Directions add up.
Sizes up to 1 keep most of what the model can do; 4 leaves nothing of it. Nobody knows which seeds are good: keep
what helped, try others beside it, and tune the sizes. Two seeds next to each other have nothing in common."""

SEED = '''"""A low-rank change of a model's weights, as seeds and sizes."""


# EVOLVE-BLOCK-START
def adapter(add):
    """Call add(seed, size) for every direction."""
    add(seed=1, size=0.0)
# EVOLVE-BLOCK-END
'''

SIZES = (0.3, -0.3, 0.6, -0.6, 1.0, -1.0)
COMPONENTS = tuple(  # pairs: a call alone is an expression, which operators would assign to a variable, as `add = ...`
    f"add(seed={2000 * i}, size={SIZES[i % 6]})\nadd(seed={2000 * i + 1000}, size={SIZES[i // 6 % 6]})"
    for i in range(1, 73)
)

RUN = """
def plain(x):
    return x.item() if hasattr(x, "item") else x


def run():
    import program

    found = []

    def add(seed, size):
        found.append([plain(seed), plain(size)])

    program.adapter(add)
    return found
"""


class Adapters(ProgramTask):
    """The world as a task whose programs stand for models."""

    def genome(self, text: str) -> Genome:
        """The seeds and sizes that a program gives, in the sandbox. `UserError` where it gives none."""
        with self.sandbox:
            outcome = self.run([self.world.call(text, ())])[0]
        found = read(outcome.value) if outcome.status == "ok" else outcome.error or outcome.status
        if isinstance(found, str):
            raise UserError(f"the program stands for no model: {found}")
        return found

    def policy_of(self, text: str) -> Policy:
        """The model that a program stands for, the change as a LoRA adapter. `UserError` where it stands for none."""
        from evolvent.tasks.worlds.adapters.model import adapted

        return adapted(self.genome(text))


def judge(value: Any, names: Sequence[str], count: int) -> Evaluation:
    """The verdict on a list of [seed, size], on splits by name; `count` is the number of problems of train."""
    genome = read(value)
    if isinstance(genome, str):
        return invalid(genome)
    from evolvent.tasks.worlds.adapters.model import measured

    values, shares, told = {}, [], []
    for name in names:
        problems = PROBLEMS.get(name, count)
        answered = problems if name in PROBLEMS else min(problems, ANSWERED)
        values[name], share = measured(genome, name, problems, answered)
        shares.append(share)
        told.append(f"{round(share * answered)} of {answered} answers are right")
    metrics = {"accuracy": sum(shares) / len(shares), "parameters": 2.0 * len(genome)}
    return replace(over_instances(values, metrics), feedback="; ".join(told))


def task(size: str = "400") -> Adapters:
    """The world with so many problems in train. `UserError` for a number out of range."""
    n = read_size("adapters", size, 10, 2000, "problems")
    return Adapters(
        World(
            name=f"program:adapters:{n}",
            goal=GOAL.format(most=MOST, largest=LARGEST),
            seed=SEED,
            call=lambda text, names: Call({"entry.py": RUN, PROGRAM: text}, "entry", "run", seed=0),
            judge=lambda value, names: judge(value, names, n),
            instances={"train": ("train",), "gate": ("gate",), "test": ("test",)},
            limits=Limits(seconds=5.0),
            components=COMPONENTS,
        )
    )
