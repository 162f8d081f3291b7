"""An engine over vLLM, for the extra `vllm`: `pip install "evolvent[vllm]"`, on a machine with a supported GPU.

What it was tried on: NOTHING BUT A SCRIPTED STAND-IN for the package, which checks the calls that are made. It is
written against vLLM's documentation (`LLM.generate` with token prompts, `SamplingParams`, `LoRARequest`, sleep mode,
`collective_rpc("reload_weights")`, `reset_prefix_cache`) and has never met a GPU. Expect to mend it.

A branch is a request whose prompt is all tokens so far; vLLM's prefix cache makes that cheap for branches of one
prompt, for forks and for what an advance continues. Weights travel through a folder: after each new version the
policy is written there and the workers read it again, then the prefix cache is emptied, which vLLM leaves to its
user. With adapters the model stays as it is, and each version of an adapter is written in PEFT's form and named in
the requests, so that rows of one batch may act with different ones.

vLLM's kernels are not those of the training pass, so log-probs differ slightly from the trainer's: recipes should
put a correction on `learn.correction` (truncated importance sampling), or the bias goes unseen.
"""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evolvent.core.errors import UserError
from evolvent.core.ledger import Ledger
from evolvent.core.random import identifier
from evolvent.core.records import Trajectory
from evolvent.engine.base import Actor, Noise, Sampling
from evolvent.engine.requests import Answer, RequestBranch, RequestTree
from evolvent.models.policy import Policy

FINISHED = {"stop": "end", "length": ""}  # vLLM's reasons; `length` is that of the request
RANKS = (8, 16, 32, 64, 128, 256, 320, 512)  # what vLLM takes as the highest rank of adapters


class VllmEngine:
    """Rolls out a `Policy` with vLLM.

    folder    where weights are handed over; as many bytes as the model (None: a temporary folder; /dev/shm is fast)
    settings  further arguments of `vllm.LLM`: tensor_parallel_size, gpu_memory_utilization, max_model_len, ...
    """

    def __init__(self, policy: Policy, ledger: Ledger, folder: Path | None = None, **settings: Any) -> None:
        try:
            import vllm
        except ImportError:
            raise UserError('vLLM is not installed; pip install "evolvent[vllm]", or use the local engine') from None
        self.policy, self.ledger = policy, ledger
        self._own = tempfile.TemporaryDirectory(prefix="evolvent-vllm-") if folder is None else None
        self.folder = Path(self._own.name) if self._own else Path(folder or ".")
        self._vllm = vllm
        self.offers = frozenset({"tokens", "logprobs", "fork", "append", "alternatives"})
        source = policy.source
        if policy.adapters:
            self.offers |= {"adapters"}
            highest = max(low.b.shape[-1] for name in policy.adapters for low in (policy.low(name) or {}).values())
            rank = next((r for r in RANKS if r >= highest), highest)
            settings = {"enable_lora": True, "max_lora_rank": rank, "max_loras": len(policy.adapters)} | settings
        else:
            source = str(self.folder / "model")
            policy.save(Path(source))
        self.loaded, self.asleep = policy.version, False
        self.llm = vllm.LLM(
            model=source,
            generation_config="vllm",  # no sampling defaults of the model's own
            logprobs_mode="processed_logprobs",  # at the sampling temperature
            max_logprobs=20,
            enable_prefix_caching=True,
            enable_sleep_mode=True,
            **({"skip_tokenizer_init": True} | settings),
        )
        self.context = min(policy.context, int(settings.get("max_model_len", policy.context)))

    def start(
        self,
        stubs: Sequence[Trajectory],
        actors: Mapping[str, Actor],
        sampling: Sampling,
        limits: Sequence[int],
    ) -> VllmTree:
        """See `engine.base.Engine`. The newest weights are loaded first."""
        if sampling.entropy:
            raise UserError("vLLM reports no entropies; use the local engine, or a recipe without them")
        if sampling.top_p < 1 or sampling.top_k:
            raise UserError("vLLM's log-probs would be those of the truncated distribution; leave top_p and top_k out")
        if any(isinstance(a.low, Noise) for a in actors.values()):
            raise UserError("vLLM has no noise on its weights; use the local engine for evolution strategies")
        longest = max(len(stub.tokens) for stub in stubs)
        if longest >= self.context:
            raise UserError(
                f"a prompt of {longest} tokens leaves no room in the model's context of {self.context}; "
                "shorten the prompt or use a model with a longer context"
            )
        self.refresh()
        return VllmTree(self, stubs, {name: self._adapter(a) for name, a in actors.items()}, sampling, limits)

    def release(self) -> None:
        """Free the GPU for training; the next roll-out takes it back."""
        if not self.asleep:
            self.llm.sleep(level=1 if self.policy.adapters else 2)
            self.asleep = True

    def refresh(self) -> None:
        """Make vLLM's weights those of the policy, and wake it up."""
        if self.policy.adapters:
            if self.asleep:
                self.llm.wake_up()
            self.asleep = False
            return
        stale = self.loaded != self.policy.version
        if stale:
            self.policy.save(self.folder / "model")
        if self.asleep:
            self.llm.wake_up(tags=["weights"])
        if stale or self.asleep:  # deep sleep has dropped the weights
            self.llm.collective_rpc("reload_weights")
        if self.asleep:
            self.llm.wake_up(tags=["kv_cache"])
        if stale:
            self.llm.reset_prefix_cache()
        self.loaded, self.asleep = self.policy.version, False

    def _adapter(self, actor: Actor) -> Any | None:
        """The request for an actor's adapter at its present version, written where vLLM finds it."""
        if actor.low is None:
            return None
        if actor.id not in self.policy.adapters:
            raise UserError(f"vLLM can act with the policy's adapters only, and `{actor.id}` is none of them")
        from vllm.lora.request import LoRARequest

        from evolvent.models.lora import save_adapter

        name = f"{actor.id}-{actor.version}"
        place = self.folder / "adapters" / name
        if not place.is_dir():
            save_adapter(self.policy, actor.id, place)
        # a number of its own for each version: vLLM keeps adapters, and their cached prefixes, by number
        return LoRARequest(name, 1 + zlib.crc32(name.encode()) % (2**31 - 2), str(place))

    def close(self) -> None:
        """Remove the temporary folder."""
        if self._own is not None:
            self._own.cleanup()


