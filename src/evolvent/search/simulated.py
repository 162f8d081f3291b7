"""A search on a landscape without its texts, for studies of rules at scale: SIMULATED.

The same rules, the same decisions of the simulated model and the same random streams as a run of
`--task program:landscape --model simulated --set rollout=evolvent.search.write:Write --set propose.children=1`, so that
candidate after candidate is the same; only that nothing is written, sent, read and parsed in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from jaxtyping import Int

from evolvent.core.ledger import Ledger
from evolvent.core.random import identifiers, stream
from evolvent.core.role import Role
from evolvent.core.step import Step
from evolvent.engine.simulated_prompt import WEAKEST, Prompt
from evolvent.engine.simulated_writer import Habits, SimulatedWriter
from evolvent.engine.text import FixedPolicy, TextFormat
from evolvent.search.admission import Admission, keep_all
from evolvent.search.archive import Archive
from evolvent.search.candidate import PROGRAM, Candidate
from evolvent.search.context import ContextRule, alone
from evolvent.search.parents import ParentRule
from evolvent.search.write import Write
from evolvent.tasks.evaluation import Evaluation, invalid
from evolvent.tasks.worlds.landscape import Landscape

WANTED = {"diff": "diff", "rewrite": "program", "cross": "crossing"}
MESSAGES = 3  # of a conversation: the prompt, the goal, and the turn that the model has open
TURN = "write"  # what its random streams are named after
KEPT = ("unusable", "lazy")  # replies that are asked for again


def simulate(
    landscape: Landscape,
    habits: Habits,
    rule: ParentRule,
    evaluations: int,
    seed: int = 0,
    context: ContextRule = alone,
    admit: Admission = keep_all,
    kinds: Mapping[str, float] | None = None,
) -> Archive:
    """The archive after so many evaluations, the seed program's included. One child a step.

    `kinds` are those of `Write`. Advice has no place here: prompts without texts hold none.
    """
    ledger = Ledger()
    writer = SimulatedWriter(landscape, habits, ledger)
    role = Role("", landscape, FixedPolicy("simulated", TextFormat()), writer, ledger, seed)  # type: ignore[arg-type]
    write = Write() if kinds is None else Write(kinds=kinds)
    archive, made = Archive(admit), [landscape.terrain.first]
    keep(archive, landscape, landscape.terrain.first, landscape.verdict(landscape.terrain.first), (), "seed", 0)
    spent, t = 1, 0
    while spent < evaluations:
        t += 1
        s = Step(t, role)
        pool, rng = archive.pool(), s.rng("parent", 0)
        parent = rule(pool, rng)
        parents = [parent, *context(parent, pool, rng)]
        kind = write._kind(parents, s.rng("kind", 0, 0))
        prompt = shown(landscape, WANTED[kind], parents, [made[c.uid] for c in parents])
        for attempt in range(write.attempts):
            path = s.child(role, [], f"write-0-{attempt}").path
            uid = identifiers(1, seed, *path, 0, 0)[0]
            fate, changes = writer.decide(replace(prompt, failed=attempt > 0), stream(uid, TURN, MESSAGES))
            if fate not in KEPT:
                break
        choices = made[parent.uid]
        if fate == "sound":
            choices = choices.copy()
            for part, option in changes.items():
                choices[landscape.places[part]] = landscape.options.index(option)
            verdict = landscape.verdict(choices)
        else:
            verdict = invalid(fate, "unusable" if fate in KEPT else "invalid")
        spent += fate not in KEPT
        made.append(choices)
        keep(archive, landscape, choices, verdict, tuple(c.uid for c in parents), kind, t)
    return archive


def shown(
    landscape: Landscape, wanted: str, parents: list[Candidate], made: list[Int[np.ndarray, " choices"]]
) -> Prompt:
    """What the model would have read of these candidates."""
    programs = tuple(
        {name: landscape.options[choices[landscape.places[name]]] for name in landscape.lines} for choices in made
    )
    named = WEAKEST.search(parents[0].evaluation.feedback)
    return Prompt(
        wanted, tuple(landscape.lines), landscape.options, "", programs, tuple(c.value for c in parents), (),
        frozenset(), named[1] if named else None, False,
    )  # fmt: skip


def keep(
    archive: Archive,
    landscape: Landscape,
    choices: Int[np.ndarray, " choices"],
    verdict: Evaluation,
    parents: tuple[int, ...],
    kind: str,
    step: int,
) -> None:
    """As `Archive` keeps what a step has evaluated; a candidate that is not valid has no program here."""
    text = landscape.text(choices) if verdict.value is not None else ""
    made = Candidate(len(archive.history), {PROGRAM: text}, verdict, parents, kind, step)
    archive.history.append(made)
    archive.children.update(parents[:1])
    archive.members = archive.admit(made, archive.members)
