"""What teams can be made of: sentences for prompts, and what backbones can do when a script stands in for a model.

Some sentences help, some are useless, and some do harm; nobody is told which. The scripted worker understands these
and no others (`scripted.py`), a model understands any.
"""

from __future__ import annotations

from dataclasses import dataclass

STEPS = {
    "plan": "List the wanted items of the question and the formula.",
    "find": "Look up a record of each wanted item that is still open.",
    "find-odd": "Look up records of the first, third and fifth wanted item.",
    "find-even": "Look up records of the second, fourth and sixth wanted item.",
    "read": "Read the fact in each record.",
    "check": "Compare the name in each record with the wanted item and drop records of anything else.",
    "convert": "Convert the fact of each item to the units km, kg, km/h and coins/kg.",
    "calculate": "Calculate the result of the formula from the values.",
    "again": "Calculate the result of the formula once more and correct it.",
    "round": "Round the result as asked and write it as a line such as `answer: 12.5`.",
    "guess": "Answer at once with the first number that you see.",
    "ponder": "Think step by step about what could be meant.",
    "greet": "Greet whoever comes next and thank those before you.",
}
METHOD = {
    "exact": "Only records whose name is exactly that of the wanted item count.",
    "every": "Keep every record that a search brings.",
    "unit": "A fact is the number that stands before a unit, not any other number.",
    "latest": "Where a record is corrected, the corrected number is the fact.",
    "with-converter": "Convert units with the converter, never from memory.",
    "with-calculator": "Calculate with the calculator, never in your head.",
    "rough": "Round numbers on the way to two digits.",
    "assume": "Take 1 for every value that is missing.",
    "expert": "You are a world-class expert.",
    "polite": "Be polite and brief.",
}
OUTPUT = {
    "all": "Hand over everything that you know.",
    "new": "Hand over only what you have found yourself.",
    "needed": "Hand over the wanted items, the formula, facts and results, without question and records.",
    "answer": "Hand over the answer alone.",
}
LIBRARY = {"steps": STEPS, "method": METHOD, "output": OUTPUT}
MEANS = {" ".join(text.split()): key for part in LIBRARY.values() for key, text in part.items()}


@dataclass(frozen=True)
class Backbone:
    """What a scripted worker of this kind can do.

    price   of a call, in the unit of costs
    heeds   sentences of its prompt that it follows, the first ones
    calls   of tools, for one call of its own
    window  characters of what it is handed that it reads, whole lines from the beginning
    """

    price: float
    heeds: int
    calls: int
    window: int


SCRIPTED = {
    "tiny": Backbone(0.3, 2, 1, 300),
    "small": Backbone(1.0, 4, 3, 600),
    "large": Backbone(4.0, 8, 8, 1800),
}
TOOL_PRICE, LEVEL_PRICE = 0.2, 0.5  # of a call of a tool; of each level of the graph, for the time that it takes
