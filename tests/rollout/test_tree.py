"""The controller of trees: who is looked at and when, what goes with it, which fork comes first, when it is over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from tests.toys import random_policy, role_of, stub

from evolvent.core.step import Step
from evolvent.engine.base import Actor, Branch, Sampling, Tree
from evolvent.rollout.tree import Lookahead

POLICY = random_policy(layers=1)
LIMIT = 20  # tokens that an answer may have


def never(p: np.ndarray) -> np.ndarray:
    """Nothing opens a branch."""
    return np.zeros(len(p), bool)


def all_others(p: np.ndarray) -> np.ndarray:
    """Whatever is not the top token opens one."""
    return np.arange(len(p)) > 0


@dataclass
class Grown:
    """Trees of the real engine, one token a round. Nothing ends an answer but its limit."""

    part: Lookahead
    tree: Tree
    step: Step

    def rounds(self, count: int) -> None:
        """A token for every branch, then the controller."""
        for _ in range(count):
            self.tree.advance(1)
            self.part.between(self.tree, self.step)

    def fork(self, branch: Branch, token: int) -> Branch:
        """A branch that has another token than its parent's last; the engine writes it with the next one."""
        return self.tree.fork(branch, at=len(branch.tokens) - 1, token=token)

    @property
    def left(self) -> bool:
        """Whether what was under way has been left to sampling."""
        return any(b.stop == "left" for b in self.tree.branches)


def grow(widths: list[int], alternatives: int = 2, **options: Any) -> Grown:
    """A tree for each width; it stays as it is unless the options say otherwise."""
    stay: dict[str, Any] = {"looks": (3, 5), "most": 99, "full": 9.0, "decay": 0.0}
    keep: Callable[[list[int], list[int]], bool] = lambda own, parent: False  # noqa: E731
    part = Lookahead(share=lambda t: 1.0, **{"branch": never, "prune": keep, **stay, **options})
    part.max_tokens = LIMIT
    part.width, part.age, part.forks, part.pruned = widths, 0, 0, 0
    role = role_of(POLICY, slots={"rollout": part})
    stubs = [stub(i, [1, 40 + i, 50]) for i in range(len(widths))]
    how = Sampling(temperature=0, alternatives=alternatives)
    tree = role.engine.start(stubs, {"policy": Actor("policy", 0)}, how, [LIMIT] * len(stubs))
    return Grown(part, tree, Step(0, role))


# --- pruning -------------------------------------------------------------------------------------------------------


def test_a_branch_is_looked_at_only_at_the_lengths_of_looks() -> None:
    """It would be dropped at any length; its lengths are 2, 4, 5 and so on when the controller comes by."""
    seen: list[int] = []

    def prune(own: list[int], parent: list[int]) -> bool:
        assert len(own) == len(parent)  # as many tokens of the parent's
        seen.append(len(own))
        return len(own) != 3

    grown = grow([9], prune=prune)
    grown.rounds(1)
    branch = grown.fork(grown.tree.branches[0], 60)
    kept = []
    for _ in range(4):
        grown.rounds(1)
        kept.append((len(branch.tokens) - 3, branch.stop))
    assert kept == [(2, ""), (3, ""), (4, ""), (5, "pruned")]
    assert seen == [3, 5]


def test_descendants_go_with_a_branch_that_is_dropped() -> None:
    """Only the first branch is looked at, at four tokens; its sibling and their descendants are shorter."""
    grown = grow([9], prune=lambda own, parent: True, looks=(4,))
    root = grown.tree.branches[0]
    grown.rounds(1)
    child = grown.fork(root, 60)
    grown.rounds(1)
    sibling, grandchild = grown.fork(root, 61), grown.fork(child, 62)
    grown.rounds(1)
    last, nephew = grown.fork(grandchild, 63), grown.fork(sibling, 64)
    grown.rounds(1)
    assert [b.stop for b in (child, grandchild, last)] == ["pruned"] * 3
    assert [b.stop for b in (root, sibling, nephew)] == [""] * 3
    assert grown.part.pruned == 3


# --- the order of forks --------------------------------------------------------------------------------------------


