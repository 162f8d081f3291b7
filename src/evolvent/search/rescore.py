"""What the best of a search is worth, evaluated anew: who is best in a search was perhaps only lucky there.

The `TOP` best are evaluated anew: on the gate split where the world has instances, else once more as in the search, by
stages if it had some. The
one that does best there is the winner, and the winner alone is then evaluated for the figure that counts: on the test
split, or else once more anew, since the best of several is lucky again. Where nothing varies, a value that is
reproduced is that figure. The search sees nothing of this.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from typing import Any

from evolvent.core.role import Role, find_field
from evolvent.search.archive import archive_of
from evolvent.search.candidate import Candidate, ranked
from evolvent.search.final import highest
from evolvent.search.loop import programs_of
from evolvent.search.magnitude import mean
from evolvent.search.normal import tree_hash
from evolvent.search.stages import everybody
from evolvent.tasks.evaluation import Evaluation, pooled
from evolvent.tasks.program import ProgramTask

TOP = 5  # candidates that are evaluated anew
REPEATS = 5  # evaluations of each of them, where the first two differ
SAME = 1e-12  # relative difference of values that are the same: sums may run in another order

Values = list[float | None]  # of the evaluations of one program; None: it was not valid


def form_of(candidate: Candidate) -> str:
    """Hash of the normal form; of what is no Python, the text itself."""
    try:
        return tree_hash(candidate.text)
    except SyntaxError:
        return candidate.text


def finalists(history: Iterable[Candidate], top: int = TOP) -> list[Candidate]:
    """The best valid candidates that were evaluated wholly, the best first, no two of the same normal form.

    Where nobody got through all stages, of those that have a value: a threshold that is too high loses no program.
    """
    alive = [c for c in history if c.valid]
    found: dict[str, Candidate] = {}
    for c in ranked([c for c in alive if c.evaluation.complete] or alive):
        if len(found) == top:
            break
        found.setdefault(form_of(c), c)
    return list(found.values())


def believe(role: Role, history: Iterable[Candidate], top: int = TOP, repeats: int = REPEATS) -> dict[str, Any] | None:
    """The best of a history evaluated anew, charged to the account `evidence`; None if nobody is valid.

    A search with a rule of its own for the best (`keep.final`) has one finalist.
    """
    rule, task = archive_of(role).final, programs_of(role)
    only = None if rule is highest else rule(list(history))
    best = finalists(history, top) if only is None else [only]
    if not best:
        return None
    before = task.cpu_seconds + time.process_time()
    with role.ledger.account("evidence"):  # a model may answer while it is evaluated
        found = rescore(task, best, repeats, plan_of(role, task))
        seconds = task.cpu_seconds + time.process_time() - before
        role.ledger.charge(verifier_calls=found["evaluations"], verifier_seconds=seconds)
    return found


def plan_of(role: Role, task: ProgramTask) -> Sequence[Sequence[str]]:
    """The stages that a search's own evaluations go through, whose numbers together are the value; none if it has none,
    or if they are groups of instances."""
    staged = find_field(role.slots["judge"], "promote") not in (None, everybody)
    return task.world.stages if staged and not task.instances("train") else ()


def rescore(
    task: ProgramTask, best: Sequence[Candidate], repeats: int = REPEATS, plan: Sequence[Sequence[str]] = ()
) -> dict[str, Any]:
    """Evaluate candidates anew, the best first, by the stages of the `plan` if there are any; plain data.

    winner, value   the uid, and the mean of `values`; None where nobody is valid any more
    found           the winner's value in the search
    values, failed  of the winner's last evaluations: those that were valid, and how many were not
    split           where they come from: `test`, or `train` where the world has no test split
    choice          what the winner was chosen on: `gate`, or `train`, evaluated anew
    same            whether every value was reproduced; then there are as few evaluations as show that
    top             of each candidate uid, value in the search and values on the split of the choice
    evaluations     how many that took, one for each instance
    """
    gate, test, train = (task.instances(split) for split in ("gate", "test", "train"))
    known: list[Values] = [[c.value] if c.evaluation.complete and not gate else [] for c in best]
    fresh, same = anew(task, [c.text for c in best], plan or [gate or train], repeats, known)
    data: dict[str, Any] = {
        "winner": None, "value": None, "found": None, "values": [], "failed": 0,
        "split": "test" if test else "train", "choice": "gate" if gate else "train", "same": same,
        "evaluations": sum(map(len, fresh)) * max(1, len(gate or train)),
        "top": [{"uid": c.uid, "value": c.value, "values": v} for c, v in zip(best, fresh, strict=True)],
    }  # fmt: skip
    alive = [i for i, values in enumerate(fresh) if any(v is not None for v in values)]
    if not alive:
        return data
    place = max(alive, key=lambda i: (-fresh[i].count(None), mean(valid(fresh[i])), -i))
    winner, values = best[place], fresh[place]
    if gate or test or not same:
        [values], last = anew(task, [winner.text], plan or [test or train], repeats, [[]], every=not same)
        data["evaluations"] += len(values) * max(1, len(test or train))
        data["same"] = same and last
    good = valid(values)
    data |= {"winner": winner.uid, "found": winner.value, "values": good, "failed": len(values) - len(good)}
    data["value"] = mean(good) if good else None
    return data


def anew(
    task: ProgramTask,
    programs: Sequence[str],
    plan: Sequence[Sequence[str]],
    repeats: int,
    known: Sequence[Values],
    every: bool = False,
) -> tuple[list[Values], bool]:
    """New values of each program, and whether all are the same as the first, those known included.

    Two values that agree are enough; where anybody's differ, or with `every`, all are evaluated `repeats` times.
    """
    values: list[Values] = [[] for _ in programs]
    same = True
    while programs and len(values[0]) < repeats:
        for mine, value in zip(values, evaluated(task, programs, plan), strict=True):
            mine.append(value)
        seen = [[*old, *new] for old, new in zip(known, values, strict=True)]
        same = all(alike(row[0], value) for row in seen for value in row)
        if same and len(seen[0]) > 1 and not every:
            break
    return values, same


def evaluated(task: ProgramTask, programs: Sequence[str], plan: Sequence[Sequence[str]]) -> Values:
    """One new value of each program, of all stages of the plan together."""
    found: list[Evaluation | None] = [None] * len(programs)
    for names in plan:
        made = task.evaluate(programs, [names] * len(programs))
        found = [pooled(earlier, later) for earlier, later in zip(found, made, strict=True)]
    return [evaluation.value if evaluation else None for evaluation in found]


def valid(values: Values) -> list[float]:
    """Without those that were not valid."""
    return [v for v in values if v is not None]


def alike(a: float | None, b: float | None) -> bool:
    """The same value, or both without one."""
    if a is None or b is None:
        return a is b
    return math.isclose(a, b, rel_tol=SAME, abs_tol=SAME * SAME)