class VllmTree(RequestTree):
    """Branches over a `VllmEngine`."""

    def __init__(
        self,
        engine: VllmEngine,
        stubs: Sequence[Trajectory],
        adapters: Mapping[str, Any],
        sampling: Sampling,
        limits: Sequence[int],
    ) -> None:
        self.engine, self.adapters = engine, adapters
        self._seen: dict[int, int] = {}  # tokens of each branch that were charged as read
        super().__init__(stubs, sampling, limits)
        distinct = {(b.tokens.tobytes(), b.actor): b.length for b in self.branches}
        engine.ledger.charge(prefilled=sum(distinct.values()))
        self._seen = {b.index: b.length for b in self.branches}

    def ask(self, branches: Sequence[RequestBranch], limits: Sequence[int]) -> list[Answer]:
        """See `RequestTree.ask`: one batch of requests."""
        context = self.engine.context
        rooms = [min(n, context - b.length) for b, n in zip(branches, limits, strict=True)]
        asked = [(b, n) for b, n in zip(branches, rooms, strict=True) if n > 0]
        if asked:
            outputs = self.engine.llm.generate(
                [{"prompt_token_ids": b.tokens.tolist()} for b, _ in asked],
                [self._params(b, n) for b, n in asked],
                lora_request=[self.adapters[b.actor] for b, _ in asked] if any(self.adapters.values()) else None,
                use_tqdm=False,
            )
        else:
            outputs = []
        found = {b.index: self._answer(b, o.outputs[0]) for (b, _), o in zip(asked, outputs, strict=True)}
        none = np.zeros(0, np.float32)
        made = [found.get(b.index) or Answer(none.astype(np.int32), none, 0, "length") for b in branches]
        # what a tool or a fork added is read once; what vLLM itself wrote is in its cache
        read = sum(b.length - self._seen.get(b.index, b.fork_at or 0) for b in branches)
        self.engine.ledger.charge(prefilled=read, sampled=sum(a.used for a in made))
        for branch, answer in zip(branches, made, strict=True):
            self._seen[branch.index] = branch.length + answer.used
            if not answer.stop and branch.length + answer.used >= context:
                answer.stop = "length"
        return made

    def _params(self, branch: RequestBranch, limit: int) -> Any:
        """A seed for each position: a request starts its random numbers anew, also in the middle of a turn."""
        how = self.sampling
        return self.engine._vllm.SamplingParams(
            n=1,
            temperature=how.temperature,
            seed=identifier(branch.uid, branch.length) % 2**31,
            max_tokens=limit,
            stop_token_ids=sorted(how.ends),
            ignore_eos=True,  # `ends` has every token that may end a turn
            logprobs=how.alternatives,
            detokenize=False,
        )

    def _answer(self, branch: RequestBranch, output: Any) -> Answer:
        """A completion's tokens, log-probs and alternatives."""
        tokens = np.array(output.token_ids, np.int32)
        logprob = np.array([step[t].logprob for t, step in zip(tokens.tolist(), output.logprobs, strict=True)])
        top = None
        if width := self.sampling.alternatives:
            top = np.zeros((len(tokens), width), np.int32), np.full((len(tokens), width), -np.inf, np.float32)
            for place, step in enumerate(output.logprobs):
                best = sorted(((e.logprob, t) for t, e in step.items()), key=lambda pair: -pair[0])[:width]
                top[0][place, : len(best)] = [t for _, t in best]
                top[1][place, : len(best)] = [p for p, _ in best]
        reason = output.finish_reason
        if reason not in FINISHED:
            return Answer(tokens, logprob, len(tokens), "error", f"vLLM ended a request with {reason!r}")
        return Answer(tokens, logprob.astype(np.float32), len(tokens), FINISHED[reason], alternatives=top)

    def forced(self, parent: RequestBranch, at: int, token: int) -> float:
        """From the alternatives that were recorded at that place; `UserError` where the token is not among them."""
        if parent.alternatives is not None and at < parent.length and parent.mask[at]:
            ids, values = parent.alternatives[0][at], parent.alternatives[1][at]
            if len(place := np.flatnonzero((ids == token) & (values > -np.inf))):
                return float(values[place[0]])
        raise UserError(
            "vLLM knows the log-prob of a forced token only where it is among the recorded alternatives; "
            "raise rollout.alternatives"
        )