def likeliest(branch: Branch, at: int) -> list[tuple[float, int]]:
    """(probability, token) of what may stand at a place of a branch, likeliest first, by one forward pass."""
    with torch.no_grad():
        text = torch.from_numpy(branch.tokens[None, :at].astype(np.int64))
        p = torch.softmax(POLICY.model.head(POLICY.model(text))[0, -1], -1).numpy()
    return [(float(p[i]), int(i)) for i in np.argsort(-p)]


def test_the_likelier_token_opens_the_branch_that_there_is_room_for() -> None:
    grown = grow([2], alternatives=4, branch=all_others)
    grown.rounds(1)
    grown.tree.advance(1)
    root, fork = grown.tree.branches
    (_, first), (_, second), *_ = likeliest(root, 3)
    assert (root.tokens[3], fork.tokens[3]) == (first, second)


def test_the_likeliest_of_all_branches_of_a_tree_opens_first() -> None:
    """Seven branches, each with one alternative, and room for two more."""
    grown = grow([9], branch=all_others)
    grown.tree.advance(1)
    for token in (60, 61, 62, 63, 64, 65):
        grown.fork(grown.tree.branches[0], token)
    grown.part.age = 1
    grown.rounds(1)
    grown.tree.advance(1)
    seven, made = grown.tree.branches[:7], grown.tree.branches[7:]
    wanted = sorted(((*likeliest(b, 4)[1], b.uid) for b in seven), reverse=True)
    assert [(b.parent, b.tokens[4]) for b in made] == [(uid, token) for _, token, uid in wanted[:2]]


# --- when the trees are left ---------------------------------------------------------------------------------------


def looked_at(widths: list[int], branches: int, **options: Any) -> Grown:
    """Trees whose roots have `branches` of their own in all, each two tokens old and, with `looks` of 1, looked at."""
    grown = grow(widths, looks=(1,), **options)
    grown.tree.advance(1)
    grown.part.age = 1
    for i in range(branches):
        grown.fork(grown.tree.branches[i % len(widths)], 60 + i)
    return grown


@pytest.mark.parametrize(
    ("full", "have", "left"),
    [(0.98, 10, True), (0.98, 9, False), (0.94, 9, True), (0.94, 8, False), (0.5, 5, True), (0.5, 4, False)],
)
def test_trees_are_left_with_a_share_of_their_branches(full: float, have: int, left: bool) -> None:
    """Of 10 branches, over two trees: 9.8 and 9.4 are rounded."""
    grown = looked_at([5, 5], have - 2, full=full)
    grown.rounds(1)
    assert grown.left is left
    if left:
        assert not grown.tree.live


@pytest.mark.parametrize(("decay", "age"), [(0.0, None), (1.0, 12), (2.0, 6), (4.0, 3)])
def test_the_share_that_is_needed_falls_with_every_token(decay: float, age: int | None) -> None:
    """6 of 15 branches: enough once 15 (1 - decay age / 20) rounds to 6, that is at 0.6 = decay age / 20."""
    grown = looked_at([15], 5, full=1.0, decay=decay)
    ages = []
    while grown.tree.live:
        grown.rounds(1)
        if grown.left:
            ages.append(grown.part.age)
    assert ages[:1] == ([] if age is None else [age])


def test_complete_trees_wait_for_the_looks_to_come() -> None:
    """The branch is looked at when it has three and five tokens."""
    grown = grow([2], full=1.0)
    grown.rounds(1)
    branch = grown.fork(grown.tree.branches[0], 60)
    left = {}
    for _ in range(5):
        grown.rounds(1)
        left[len(branch.tokens) - 3] = grown.left
    assert left == {2: False, 3: False, 4: False, 5: True}


def test_a_tree_of_one_branch_waits_for_no_look() -> None:
    """A root is looked at by nobody."""
    grown = grow([1], full=1.0)
    grown.rounds(1)
    assert grown.left


def test_branches_that_are_over_are_not_waited_for() -> None:
    """The branch is over before it is looked at; its root has passed all looks."""
    grown = grow([2], full=1.0)
    grown.rounds(5)
    branch = grown.fork(grown.tree.branches[0], 60)
    grown.rounds(1)
    assert not grown.left
    grown.tree.stop(branch, "end")
    grown.rounds(1)
    assert grown.left


def test_trees_that_are_not_complete_are_left_after_the_most_tokens() -> None:
    grown = grow([8], most=4)
    grown.rounds(3)
    assert not grown.left
    grown.rounds(1)
    assert grown.left
