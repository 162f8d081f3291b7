"""Problems and verifiers. Here: which tasks there are, by name; `registry` finds the one that a run asks for."""

from typing import NamedTuple


class Entry(NamedTuple):
    """A task that ships with the package: where it is, levels to try, and what it is."""

    place: str
    levels: str
    text: str


BUILT_IN = {
    "arith": Entry("evolvent.tasks.arith:Arith", "2x1, 2x2, 2x3-chain, 2x2-mul", "sums and products, in a chain"),
    "countdown": Entry("evolvent.tasks.countdown:Countdown", "3x12, 3x20, 4x12", "reach a target from given numbers"),
    "calc": Entry("evolvent.tasks.calc:Calc", "1x2, 2x3, 3x4", "several turns with a calculator tool"),
    "judge": Entry("evolvent.tasks.roles.judge:Judge", "3x12, 3x20, 4x12", "is this countdown expression right?"),
    "propose": Entry("evolvent.tasks.roles.propose:Propose", "countdown:3x20, arith:2x2", "make up a problem"),
    "revise": Entry("evolvent.tasks.roles.revise:Revise", "3x20, 4x12, 4x20", "correct a draft by its critique"),
    "hint": Entry("evolvent.tasks.roles.hint:Hint", "3x20, 4x12, 4x20", "countdown with the beginning of a solution"),
    "memory": Entry(
        "evolvent.tasks.roles.memory:Memory", "recall-4, sum-2, case-2-3x20", "notes, one of which matters"
    ),
}
ADAPTERS = {  # prefix -> module with `load(rest)`
    "program": "evolvent.tasks.program",
    "texts": "evolvent.tasks.texts.task",
    "gym": "evolvent.tasks.adapters.gymnasium_text",
    "verifiers": "evolvent.tasks.adapters.verifiers_v0",
}
OTHERS = (
    ("rg/NAME", "1, 2, 3, 4, 5", "a data set of reasoning-gym; the seed models read 12, such as rg/products"),
    ("FILE.py", "its categories", "a task of your own, see docs/write-a-task.md"),
    ("FILE.jsonl[:FILE.py]", "its categories", "rows of your own (.csv, .parquet), with `answer` or a reward"),
    ("program:WORLD", "", "programs for a world that ships with the package, such as program:circle-packing:26"),
    ("program:EVALUATOR.py:PROGRAM.py", "", "programs, evaluated by a file of your own, as OpenEvolve's"),
    ("texts:FILE.py[:TEXTS]", "", "prompts and other named texts, evaluated by a file of your own or a GEPA adapter"),
    ("gym:MODULE:CLASS", "", "a Gymnasium environment with text observations and actions, or the id of one"),
    ("verifiers:MODULE", "", "an environment of verifiers 0.x, by its load_environment()"),
)
