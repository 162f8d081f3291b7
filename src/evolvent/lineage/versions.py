"""Weights of versions: stored under their hash, read back, and a policy made from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from safetensors import numpy

from evolvent.core.errors import UserError
from evolvent.core.files import whole
from evolvent.lineage.runs import RunView, Version, read_run
from evolvent.lineage.store import Store

if TYPE_CHECKING:
    import torch

    from evolvent.models.policy import Policy
    from evolvent.run.assemble import Assembled


def store_weights(store: Store, folder: Path, weights: Mapping[str, torch.Tensor]) -> str:
    """Keep a version's weights; the hash that names them. `folder` is for the file on its way; `OSError` if full."""
    file = folder / "version.safetensors"
    with whole(file) as part:
        _write(weights, part)
    try:
        return store.objects.put(file)
    finally:
        file.unlink(missing_ok=True)


def _write(weights: Mapping[str, torch.Tensor], file: Path) -> None:
    if not weights:  # of a search, which does without torch: it takes seconds to import
        numpy.save_file({}, file, metadata={"format": "pt"})
        return
    from safetensors.torch import save_file

    save_file({n: w.detach().contiguous().cpu() for n, w in weights.items()}, file, metadata={"format": "pt"})


def read_weights(store: Store, view: RunView, version: Version) -> dict[str, torch.Tensor]:
    """The weights of a version; `UserError` where they were refused or removed."""
    from safetensors.torch import load_file

    if version.hash is None:
        raise UserError(
            f"version {version.number} of {view.name} was {version.verdict} by the gate and its weights were not kept; "
            f"choose one of {kept(store, view)}"
        )
    if not store.objects.has(version.hash):
        raise UserError(
            f"the weights of version {version.number} of {view.name} were removed from the store (`evolvent gc` does "
            f"that); choose one of {kept(store, view)}"
        )
    file = store.folder(view.name) / f"reading-{version.number}.safetensors"
    try:
        return load_file(store.objects.get(version.hash, file))
    except Exception as reason:
        raise UserError(
            f"the weights of version {version.number} of {view.name} cannot be read ({reason}); choose another version "
            f"of `evolvent lineage {view.name}`"
        ) from None
    finally:
        file.unlink(missing_ok=True)


def kept(store: Store, view: RunView) -> str:
    """Numbers of the versions whose weights are there, as text."""
    numbers = [str(v.number) for v in view.versions if v.hash is not None and store.objects.has(v.hash)]
    return ", ".join(numbers) or "none (no weights are stored)"


def has_weights(store: Store, view: RunView) -> bool:
    """Whether a run's model was here, so that its head has weights: not one behind an endpoint, and not `none`."""
    head = next((v for v in view.versions if v.number == view.head), None)
    return head is not None and head.hash is not None and bool(read_weights(store, view, head))


def chosen(view: RunView, number: int | None) -> Version:
    """A version by number, or the head."""
    number = view.head if number is None else number
    if number is None:
        raise UserError(f"run {view.name} has no version yet; `evolvent resume {view.name}` carries it on")
    return view.version(number)


@contextmanager
def begun_elsewhere(store: Store, view: RunView) -> Iterator[None]:
    """What goes wrong within says where the run was begun, if not here: its files are named from there."""
    try:
        yield
    except UserError as reason:
        folder = (store.root / view.folder).resolve() if view.folder else Path.cwd()
        if folder == Path.cwd():
            raise
        raise UserError(f"{reason} (run {view.name} was begun in {folder}, and names its files from there)") from None


def load_assembled(store: Store, run: str | RunView, version: int | None = None) -> Assembled:
    """The system of a run, with the weights of a version (None: the head)."""
    from evolvent.run.assemble import assemble
    from evolvent.run.spec import RunSpec

    view = run if isinstance(run, RunView) else read_run(store, run)
    one = chosen(view, version)
    weights = read_weights(store, view, one)
    with begun_elsewhere(store, view):
        assembled = assemble(RunSpec(**view.spec))
    place(assembled.policy, weights, view, one)
    return assembled


def load_version(store: Store, run: str | RunView, version: int | None = None) -> Policy:
    """The policy of a run as it was at a version (None: the head), adapters included. `run` is a name, or `last`."""
    from evolvent.models.load import load_policy

    view = run if isinstance(run, RunView) else read_run(store, run)
    one = chosen(view, version)
    weights = read_weights(store, view, one)
    if not weights:
        if view.candidates:
            raise UserError(
                f"run {view.name} evolved programs and no model; `evolvent export {view.name} best.py` writes the best"
            )
        raise UserError(
            f"run {view.name} never had the weights of {view.spec['model']}, so there is nothing to export or "
            f"to serve; `evolvent try {view.name}` asks the model itself"
        )
    if any(".lora_" in name for name in weights):  # adapters are made by the run's recipe
        assembled = load_assembled(store, view, one.number)
        assembled.policy.activate(assembled.main_role.adapter)
        return assembled.policy
    policy = load_policy(view.spec["model"], view.spec["device"], view.spec["dtype"])
    place(policy, weights, view, one)
    return policy


def place(policy: Policy, weights: Mapping[str, torch.Tensor], view: RunView, version: Version) -> None:
    """Put a version's weights into a policy; `UserError` if the model is not the one that the run began with."""
    if not weights:  # of a model behind an endpoint
        return
    there = dict(policy.model.named_parameters())
    wrong = [n for n, w in weights.items() if n not in there or there[n].shape != w.shape]
    if wrong:
        raise UserError(
            f"version {version.number} of {view.name} does not fit the model {view.spec['model']} ({wrong[0]}): the "
            "model was changed since the run began; put back the one that it began with"
        )
    policy.set_weights(weights)
    policy.version = version.number
