"""The tree for engines that see tokens: who is live, what was sampled, when a branch ends.

The model behind it is a `Runner`, which keeps one cache row for each live branch, in the same order.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from evolvent.core.errors import UserError
from evolvent.core.ledger import Ledger
from evolvent.core.records import Segment, Trajectory
from evolvent.engine.base import Branch, Sampling
from evolvent.engine.noise import pick, uniform
from evolvent.engine.rules import Stem, ending, fork_stub


class Runner(Protocol):
    """A model with a cache of rows. Rows are addressed by their place; all logits are float32 [rows, vocabulary]."""

    context: int  # the most tokens that a row can hold

    @property
    def hidden(self) -> Tensor:
        """What the logits that came last were computed from, [rows, width]; read only where states are asked for."""
        ...

    def prefill(self, prefixes: Sequence[np.ndarray], actors: Sequence[str], rows: np.ndarray) -> Tensor:
        """Fill the cache from nothing: row i continues `prefixes[rows[i]]`. Next-token logits of every row."""
        ...

    def step(self, tokens: np.ndarray, positions: np.ndarray) -> Tensor:
        """Feed one token to every row at its position."""
        ...

    def extend(self, rows: Sequence[int], chunks: Sequence[np.ndarray], starts: Sequence[int]) -> Tensor:
        """Feed several tokens to some rows, each from its own start (what the cache held beyond is forgotten)."""
        ...

    def keep(self, rows: np.ndarray) -> None:
        """Drop all rows but these, in this order."""
        ...

    def add(self, like: int | None, actor: str) -> None:
        """One more row at the end for an actor: a copy of row `like`, or an empty one."""
        ...


class TokenBranch(Stem):
    """A branch in a `TokenTree`, which has to outlive it."""

    def __init__(self, tree: TokenTree, index: int, stub: Trajectory, root: int | None = None) -> None:
        super().__init__(index, stub, root)
        self._tree = weakref.ref(tree)  # no cycle: caches go with the tree, not at some later garbage collection

    @property
    def tree(self) -> TokenTree:
        """The tree that it belongs to."""
        found = self._tree()
        if found is None:
            raise RuntimeError("the tree of this branch is gone; hold on to the tree as long as its branches are read")
        return found

    @property
    def stop(self) -> str:
        """Why it left `live`, or an empty string."""
        return self.tree.reasons[self.index]

    @property
    def length(self) -> int:
        """Tokens so far, the prefix included."""
        return int(self.tree.length[self.index])

    @property
    def tokens(self) -> np.ndarray:
        """int32 [length]."""
        return self.tree.tokens[self.index, : self.length]

    @property
    def mask(self) -> np.ndarray:
        """bool [length], True where the policy wrote."""
        return self.tree.mask[self.index, : self.length]

    @property
    def logprob(self) -> np.ndarray:
        """float32 [length]."""
        return self.tree.logprob[self.index, : self.length]

    @property
    def entropy(self) -> np.ndarray | None:
        """float32 [length], if the tree was asked for it."""
        return None if self.tree.entropy is None else self.tree.entropy[self.index, : self.length]

    @property
    def alternatives(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Token ids int32 and log-probs float32, each [length, k], if the tree was asked for them."""
        if self.tree.alternatives is None:
            return None
        ids, logprobs = self.tree.alternatives
        return ids[self.index, : self.length], logprobs[self.index, : self.length]

    @property
    def hidden(self) -> np.ndarray | None:
        """float32 [width], if the tree was asked for it and the branch is live: what the next token is drawn from."""
        return self.tree.hidden(self.index)


