"""What went wrong in a trajectory, node by node from the last to the first, without a model.

Each node is held against what follows from its own input, done well: what is required of it and missing there is
either its own fault, or it is what the nodes before it have to hand over. No right answer is looked at but the last
one, and that only to see whether there is anything to look for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from evolvent.tasks.worlds.workflow import known as ways
from evolvent.tasks.worlds.workflow.execute import NodeRun, Trace
from evolvent.tasks.worlds.workflow.known import STAGES, Known
from evolvent.tasks.worlds.workflow.team import Node, Team

TOOL_OF = {"record": "lookup", "value": "converter", "result": "calculator"}
LACKING = {
    "plan": "The list of wanted items and the formula of the question are missing.",
    "record": "There is no record of a wanted item, which is still open.",
    "fact": "Nobody has read the fact in a record.",
    "value": "A fact was not converted to the units km, kg, km/h and coins/kg.",
    "result": "Nobody has calculated the result of the formula from the values.",
    "answer": "The result was not rounded as asked, and there is no line with the answer.",
}
WRONG = {
    "record": "The name in a record is not exactly that of the wanted item.",
    "fact": "A fact is some other number than the one before a unit.",
    "value": "Units were converted from memory, without the converter, and are not exact.",
    "result": "The result was calculated in the head, without the calculator, and is not exact.",
    "answer": "The answer is not the result, rounded as asked.",
}
CORRECTED = "A record is corrected, and the fact is not the corrected number."
OPEN = "The name of an item depends on a fact that has to be read in a record first."
WITHHELD = "This is known here and was not handed over: {}."
REASONS = {
    "tool": "It has no {}.",
    "calls": "It had no calls of tools left.",
    "cut": "It could not read all that it was handed.",
    "unheeded": "Its prompt has more sentences than it follows.",
}


@dataclass(frozen=True)
class Fault:
    """What a node did not do (`lacking`), did badly (`wrong`) or kept to itself (`withheld`), and what stood in its
    way: `tool`, `calls`, `cut`, `unheeded`. `text` says so in words."""

    node: str
    stage: str
    how: str
    reasons: tuple[str, ...] = ()
    text: str = ""

    @property
    def label(self) -> str:
        """The kind of the fault, whichever node has it."""
        return " ".join([self.stage, self.how, *self.reasons])

    @property
    def line(self) -> str:
        """As a line of feedback."""
        return f"  at {self.node} ({self.label}): {self.text}"


LINE = re.compile(r"  at (\S+) \((\w+) (\w+)((?: \w+)*)\): (.*)")


def explained(team: Team, trace: Trace) -> str:
    """A wrong answer and its faults as feedback, which `faults_in` reads."""
    question = trace.question
    head = f"{question.name}: {question.text} Wanted {question.answer}, got {trace.answer or 'nothing'}."
    return "\n".join([head, *(f.line for f in faults(team, trace))])


def faults_in(feedback: str) -> dict[str, list[Fault]]:
    """Faults by question, as a feedback tells of them."""
    found: dict[str, list[Fault]] = {}
    name = ""
    for line in feedback.splitlines():
        if match := LINE.fullmatch(line):
            fault = Fault(match[1], match[2], match[3], tuple(match[4].split()), match[5])
            if name and fault not in found[name]:
                found[name].append(fault)
        else:
            name = line.partition(":")[0]
            found.setdefault(name, [])
    return found


def faults(team: Team, trace: Trace) -> list[Fault]:
    """Faults that led to a wrong answer, those of the last nodes first; none for a right one."""
    if trace.right:
        return []
    required: dict[str, set[str]] = {team.last: {"answer"}}
    found: list[Fault] = []
    for name in reversed(team.names):
        if name in required:
            own, up = local(team[name], trace.of(name), required[name], bool(team.before(name)))
            found += own
            for before in team.before(name):
                required.setdefault(before, set()).update(up)
    return found or [Fault(team.last, "answer", "wrong", (), "The answer is wrong.")]


def local(node: Node, run: NodeRun, required: set[str], others: bool) -> tuple[list[Fault], set[str]]:
    """A node's own faults, given which stages are required of it, and the stages that the nodes before it, if there
    are `others`, have to hand over."""
    given, out = Known.of(run.text), Known.of(run.done.text)
    seen = "\n".join([run.text, *brought(Known.of(run.text + "\n" + run.done.text), run)])
    best, both = ways.ideal(seen), Known.of(seen + "\n" + run.done.text)
    found = {stage: fault(node, run, stage, "wrong", text) for stage, text in wrong(given, both, out, best)}
    up = set[str]()
    for stage in sorted(required, key=STAGES.index):
        if out.has(stage):
            continue
        way = STAGES[: STAGES.index(stage) + 1]
        missing = next((s for s in way if not both.has(s) and not passed(both, s)), None)
        unread = {*best.facts} - {*both.facts}
        if missing in (None, "record") and stage != "plan" and unread:  # what is open may depend on them
            missing = "fact"
        finds = missing == "record" and best.has("plan") and "lookup" in node.tools
        if missing is None:
            found.setdefault(stage, fault(node, run, stage, "withheld", WITHHELD.format(stage)))
        elif best.has(missing) or (missing == "fact" and unread) or finds or not others:
            early = missing == "record" and any(not both.resolved(letter) for letter in both.wants)
            text = f"{LACKING[missing]} {OPEN}" if early else LACKING[missing]
            found.setdefault(missing, fault(node, run, missing, "lacking", text))
        else:
            up |= {missing} | ({"plan"} if not best.has("plan") else set())
    return [f for _, f in sorted(found.items(), key=lambda pair: STAGES.index(pair[0]))], up


def passed(known: Known, stage: str) -> bool:
    """Whether nothing asks for a stage any more, since a later one is there."""
    later = STAGES[STAGES.index(stage) + 1 :]
    return stage not in ("plan",) and any(known.has(s) for s in later)


def fault(node: Node, run: NodeRun, stage: str, how: str, text: str) -> Fault:
    """A fault with what stood in the way."""
    tool, limits, reasons = TOOL_OF.get(stage, ""), run.done.limits, list[str]()
    if how != "withheld":
        if tool and tool not in node.tools and (how, stage) != ("wrong", "record"):
            reasons.append("tool")
        if tool and "calls" in limits:
            reasons.append("calls")
        reasons += [limit for limit in ("cut", "unheeded") if limit in limits]
    told = [text, *(REASONS[r].format(tool) for r in reasons)]
    return Fault(node.name, stage, how, tuple(reasons), " ".join(told))


def wrong(given: Known, both: Known, out: Known, best: Known) -> list[tuple[str, str]]:
    """(stage, what is wrong) of what a node has made, by its own input and what its tools said."""
    found = list[tuple[str, str]]()
    for letter in both.wants:
        rows = both.records.get(letter, [])
        name = both.resolved(letter)
        if not rows or not name:
            continue
        right = [row for row in rows if ways.name_of(row) == name]
        new = letter not in given.records and letter not in given.facts
        taken = out.records.get(letter, [])
        if new and taken and ways.name_of(taken[0]) != name:
            found.append(("record", WRONG["record"]))
        elif letter in out.facts and letter not in given.facts and right:
            fact, what = out.facts[letter], both.wants[letter]
            if fact != fact_in(right[0], what):
                other = any(fact == fact_in(row, what, u, c) for row in rows if row not in right for u, c in KINDS)
                stale = fact == fact_in(right[0], what, True, False)
                found.append(("record", WRONG["record"]) if other else ("fact", CORRECTED if stale else WRONG["fact"]))
    for letter, value in out.values.items():
        if letter not in given.values and letter in both.facts and value != ways.value_of(both.facts[letter], True):
            found.append(("value", WRONG["value"]))
    if out.result and out.result != given.result and both.formula:
        if not both.has("value"):
            found.append(("value", LACKING["value"]))
        elif ways.exactly(ways.expression(both)) != out.result:
            found.append(("result", WRONG["result"]))
    if out.answer and not given.answer and both.formula:
        if both.result and ways.rounded_answer(both) != out.answer:
            found.append(("answer", WRONG["answer"]))
        elif not both.result and best.answer and best.answer != out.answer:  # it kept the result to itself
            found.append(("result", WRONG["result"]) if both.has("value") else ("value", LACKING["value"]))
    return found


KINDS = [(unit, latest) for unit in (True, False) for latest in (True, False)]


def fact_in(record: str, want: tuple[str, str, str], unit: bool = True, latest: bool = True) -> str:
    """The fact that is read in a record."""
    known = Known(wants={"a": want}, records={"a": [record]})
    ways.read(known, unit, latest)
    return known.facts.get("a", "")


def brought(known: Known, run: NodeRun) -> list[str]:
    """The records that a node's tools brought, and the result of its calculator, as lines."""
    found = list[str]()
    for tool, arguments, rows in run.done.calls:
        if tool == "lookup":
            letters = [k for k in known.wants if known.resolved(k) == arguments["name"]]
            found += [f"record {k}: {row}" for k in letters for row in rows.split("\n") if ":" in row]
        elif tool == "calculator" and not rows.startswith("error"):
            found.append(f"result: {rows}")
    return found


WORD = re.compile(r"[a-z]{3,}")
COMMON = frozenset("the and that its for from with has was".split())  # noqa: SIM905
COMMON |= {"there", "all", "which", "who", "than", "any", "are", "been", "have", "not", "other"}


def words(text: str) -> set[str]:
    """Words of a text without endings, common ones left out."""
    found = {w for w in WORD.findall(text.lower()) if w not in COMMON}
    return {re.sub(r"(ed|ing|ion|or|er|es|s|ly|e)$", "", w) for w in found}


def alike(a: str, b: str) -> float:
    """The share of b's words that are in a, too; from 0 to 1."""
    mine, other = words(a), words(b)
    return len(mine & other) / len(other) if other else 0.0
