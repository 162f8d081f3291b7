"""Carry a run out: steps, events, checkpoints, versions, the final table; and carry it on after it was killed.

The checkpoint is the state, the events are the record. Events are written step by step, a checkpoint now and then
(`run.pace`) and with every version. A process that dies in between does the steps since the checkpoint again, to the
same bits, and the views count them once.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evolvent.core.errors import UserError
from evolvent.core.files import whole
from evolvent.core.ledger import Budget
from evolvent.core.loop import System, TooManyErrors
from evolvent.core.secrets import redact
from evolvent.core.step import Step
from evolvent.engine import is_endpoint
from evolvent.lineage import pack
from evolvent.lineage.evaluations import Evaluations, begun
from evolvent.lineage.replies import Replies
from evolvent.lineage.runs import RunView, free_name, read_run, run_names
from evolvent.lineage.store import Store, without_secrets
from evolvent.lineage.versions import begun_elsewhere, chosen, load_assembled, place, read_weights, store_weights
from evolvent.run.ahead import start_sandbox
from evolvent.run.assemble import Assembled, assemble
from evolvent.run.check import (
    ACCURACY,
    BEST,
    WORKERS,
    check_name,
    check_options,
    fingerprint,
    reaches,
    refuse_aimless,
    refuse_changed,
    refuse_endless,
    refuse_hopeless,
    refuse_spent,
    refuse_workers,
)
from evolvent.run.environment import describe_plan, environment, fitting
from evolvent.run.final_search import measure_search
from evolvent.run.log import DEFAULT, Log, open_logs
from evolvent.run.memory import Memory
from evolvent.run.notes import evaluations_ask, fruitless, notes, sandbox_of
from evolvent.run.pace import Pace
from evolvent.run.process import interruptible, locked
from evolvent.run.result import Progress, Result, flat
from evolvent.run.spec import RunSpec
from evolvent.tasks.evaluation import judges_answers


@dataclass
class Session:
    """One run under way. `watch` is called after each step, `say` with lines worth telling.

    name    of the run; empty: the next free one of its recipe and task
    target  stop when the gate accuracy reaches this, or a search's best value
    final   measure on the test split before and after; None: not over an endpoint, where every answer may be paid for.
            Of a search, evaluate the best anew at the end
    pool    where the programs of a search are evaluated, if not here: `ray` or `ray:ADDRESS`; what comes of it is alike
    where   what the commands that are suggested need to find the store, ` --store FOLDER`
    """

    store: Store
    spec: RunSpec
    name: str
    logs: tuple[str, ...] = DEFAULT
    target: float | None = None
    final: bool | None = None
    watch: Callable[[Progress], None] = lambda progress: None
    say: Callable[[str], None] = lambda line: None
    command: str = ""
    where: str = ""
    pool: str = ""
    stopping: threading.Event = field(default_factory=threading.Event)
    _rollback: int | None = field(default=None, init=False)  # the last one that the state takes account of
    _head: int | None = field(default=None, init=False)  # the version that the state stands on
    _head_hash: str | None = field(default=None, init=False)
    _saved: int = field(default=0, init=False)  # steps that the checkpoint has

    @property
    def folder(self) -> Path:
        """The run's folder."""
        return self.store.folder(self.name)

    @property
    def checkpoint(self) -> Path:
        """Where the state is, as it was after the last step that saved it."""
        return self.folder / "checkpoint.safetensors"

    # --- beginning and carrying on ---

    def start(self, assembled: Assembled) -> Result:
        """Begin a new run; `UserError` if the name is taken or its description holds a secret."""
        check_options(self.name, self.logs, self.target)
        refuse_hopeless(assembled, self.target)
        description = json.loads(json.dumps(self.spec.as_dict()))  # as it would be stored
        if without_secrets(description) != description:
            raise UserError(
                "the run's description holds a password or key, and it would be stored with the run; leave it out of "
                "the address and put it into the environment variable EVOLVENT_API_KEY"
            )
        if self.final is None:
            answers = is_endpoint(self.spec.model) and judges_answers(assembled.task)
            self.final = not answers and not evaluations_ask(assembled)
        self._reach_pool(assembled)
        there = bool(self.name) and self.folder.is_dir()
        self.name = self.name or free_name(self.store, self.spec.recipe, self.spec.task)
        if self.folder.is_dir() and any(p.name != "lock" for p in self.folder.iterdir()):
            raise self._taken()
        self.folder.mkdir(parents=True, exist_ok=True)
        if not self.pool:
            start_sandbox(assembled.task)
        with locked(self.folder, self.name):
            try:
                if self.name in run_names(self.store):
                    raise self._taken()
                self.store.add(self.name, "created", self._description(assembled))
            except BaseException:  # the store is locked, for instance: nothing has begun
                if not there:
                    shutil.rmtree(self.folder, ignore_errors=True)
                raise
            if isinstance(assembled.replies, Replies):
                assembled.replies.keep(self.store, self.name)
            try:
                return self._carry_out(assembled, read_run(self.store, self.name))
            except UserError:
                if fruitless(assembled):  # it could only fail again
                    self._forget(there)
                raise

    def _forget(self, there: bool) -> None:
        """Leave nothing of the run; a folder that was `there` before stays, empty as it was."""
        with suppress(UserError):
            self.store.forget(self.name)
            shutil.rmtree(self.folder, ignore_errors=True)
        if there:
            self.folder.mkdir(exist_ok=True)

    def _taken(self) -> UserError:
        return UserError(
            f"there is a run in {self.folder} already; choose another --name, or "
            f"`evolvent resume {self.name}{self.where}`"
        )

    def _description(self, assembled: Assembled) -> dict[str, Any]:
        return {
            "spec": self.spec.as_dict(),
            "recipe": describe_plan(assembled),
            "options": {"target": self.target, "final": self.final},
            "task": fingerprint(assembled.task),
            "environment": environment(sandbox_of(assembled.task, self.pool)),
            "command": redact(self.command),
            "folder": os.path.relpath(Path.cwd(), self.store.root),  # from where files are named; without a user's name
        }

    def resume(self) -> Result:
        """Carry on from the last checkpoint, or from the version that a rollback went to."""
        if not self.folder.is_dir():
            raise UserError(f"the folder of run {self.name} is not in {self.store.root}; resume it where it was begun")
        with locked(self.folder, self.name):
            view = read_run(self.store, self.name)
            check_options(self.name, self.logs, self.target)
            with begun_elsewhere(self.store, view):
                assembled = assemble(self.spec, Replies(self.store, self.name))
            refuse_changed(assembled.task, view)
            budget = Budget.parse(self.spec.budget)
            refuse_endless(assembled, budget)
            refuse_aimless(assembled, budget, self.target)
            self._reach_pool(assembled)
            system = assembled.system
            if not self.checkpoint.is_file():  # nothing but the start version can be there
                self._head = view.versions[0].number if view.versions else None
            else:
                state = pack.load(self.checkpoint)
                self._rollback, self._head = state["rollback"], state["head"]
                last = view.rollback
                if last is not None and last.event != self._rollback:
                    self._go_back(view, assembled, state["system"])
                else:
                    with fitting(view):
                        self._recall(system)
                        system.load_state_dict(state["system"])
            self._saved = system.t
            head = next((v for v in view.versions if v.number == self._head), None)
            self._head_hash = head.hash if head else None
            resumed = {"step": system.t, "head": self._head, "budget": self.spec.budget}
            here = environment(sandbox_of(assembled.task, self.pool))
            self.store.add(self.name, "resumed", resumed | {"environment": here})
            return self._carry_out(assembled, read_run(self.store, self.name))

    def _reach_pool(self, assembled: Assembled) -> None:
        """Have programs evaluated in the pool, if there is one; before anything is written, as it may not answer."""
        if self.pool:
            from evolvent.scale.sandboxes import elsewhere

            elsewhere(assembled.task, self.pool)

    def _recall(self, system: System) -> None:
        """Give parts that keep a journal what they have written there; only then does their state make sense."""
        for part in system.parts.values():
            if hasattr(part, "journal"):
                part.recall([event.data for event in self.store.events(self.name, (part.event,))])

    def _go_back(self, view: RunView, assembled: Assembled, state: Mapping[str, Any]) -> None:
        """Take up a version's weights; optimizers, gates and buffers, which knew later ones, begin afresh.

        Nothing is done again: what was recorded after the checkpoint counts as done, and was paid for.
        """
        version = chosen(view, None)
        system, policy = assembled.system, assembled.policy
        system.t, errors, ledger = state["t"], state["errors"], state["ledger"]
        if (last := max(view.steps, default=-1)) >= system.t:
            system.t, errors, ledger = last + 1, view.steps[last].get("errors", {}), view.steps[last]["spent"]
        system.errors = dict(errors)
        system.ledger.load_state_dict(ledger)
        place(policy, read_weights(self.store, view, version), view, version)
        policy.version = max([state["policy"]["version"], *(v.number for v in view.versions)])
        policy.bump()
        self._rollback, self._head = view.rollbacks[-1].event, version.number
        self._save(system)

    def _carry_out(self, assembled: Assembled, view: RunView) -> Result:
        """Everything from the start version to the final table, as far as it has not been done yet."""
        system = assembled.system
        for line in notes(assembled, self.pool):
            self.say(line)
        for transport in (getattr(role.engine, "transport", None) for role in system.roles.values()):
            if transport is not None:
                transport.say = self.say
        if hasattr(assembled.task, "journal"):
            assembled.task.journal = Evaluations(self.store, self.name, begun(self.store, self.name, system.t))
        try:
            if not view.versions:
                self._add_versions([self._version(assembled, 0, "start", {})])
            if not self.checkpoint.is_file():
                self._save(system)
            if self.final and judges_answers(assembled.task) and "start" not in view.evaluations:
                first = load_assembled(self.store, view, 0) if assembled.policy.version else assembled
                self.store.add_many(self.name, self._measure(first, "start", 0))
            view = read_run(self.store, self.name)
            if view.evidence_spent:
                system.ledger.load_state_dict({**system.ledger.state_dict(), "evidence": view.evidence_spent})
            return self._loop(assembled, view)
        except BaseException as reason:
            on = f"`evolvent resume {self.name}{self.where}`, which goes on after step {self._saved}"
            if isinstance(reason, KeyboardInterrupt):
                self.say(f"stopped at once; carry on with {on}")
            if isinstance(reason, Exception):
                text = str(reason) if isinstance(reason, UserError) else f"{type(reason).__name__}: {reason}"
                note = f"{text}; the checkpoint is from after step {self._saved}"
                with suppress(UserError):  # the store itself may be what fails
                    self.store.add(self.name, "failed", {"errors": system.errors, "note": note})
            if isinstance(reason, TooManyErrors):
                own = fingerprint(assembled.task)
                new = f"; if it is {assembled.spec.task} that you change, begin a new run instead" if own else ""
                raise TooManyErrors(f"{reason}; mend that, then carry on with {on}{new}") from None
            raise

    def _loop(self, assembled: Assembled, view: RunView) -> Result:
        system, budget = assembled.system, Budget.parse(self.spec.budget)
        result = Result(self.name, self.spec, assembled, view, self.folder)
        with ExitStack() as stack:
            before = {t: flat(s["roles"]) for t, s in view.steps.items()}
            logs = open_logs(self.logs, self.folder, self.name, before)
            for log in logs:
                stack.callback(log.close)
            stack.enter_context(interruptible(self.stopping, self.say))
            saving, memory = Pace(assembled.policy.size), Memory(assembled.policy.size)
            begun = time.perf_counter()
            for steps in system.run(budget):
                self._record(assembled, steps, logs, saving)
                memory.trim()
                metrics = flat({s.role.name: s.metrics for s in steps})
                spent = system.ledger.spent["method"]
                share = min(1.0, system.ledger.of(budget.unit) / budget.amount)
                main = next((s.metrics for s in steps if s.role is assembled.main_role), {})
                seconds = time.perf_counter() - begun
                self.watch(Progress(self.name, system.t, share, {**metrics, **main}, spent, seconds))
                if self.target is not None and main.get(reaches(assembled.task), -math.inf) >= self.target:
                    result.reached = True
                    break
                if self.stopping.is_set():
                    result.interrupted = True
                    break
            self._save(system)
        if result.interrupted:
            note = {"errors": system.errors, "note": f"stopped after step {system.t}"}
            self.store.add(self.name, "interrupted", note)
        else:
            self._finish(assembled)
        result.view = read_run(self.store, self.name)
        return result

    def _finish(self, assembled: Assembled) -> None:
        system = assembled.system
        last = self._version(assembled, system.t, "accepted", {})
        if last["hash"] != self._head_hash:
            self._add_versions([last])
            self._save(system)  # a longer run goes on from this one
        self.store.add_many(self.name, [*self._measure_end(assembled), ("finished", {"errors": system.errors})])
        for part in system.parts.values():
            for name, text in part.files().items() if hasattr(part, "files") else ():
                with whole(self.folder / name) as file:
                    file.write_text(text)

    def _measure_end(self, assembled: Assembled) -> list[tuple[str, dict[str, Any]]]:
        """Figures of the head. Those of the start model where nothing has changed it: nothing is measured twice."""
        if not self.final:
            return []
        if not judges_answers(assembled.task):
            self.say("evaluating the best programs anew")
            return measure_search(assembled)
        if self._head != read_run(self.store, self.name).measured.get("start"):
            return self._measure(assembled, "evolved", self._head)
        return [(kind, {"name": "evolved", "version": self._head, "as": "start"}) for kind in ("samples", "evaluation")]

    # --- what is written ---

    def _record(self, assembled: Assembled, steps: list[Step], logs: list[Log], saving: Pace) -> None:
        system = assembled.system
        t = system.t - 1
        roles = {s.role.name: s.metrics for s in steps}
        spent = {account: units for account, units in system.ledger.spent.items() if account != "evidence"}
        data: dict[str, Any] = {"t": t, "roles": roles, "spent": spent}
        if system.errors:
            data["errors"] = system.errors
        journal = [(p.event, data) for p in system.parts.values() if hasattr(p, "journal") for data in p.journal()]
        watched = [s for s in steps if "gate/accuracy" in s.metrics]
        if watched:
            evidence = flat({s.role.name: _evidence(s) for s in watched})
            refused = [s for s in watched if not s.metrics.get("gate/accepted", 1.0)]
            verdict = "refused" if refused else "accepted"
            self._add_versions([self._version(assembled, t + 1, verdict, evidence, refused)], *journal, ("step", data))
        else:
            self.store.add_many(self.name, [*journal, ("step", data)])
        metrics = flat(roles)
        for log in logs:
            log.step(t, metrics)
        if watched or saving.due():  # of all that a kill may undo, versions are what the user was told of
            with saving:
                self._save(system)

    def _version(
        self,
        assembled: Assembled,
        step: int,
        verdict: str,
        evidence: Mapping[str, float],
        refused: list[Step] | None = None,
    ) -> dict[str, Any]:
        """A version's data. A gate that refused has counted one change to go back: it names the one that it judged."""
        judged = [c.before for s in refused or () for c in s.changes if c.path == "gate"]
        name = None
        if verdict != "refused":
            try:
                name = store_weights(self.store, self.folder, assembled.policy.weights())
            except OSError as reason:
                raise self._full("a version", reason) from None
        return {
            "number": judged[0] if judged else assembled.policy.version,
            "step": step,
            "parents": [] if self._head is None else [self._head],
            "hash": name,
            "operator": assembled.plan.name,
            "evidence": dict(evidence),
            "verdict": verdict,
        }

    def _add_versions(self, versions: list[dict[str, Any]], *before: tuple[str, Mapping[str, Any]]) -> None:
        """Write versions, and the events that come before them, in one transaction."""
        self.store.add_many(self.name, [*before, *(("version", v) for v in versions)])
        for v in versions:
            if v["verdict"] != "refused":
                self._head, self._head_hash = v["number"], v["hash"]

    def _save(self, system: System) -> None:
        state = {"system": system.state_dict(), "rollback": self._rollback, "head": self._head}
        try:
            pack.save(self.checkpoint, state)
        except OSError as reason:
            raise self._full("the checkpoint", reason) from None
        self._saved = system.t

    def _full(self, what: str, reason: OSError) -> UserError:
        then = f"`evolvent resume {self.name}{self.where}`"
        before = f"the checkpoint before is whole: free some space (`evolvent gc` helps), then {then}"
        first = f"nothing was done yet: free some space (`evolvent gc` helps), then {then} begins it"
        return UserError(
            f"cannot write {what} of {self.name} ({reason.strerror}); {before if self.checkpoint.is_file() else first}"
        )

    def _measure(self, assembled: Assembled, name: str, version: int | None) -> list[tuple[str, dict[str, Any]]]:
        """Evaluate on the test split, as events."""
        from evolvent.run.final import measure_model  # here: no search needs it, and it takes a while

        self.say(f"measuring the {'start' if name == 'start' else 'evolved'} model on the test split")
        return measure_model(assembled, name, version)


