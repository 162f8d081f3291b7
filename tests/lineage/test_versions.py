"""Versions come back as policies: the weights that were stored, of the model that the run began with."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tests.cli.finished import copy_of_runs, store_with_runs
from tests.run.lives import live, view_of
from tests.run.test_resume import SETTINGS
from tests.small_model import small_model

from evolvent.core.errors import UserError
from evolvent.lineage import pack
from evolvent.lineage.export import export_version
from evolvent.lineage.store import Store
from evolvent.lineage.versions import load_assembled, load_version


def test_the_head_has_the_weights_of_the_last_step_and_version_0_those_of_the_model() -> None:
    store = Store(store_with_runs())
    last = pack.load(store.folder("run") / "checkpoint.safetensors")["system"]["policy"]["weights"]
    for version, weights in ((None, last), (0, load_file(Path(small_model()) / "model.safetensors"))):
        policy = load_version(store, "run", version)
        for name, value in policy.weights().items():
            assert torch.equal(value, weights[name]), name
    assert load_version(store, "run").version == view_of(store.root, "run").head


def test_refused_and_unknown_versions() -> None:
    store = Store(store_with_runs())
    refused = next(v.number for v in view_of(store.root, "other").versions if v.verdict == "refused")
    with pytest.raises(UserError, match="refused by the gate and its weights were not kept; choose one of 0, "):
        load_version(store, "other", refused)
    with pytest.raises(UserError, match="has no version 12345"):
        load_version(store, "run", 12345)


def test_a_version_of_another_model_does_not_fit(tmp_path: Path) -> None:
    store = Store(copy_of_runs(tmp_path))
    model = Path(shutil.copytree(small_model(), tmp_path / "model"))
    view = view_of(store.root, "run")
    view.spec = {**view.spec, "model": str(model)}
    load_version(store, view)
    config = json.loads((model / "config.json").read_text())
    config["vocab_size"] += 1
    weights = load_file(model / "model.safetensors")
    weights["model.embed_tokens.weight"] = torch.zeros(config["vocab_size"], config["hidden_size"])
    from safetensors.torch import save_file

    save_file(weights, model / "model.safetensors", metadata={"format": "pt"})
    (model / "config.json").write_text(json.dumps(config))
    with pytest.raises(UserError, match="the model was changed since the run began"):
        load_version(store, view)


def test_an_exported_folder_is_the_same_model_and_says_where_it_comes_from(tmp_path: Path) -> None:
    store = Store(store_with_runs())
    done = export_version(store, "run", tmp_path / "model")
    weights = load_file(tmp_path / "model/model.safetensors")
    for name, value in load_version(store, "run").weights().items():
        assert torch.equal(value, weights[name])
    card = (tmp_path / "model/README.md").read_text()
    assert f"run, version {done.version}" in card
    assert "| this model |" in card
    assert "| start model |" in card
    with pytest.raises(UserError, match="nothing is overwritten"):
        export_version(store, "run", tmp_path / "model")
    with pytest.raises(UserError, match="has no adapter; export it without --adapter"):
        export_version(store, "run", tmp_path / "adapter", adapter=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model"]


@pytest.mark.slow
def test_transformers_loads_what_is_exported(tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    store = Store(store_with_runs())
    export_version(store, "run", tmp_path / "model")
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "model").eval()
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "model")
    ours = load_version(store, "run")
    tokens = torch.tensor([tokenizer("3+4=")["input_ids"]])
    tokens = tokens if tokens[0, 0] == 1 else torch.cat([torch.tensor([[1]]), tokens], 1)
    select = torch.ones_like(tokens, dtype=torch.bool)
    select[:, 0] = False
    with torch.no_grad():
        assert torch.allclose(theirs(tokens).logits[0, :-1], ours.logits(tokens, select), atol=1e-4)


@pytest.fixture(scope="module")
def two_roles(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A run whose roles train adapters of their own."""
    store = tmp_path_factory.mktemp("roles") / "runs"
    settings = {f"{role}/propose.{k}": v for role in ("proposer", "solver") for k, v in (("problems", 4), ("n", 4))}
    settings |= {"proposer/gate.every": 0, "solver/gate.every": 1, "solver/gate.problems": 8, "solver/learn.lr": 1e-2}
    words = [word for path, value in settings.items() for word in ("--set", f"{path}={value}")]
    args = ["run", "proposer-solver", "-t", "arith:1x1", "-m", small_model(), "-b", "2 steps", "--name", "run"]
    assert SETTINGS
    assert live([*args, "--store", str(store), "--threads", "1", "--skip-audit", "--no-report", *words]).code == 0
    return Store(store)


def test_adapters_come_back_and_are_exported(two_roles: Store, tmp_path: Path) -> None:
    view = view_of(two_roles.root, "run")
    stored = pack.load(two_roles.folder("run") / "checkpoint.safetensors")["system"]["policy"]["weights"]
    assembled = load_assembled(two_roles, view)
    for name, value in assembled.policy.weights().items():
        assert torch.equal(value, stored[name]), name
    policy = load_version(two_roles, view)
    assert policy.active == "solver"
    export_version(two_roles, "run", tmp_path / "adapter", adapter=True)
    export_version(two_roles, "run", tmp_path / "proposer", adapter=True, role="proposer")
    export_version(two_roles, "run", tmp_path / "merged")
    files = {p.name for p in (tmp_path / "adapter").iterdir()}
    assert {"adapter_config.json", "adapter_model.safetensors", "README.md"} <= files
    a, b = (load_file(tmp_path / n / "adapter_model.safetensors") for n in ("adapter", "proposer"))
    assert any(not torch.equal(a[n], b[n]) for n in a)
    start = load_file(Path(small_model()) / "model.safetensors")
    merged = load_file(tmp_path / "merged/model.safetensors")
    assert merged.keys() == start.keys()
    with pytest.raises(UserError, match="unknown adapter `solvr`; did you mean solver"):
        export_version(two_roles, "run", tmp_path / "x", adapter=True, role="solvr")
