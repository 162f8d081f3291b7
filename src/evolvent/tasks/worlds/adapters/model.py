"""The model that seeds and sizes stand for: its weights, how likely its answers are, and what it answers greedily.

    W' = W + u sum over (seed, size) of size / sqrt(r) A(seed) B(seed)^T,    A [out, r] and B [in, r] standard normal

for every linear map but the output head; embeddings and norms stay. With the unit u = 1/100 useful sizes are about 1,
as are the numbers that operators put into programs; weights have a spread of 0.1. A list of seeds as the genome of a
network: Such et al., arXiv 1712.06567; noise of a low rank: EGGROLL, arXiv 2511.16652. It needs torch: import it in
functions.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import cache, lru_cache

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from evolvent.core.ledger import Ledger
from evolvent.core.records import Problem, Request
from evolvent.engine.base import Actor, Sampling
from evolvent.engine.local import LocalEngine
from evolvent.engine.perturb import draw, linear_modules
from evolvent.models.load import load_policy
from evolvent.models.lora import Lora, layers
from evolvent.models.policy import Policy
from evolvent.rollout.sample import blank, harvest, opening, turn_ends
from evolvent.tasks.base import distinct
from evolvent.tasks.countdown import Countdown
from evolvent.tasks.worlds.adapters.genome import Genome

MODEL = "tiny"
RANK = 1  # r of every seed; 8 and 32 were no better for held-out problems
UNIT = 0.01  # u
ROLE = "policy"  # the adapter's name in what is exported
ACTOR = "adapted"
ROWS = 100  # in one pass


@cache
def start() -> Policy:
    """The model as it ships, read once. Whoever changes weights takes a copy."""
    return load_policy(MODEL)


@lru_cache(maxsize=8)
def asked(split: str, count: int) -> tuple[Problem, ...]:
    """The first `count` problems of countdown's split, levels in turn. Splits share no key."""
    return tuple(distinct(Countdown(), split, count))  # type: ignore[arg-type]


def factors(genome: Genome, module: str, out: int, inner: int) -> tuple[Tensor, Tensor]:
    """a [out, R] and b [in, R] with W' = W + a b^T, R = r times the number of seeds (at least one)."""
    drawn = [draw(seed, module, out, inner, RANK) for seed, _ in genome]
    a = torch.cat([a * (UNIT * size / RANK**0.5) for (a, _), (_, size) in zip(drawn, genome, strict=True)], 1)
    return a, torch.cat([b for _, b in drawn], 1)


def evolved(genome: Genome) -> Policy:
    """A copy of the model with the changes added to its weights; without any, as it ships."""
    first = start()
    model = copy.deepcopy(first.model)
    with torch.no_grad():
        for name, module in linear_modules(model).items() if genome else ():
            a, b = factors(genome, name, module.out_features, module.in_features)
            module.weight += a @ b.T
    return Policy(model, first.format, first.config, first.name, first.source)


def adapted(genome: Genome) -> Policy:
    """The model as it ships with the changes as a LoRA adapter beside it: B = a, A = b^T, of the rank R and alpha R.

    For files: `Policy.save` merges it, `save_adapter` writes it alone. Without any changes there is no adapter.
    """
    policy = load_policy(MODEL, adapters={ROLE: Lora(RANK * len(genome), RANK * len(genome))} if genome else None)
    with torch.no_grad():
        for name, layer in layers(policy.model).items():
            a, b = factors(genome, name, layer.out_features, layer.in_features)
            layer.lora_B[ROLE].weight.copy_(a)
            layer.lora_A[ROLE].weight.copy_(b.T)
    return policy


def measured(genome: Genome, split: str, count: int, answered: int) -> tuple[float, float]:
    """The mean probability of the known solution over `count` problems of a split, and the share of the first
    `answered` of them that are answered right greedily."""
    policy, problems = evolved(genome), asked(split, count)
    return float(np.exp(likely(policy, problems)).mean()), float(right(policy, problems[:answered]).mean())


def likely(policy: Policy, problems: Sequence[Problem]) -> Float[np.ndarray, " problems"]:
    """Log-probability of each problem's simplest solution and of the end after it, at temperature 1."""
    task, format, found = Countdown(), policy.format, np.zeros(len(problems))
    rows: list[tuple[list[int], int]] = []  # tokens, and where the answer begins
    for problem in problems:
        prompt = opening(format, Request(problem, 1), task)[0].tolist()
        answer = format.encode("".join(piece.text for piece in task.gold(problem) or ()))
        rows.append(([*prompt, *answer, min(format.ends)], len(prompt)))
    order = sorted(range(len(rows)), key=lambda i: len(rows[i][0]))  # like lengths together: little padding
    for first in range(0, len(order), ROWS):
        part = order[first : first + ROWS]
        found[part] = forced(policy, [rows[i] for i in part])
    return found


def forced(policy: Policy, rows: Sequence[tuple[list[int], int]]) -> Float[np.ndarray, " rows"]:
    """Log-probability of the tokens of each row from a place on, in one pass."""
    tokens = torch.zeros(len(rows), max(len(row) for row, _ in rows), dtype=torch.long)
    select = torch.zeros(tokens.shape, dtype=torch.bool)
    for i, (row, start) in enumerate(rows):
        tokens[i, : len(row)] = torch.tensor(row)
        select[i, start : len(row)] = True
    with torch.inference_mode():
        each = policy.logits(tokens, select).log_softmax(-1).gather(1, tokens[select][:, None])[:, 0].double()
        return torch.stack([part.sum() for part in each.split([len(row) - at for row, at in rows])]).numpy()


def right(policy: Policy, problems: Sequence[Problem]) -> Bool[np.ndarray, " problems"]:
    """Which problems the greedy answer solves, whatever solution it is."""
    task, format = Countdown(), policy.format
    stubs = [blank(i, p, opening(format, Request(p, 1), task)[0], ACTOR) for i, p in enumerate(problems)]
    actors, greedy = {ACTOR: Actor(ACTOR, 0)}, Sampling(temperature=0.0, ends=turn_ends(task, format))
    tree = LocalEngine(policy, Ledger()).start(stubs, actors, greedy, [task.max_tokens] * len(stubs))
    while tree.live:
        tree.advance(None)
    answers = [harvest(b, stubs[b.root], format, actors, 0.0).completion for b in tree.branches]
    return np.array([task.score(p, answer).outcome == 1 for p, answer in zip(problems, answers, strict=True)])