def _evidence(s: Step) -> dict[str, float]:
    return {k: v for k, v in s.metrics.items() if k.startswith("gate/")}


def begin(spec: RunSpec, store: Store | Path, name: str | None = None, **options: Any) -> Result:
    """Assemble and start a run under a name, or under the next free one.

    A store that is given as a folder is made when nothing is wrong with the input.
    """
    Budget.parse(spec.budget)
    check_options(name or "", options.get("logs", DEFAULT), options.get("target"))
    assembled = assemble(spec, Replies())
    refuse_hopeless(assembled, options.get("target"))
    store = store if isinstance(store, Store) else Store(store)
    return Session(store, spec, name or "", **options).start(assembled)


def resume(store: Store, name: str, **options: Any) -> Result:
    """Carry a run on, with its own description and options; `budget` may be raised."""
    view = read_run(store, name)
    budget = options.pop("budget", None) or view.spec["budget"]
    settings = dict(view.spec["settings"])
    if workers := options.pop("workers", None):
        settings |= {WORKERS: workers}
    refuse_spent(view, Budget.parse(budget))
    if options.get("target") is None and not reached(view, view.options.get("target")):  # which is done with
        options["target"] = view.options.get("target")
    options["final"] = view.options.get("final", True) if options.get("final") is None else options["final"]
    spec = RunSpec(**{**view.spec, "budget": budget, "settings": settings})
    if workers:
        refuse_workers(spec)
    return Session(store, spec, view.name, **options).resume()


def reached(view: RunView, target: float | None) -> bool:
    """Whether a run has come to its target already."""
    metric = BEST if view.candidates else ACCURACY
    return target is not None and max(view.values(metric), default=-math.inf) >= target


__all__ = ["Progress", "Result", "Session", "begin", "check_name", "resume"]