class TokenTree:
    """Branches over one runner. See `engine.base.Tree` for what each method means.

    Every cache row belongs to a branch (`_owner`). A row whose branch has stopped is fed along until enough of them
    can be dropped at once; in a tree with `hold`, branches that ended a turn keep their row until `stop` is called.
    """

    def __init__(
        self,
        runner: Runner,
        ledger: Ledger,
        stubs: Sequence[Trajectory],
        sampling: Sampling,
        limits: Sequence[int],
    ) -> None:
        self.runner, self.ledger, self.sampling = runner, ledger, sampling
        longest = max(len(stub.tokens) for stub in stubs)
        if longest >= runner.context:
            raise UserError(
                f"a prompt of {longest} tokens leaves no room in the model's context of {runner.context}; "
                "shorten the prompt or use a model with a longer context"
            )
        count = len(stubs)
        capacity = min(runner.context, longest + min(max(limits), 256) + 1)
        self.tokens = np.zeros((count, capacity), np.int32)
        self.mask = np.zeros((count, capacity), bool)
        self.logprob = np.zeros((count, capacity), np.float32)
        self.entropy = np.zeros((count, capacity), np.float32) if sampling.entropy else None
        self.alternatives: tuple[np.ndarray, np.ndarray] | None = None
        if sampling.alternatives:
            shape = (count, capacity, sampling.alternatives)
            self.alternatives = np.zeros(shape, np.int32), np.zeros(shape, np.float32)
        self.length = np.zeros(count, np.int64)
        self.sampled = np.zeros(count, np.int64)  # tokens that the policy wrote
        self.uids = np.array([stub.uid for stub in stubs], np.int64)
        self.limits = np.asarray(limits, np.int64)
        self.over = np.zeros(count, bool)
        self.held = np.zeros(count, bool)  # over, but perhaps to be continued
        self.reasons = [""] * count
        self._branches: list[TokenBranch] = []
        self._ends = np.fromiter(sampling.ends, np.int64)
        for i, stub in enumerate(stubs):
            size = len(stub.tokens)
            self.tokens[i, :size], self.mask[i, :size], self.logprob[i, :size] = (
                stub.tokens,
                stub.mask,
                stub.logprob,
            )
            if self.entropy is not None and stub.entropy is not None:
                self.entropy[i, :size] = stub.entropy
            if self.alternatives is not None and stub.alternatives is not None:
                for mine, theirs in zip(self.alternatives, stub.alternatives, strict=True):
                    mine[i, :size] = theirs
            self.length[i], self.sampled[i] = size, int(stub.mask.sum())
            self._branches.append(TokenBranch(self, i, stub))
        self._prefill()
        for index in np.flatnonzero(self.sampled >= self.limits).tolist():
            self._end(index, "length")

    def _prefill(self) -> None:
        """One prefill for each distinct prefix of each actor."""
        prefixes: dict[tuple[bytes, str], int] = {}
        first: list[TokenBranch] = []
        rows = np.zeros(len(self._branches), np.int64)
        for i, branch in enumerate(self._branches):
            key = (branch.tokens.tobytes(), branch.actor)
            if key not in prefixes:
                prefixes[key] = len(first)
                first.append(branch)
            rows[i] = prefixes[key]
        self.ledger.charge(prefilled=sum(b.length for b in first))
        self._logits = self.runner.prefill([b.tokens for b in first], [b.actor for b in first], rows)
        self._hidden = self._states()
        self._owner = np.arange(len(self._branches))  # branch of each cache row
        self._row = {i: i for i in range(len(self._branches))}  # cache row of each branch that has one
        self._stale: dict[int, int] = {}  # branches whose row holds only their first so many tokens
        self._forced: dict[int, int] = {}  # branches that go on with a given token

    @property
    def branches(self) -> list[TokenBranch]:
        """All branches, in the order in which they began."""
        return self._branches

    @property
    def live(self) -> list[TokenBranch]:
        """Branches that the next `advance` samples for."""
        return [self._branches[i] for i in np.flatnonzero(~self.over)]

    @torch.inference_mode()
    def advance(self, k: int | None = None) -> None:
        """Sample up to `k` tokens for every live branch; a branch leaves when its turn ends or its limit is reached."""
        done = 0
        while k is None or done < k:
            self._refresh()
            rows = np.flatnonzero(~self.over[self._owner])
            if not len(rows):
                return
            self._sample(rows)
            done += 1
            if not self.over[self._owner].all():
                self._compact()
                last = self.length[self._owner] - 1
                self._logits = self.runner.step(self.tokens[self._owner, last], last)
                self._hidden = self._states()

    def _refresh(self) -> None:
        """Feed what the cache lacks of live branches, forced tokens included."""
        while self._stale:
            late = [(i, at) for i, at in self._stale.items() if not self.over[i]]
            self._stale.clear()
            if not late:
                return
            rows = [self._row[i] for i, _ in late]
            chunks = [self.tokens[i, at : self.length[i]] for i, at in late]
            self.ledger.charge(prefilled=sum(len(c) for c in chunks))
            places = torch.as_tensor(rows, device=self._logits.device)
            self._logits[places] = self.runner.extend(rows, chunks, [at for _, at in late])
            states = self._states()
            if self._hidden is not None and states is not None:
                self._hidden[places] = states
            for index in [i for i, _ in late if i in self._forced]:
                token = self._forced.pop(index)
                at = int(self.length[index])
                if at >= self.tokens.shape[1]:
                    self._grow()
                logprob = torch.log_softmax(self._scaled(self._logits[self._row[index]]), -1)
                self.tokens[index, at], self.mask[index, at], self.logprob[index, at] = (
                    token,
                    True,
                    logprob[token],
                )
                self.length[index] += 1
                self.sampled[index] += 1
                self._stale[index] = at
                full = self.sampled[index] >= self.limits[index] or self.length[index] >= self.runner.context
                if why := ending(token, self.sampling.ends, full):
                    self._end(index, why)

    def _states(self) -> Tensor | None:
        """What the runner's last logits were computed from, [rows, width], if the tree was asked for it."""
        return self.runner.hidden if self.sampling.hidden else None

    def _compact(self) -> None:
        """Drop the rows of finished branches once they are an eighth of all."""
        done = (self.over & ~self.held)[self._owner]
        if done.sum() * 8 >= len(done):
            rows = np.flatnonzero(~done)
            self.runner.keep(rows)
            self._owner = self._owner[rows]
            self._row = {int(b): r for r, b in enumerate(self._owner)}

    def _scaled(self, logits: Tensor) -> Tensor:
        temperature = self.sampling.temperature
        return logits if temperature in (0, 1) else logits / temperature

    def _sample(self, rows: np.ndarray) -> None:
        """Draw one token for the branches of these cache rows."""
        live, how = self._owner[rows], self.sampling
        logits = self._logits if len(rows) == len(self._owner) else self._logits[torch.from_numpy(rows)]
        at = self.length[live]
        if int(at.max()) >= self.tokens.shape[1]:
            self._grow()
        logprob = torch.log_softmax(self._scaled(logits), -1)
        chosen = self._draw(logprob, live)
        token = chosen.cpu().numpy()
        self.tokens[live, at] = token
        self.mask[live, at] = True
        self.logprob[live, at] = logprob.gather(1, chosen[:, None])[:, 0].cpu().numpy()
        if self.entropy is not None:
            self.entropy[live, at] = -(logprob.exp() * logprob).nan_to_num().sum(-1).cpu().numpy()
        if self.alternatives is not None:
            values, ids = logprob.topk(how.alternatives, -1)
            self.alternatives[0][live, at], self.alternatives[1][live, at] = (
                ids.cpu().numpy(),
                values.cpu().numpy(),
            )
        self.length[live] += 1
        self.sampled[live] += 1
        self.ledger.charge(sampled=len(live), decode_steps=1)
        ended = np.isin(token, self._ends)
        full = (self.sampled[live] >= self.limits[live]) | (self.length[live] >= self.runner.context)
        for row in np.flatnonzero(ended | full):
            self._end(int(live[row]), ending(int(token[row]), how.ends, True))

    def _draw(self, logprob: Tensor, live: np.ndarray) -> Tensor:
        """The next token of these branches, int64, from their distributions [live, vocabulary]."""
        how = self.sampling
        if how.temperature == 0:
            return logprob.argmax(-1)
        noise = uniform(self.uids[live], self.length[live])
        return pick(truncate(logprob, how.top_k, how.top_p).exp(), noise)

    def _grow(self) -> None:
        """More room for tokens in every array."""
        extra = max(16, self.tokens.shape[1] // 2)

        def wider(array: np.ndarray) -> np.ndarray:
            return np.pad(array, [(0, 0), (0, extra)] + [(0, 0)] * (array.ndim - 2))

        self._arrays(wider)

    def _arrays(self, change: Callable[[np.ndarray], np.ndarray]) -> None:
        self.tokens, self.mask, self.logprob = change(self.tokens), change(self.mask), change(self.logprob)
        if self.entropy is not None:
            self.entropy = change(self.entropy)
        if self.alternatives is not None:
            self.alternatives = change(self.alternatives[0]), change(self.alternatives[1])

    def _end(self, index: int, why: str) -> None:
        self.reasons[index], self.over[index] = why, True
        self.held[index] = self.sampling.hold and why == "end"

    def stop(self, branch: Branch, why: str) -> None:
        """End a branch for good, or rename the reason of one that has ended."""
        self._end(branch.index, why)
        self.held[branch.index] = False

    def append(self, branch: Branch, tokens: Sequence[int], kind: str = "tool") -> None:
        """Add tokens that the policy did not write; the branch is live again unless a limit is reached."""
        own = self._branches[branch.index]
        index, size = branch.index, int(self.length[branch.index])
        if size + len(tokens) >= self.runner.context or self.sampled[index] >= self.limits[index]:
            self.stop(branch, "length")
            return
        while size + len(tokens) >= self.tokens.shape[1]:
            self._grow()
        self.tokens[index, size : size + len(tokens)] = tokens
        self.length[index] += len(tokens)
        if len(tokens):
            own.added.append(Segment(kind, size, size + len(tokens)))
        self._revive(own, size - 1)

    def _revive(self, branch: TokenBranch, cached: int, like: int | None = None) -> None:
        """Make a branch live. Its row (a new one like row `like`, if it has none) holds its first `cached` tokens."""
        index = branch.index
        self.reasons[index], self.over[index], self.held[index] = "", False, False
        if index not in self._row:
            self.runner.add(like, branch.actor)
            self._row[index] = len(self._owner)
            self._owner = np.append(self._owner, index)
            self._logits = torch.cat([self._logits, self._logits.new_zeros(1, self._logits.shape[1])])
            if self._hidden is not None:
                self._hidden = torch.cat([self._hidden, self._hidden.new_zeros(1, self._hidden.shape[1])])
            cached = cached if like is not None else 0
        self._stale[index] = min(cached, self._stale.get(index, cached))

    @torch.inference_mode()
    def hidden(self, index: int) -> np.ndarray | None:
        """See `TokenBranch.hidden`."""
        if self._hidden is None or self.over[index]:
            return None
        self._refresh()
        return None if self.over[index] else self._hidden[self._row[index]].float().cpu().numpy()

    def fork(
        self, branch: Branch, uid: int | None = None, at: int | None = None, token: int | None = None
    ) -> TokenBranch:
        """A new live branch that shares the first `at` tokens with another and may be forced to go on with `token`.

        The forced token is written, with its log-prob, when the branch advances.
        """
        parent, index = self._branches[branch.index], len(self._branches)
        stub = fork_stub(parent, at, uid, token, index)
        source, size = parent.index, len(stub.tokens)
        self._arrays(lambda array: np.concatenate([array, array[source : source + 1]]))
        self.mask[index, size:] = False
        self.logprob[index, size:] = 0
        self.length = np.append(self.length, size)
        self.sampled = np.append(self.sampled, self.mask[index, :size].sum())
        self.uids, self.limits = np.append(self.uids, stub.uid), np.append(self.limits, self.limits[source])
        self.over, self.held = np.append(self.over, False), np.append(self.held, False)
        self.reasons.append("")
        new = TokenBranch(self, index, stub, parent.root)
        self._branches.append(new)
        cached = min(size - 1, self._stale.get(source, size - 1))
        self._revive(new, cached, self._row.get(source))
        if token is not None:
            self._forced[index] = token  # whether it ends the branch is seen when it is written
        elif why := ending(None, self.sampling.ends, self.sampled[index] >= self.limits[index]):
            self._end(index, why)
        return new


def truncate(logprob: Tensor, top_k: int, top_p: float) -> Tensor:
    """Log-probs with everything outside the top k, and outside the nucleus of mass `top_p`, at minus infinity."""
    if top_k and top_k < logprob.shape[-1]:
        logprob = logprob.masked_fill(logprob < logprob.topk(top_k, -1).values[:, -1:], -torch.inf)
    if top_p < 1:
        values, order = logprob.sort(-1, descending=True)
        before = values.exp().cumsum(-1) - values.exp()
        keep = torch.zeros_like(logprob, dtype=torch.bool).scatter(
            1, order, before < top_p * values.exp().sum(-1, True)
        )
        logprob = logprob.masked_fill(~keep, -torch.inf)
    return logprob
