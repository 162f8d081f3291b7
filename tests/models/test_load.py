"""Models by name: what loads on which engine, and one clear sentence for everything that does not load."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from hashlib import sha1
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.hub import hub_folder, hub_model, hub_tokenizer
from tests.toys import random_policy

from evolvent.core.errors import UserError
from evolvent.models.chat import ChatFormat
from evolvent.models.decoder import Decoder
from evolvent.models.load import find_device, find_model, load_policy
from evolvent.models.lora import Lora, save_adapter
from evolvent.models.policy import context_of
from evolvent.models.tokenizer import SeedFormat

TOKENS = torch.randint(4, 90, (2, 12), generator=torch.Generator().manual_seed(0))
SELECT = torch.ones_like(TOKENS, dtype=torch.bool)
SELECT[:, 0] = False


def change(folder: Path, **values: object) -> Path:
    """Set or remove (None) entries of `config.json`."""
    path = folder / "config.json"
    config = json.loads(path.read_text()) | values
    path.write_text(json.dumps({k: v for k, v in config.items() if v is not None}))
    return folder


@pytest.mark.parametrize(("kind", "fast"), [("qwen2", True), ("llama", True), ("gpt2", False), ("gemma2", False)])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_folder_of_the_hub(kind: str, fast: bool, dtype: str, tmp_path: Path) -> None:
    policy = load_policy(str(hub_folder(tmp_path, kind)), dtype=dtype)
    assert isinstance(policy.model, Decoder) is fast
    assert isinstance(policy.format, ChatFormat)
    assert policy.dtype == getattr(torch, dtype)
    assert policy.context == 256
    assert policy.logits(TOKENS, SELECT).shape == (22, len(policy.format.tokenizer))
    assert policy.source == str(tmp_path.resolve())
    assert not policy.model.training or fast


def test_sliding_windows_go_to_transformers(tmp_path: Path) -> None:
    assert not isinstance(load_policy(str(hub_folder(tmp_path, "mistral", sliding_window=16))).model, Decoder)


def test_a_seed_model_never_imports_transformers(tmp_path: Path) -> None:
    random_policy().save(tmp_path)
    code = (
        "import sys\nfrom pathlib import Path\nfrom evolvent.models.load import load_policy\n"
        f"folder = Path({str(tmp_path)!r})\npolicy = load_policy(str(folder))\npolicy.save(folder / 'again')\n"
        "assert not {'transformers', 'peft'} & set(sys.modules)\nprint(type(policy.format).__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "SeedFormat"


def test_sharded_and_pickled_weights(tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    whole = load_policy(str(hub_folder(tmp_path / "whole", "qwen3")))
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "whole")
    hub_folder(tmp_path / "sharded", "qwen3")
    (tmp_path / "sharded" / "model.safetensors").unlink()
    model.save_pretrained(tmp_path / "sharded", max_shard_size="30KB")
    shards = sorted((tmp_path / "sharded").glob("model-*.safetensors"))
    assert len(shards) > 2
    hub_folder(tmp_path / "pickled", "qwen3")
    (tmp_path / "pickled" / "model.safetensors").unlink()
    torch.save(model.state_dict(), tmp_path / "pickled" / "pytorch_model.bin")
    expected = whole.logits(TOKENS, SELECT)
    for name in ("sharded", "pickled"):
        torch.testing.assert_close(load_policy(str(tmp_path / name)).logits(TOKENS, SELECT), expected)
    shards[1].unlink()
    with pytest.raises(UserError, match=f"lacks {shards[1].name}"):
        load_policy(str(tmp_path / "sharded"))


def test_no_dropout_in_training_and_none_lost_on_disk(tmp_path: Path) -> None:
    policy = load_policy(str(hub_folder(tmp_path / "a", "gpt2", resid_pdrop=0.3, attn_pdrop=0.2)))
    policy.model.train()
    first, second = policy.logits(TOKENS, SELECT), policy.logits(TOKENS, SELECT)
    torch.testing.assert_close(first, second, atol=0, rtol=0)
    policy.save(tmp_path / "b")
    written = json.loads((tmp_path / "b" / "config.json").read_text())
    assert (written["resid_pdrop"], written["attn_pdrop"]) == (0.3, 0.2)


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_adapters_from_a_folder_and_fresh_ones(kind: str, tmp_path: Path) -> None:
    base = str(hub_folder(tmp_path / "base", kind))
    made = load_policy(base, adapters={"solver": Lora(2), "proposer": Lora(3)}, seed=5)
    assert made.adapters == ("solver", "proposer")
    again = load_policy(base, adapters={"proposer": Lora(3)}, seed=5)
    for name, value in again.trainable("proposer").items():
        assert torch.equal(value, made.trainable("proposer")[name])  # by name, not by order
    with torch.no_grad():
        for parameter in made.trainable("proposer").values():
            parameter.normal_(0, 0.2, generator=torch.Generator().manual_seed(0))
    save_adapter(made, "proposer", tmp_path / "adapter")
    loaded = load_policy(str(tmp_path / "adapter"))
    assert (loaded.adapters, loaded.active) == (("policy",), "policy")
    torch.testing.assert_close(loaded.logits(TOKENS, SELECT), made.logits(TOKENS, SELECT))
    two = load_policy(str(tmp_path / "adapter"), adapters={"solver": Lora(), "proposer": Lora()})
    assert two.adapters == ("solver", "proposer")
    torch.testing.assert_close(two.logits(TOKENS, SELECT), made.logits(TOKENS, SELECT))
    config = json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())
    (tmp_path / "adapter" / "adapter_config.json").write_text(json.dumps(config | {"base_model_name_or_path": None}))
    with pytest.raises(UserError, match="does not name its base model"):
        load_policy(str(tmp_path / "adapter"))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"model_type": "nonesuch"}, "unknown architecture `nonesuch`"),
        ({"model_type": "nonesuch", "auto_map": {"AutoModel": "x"}}, "code of its own, which is never run"),
        ({"model_type": "t5", "architectures": ["T5ForConditionalGeneration"]}, "no causal language model"),
        ({"architectures": ["Qwen2ForSequenceClassification"]}, "no causal language model"),
        ({"model_type": "bert", "architectures": ["BertForMaskedLM"]}, "no causal language model"),
        ({"quantization_config": {"quant_method": "gptq"}}, "quantised"),
        ({"hidden_size": None}, "lacks 'hidden_size'"),
        ({"hidden_size": 64}, r"is \[\d+, 32\], but config.json says \[\d+, 64\].*copy or save the model again"),
        ({"num_hidden_layers": 3}, "the weights lack model.layers.2"),
        ({"tie_word_embeddings": False, "model_type": "qwen3", "head_dim": 8}, "k_norm"),
    ],
)
def test_models_that_cannot_be_trained_here(values: dict[str, object], said: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=said):
        load_policy(str(change(hub_folder(tmp_path, "qwen2"), **values)))


def test_other_models_must_be_whole_too(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"the weights lack transformer\.h\.2"):
        load_policy(str(change(hub_folder(tmp_path, "gpt2"), n_layer=3)))


@pytest.mark.parametrize("kind", ["qwen2", "gpt2"])
def test_the_number_of_tensors_that_the_weights_lack(kind: str, tmp_path: Path) -> None:
    path = hub_folder(tmp_path, kind) / "model.safetensors"
    tensors = load_file(path)
    first, second = sorted(name for name in tensors if ".bias" in name or "norm" in name)[:2]
    del tensors[first]
    save_file(tensors, path, metadata={"format": "pt"})
    with pytest.raises(UserError, match=rf"the weights lack {re.escape(first)}; the folder is not whole.*copy or save"):
        load_policy(str(tmp_path))
    del tensors[second]
    save_file(tensors, path, metadata={"format": "pt"})
    with pytest.raises(UserError, match=rf"the weights lack {re.escape(first)} and 1 more; "):
        load_policy(str(tmp_path))


@pytest.mark.parametrize("kind", ["qwen2", "gpt2"])
def test_broken_folders(kind: str, tmp_path: Path) -> None:
    hub_folder(tmp_path, kind)
    weights, config = tmp_path / "model.safetensors", tmp_path / "config.json"
    content, said = weights.read_bytes(), config.read_text()
    weights.write_bytes(content[: len(content) // 2])
    with pytest.raises(UserError, match=r"cannot be (read|loaded)"):
        load_policy(str(tmp_path))
    weights.unlink()
    with pytest.raises(UserError, match="has no weights"):
        load_policy(str(tmp_path))
    weights.write_bytes(content)
    for broken in ("{", "[]", ""):
        config.write_text(broken)
        with pytest.raises(UserError, match=r"config.json (cannot be read|holds no JSON object)"):
            load_policy(str(tmp_path))
    config.unlink()
    with pytest.raises(UserError, match=r"it has no config\.json; give one that `save_pretrained` or"):
        load_policy(str(tmp_path))
    config.write_text(said)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).unlink()
    with pytest.raises(UserError, match="has no tokenizer"):
        load_policy(str(tmp_path))


def test_a_broken_seed_tokenizer(tmp_path: Path) -> None:
    random_policy().save(tmp_path)
    assert isinstance(load_policy(str(tmp_path)).format, SeedFormat)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(UserError, match="the tokenizer cannot be read"):
        load_policy(str(tmp_path))


def test_devices_and_dtypes(tmp_path: Path) -> None:
    assert find_device("cpu") == torch.device("cpu")
    with pytest.raises(UserError, match=r"unknown device `cudda`; did you mean cuda\?"):
        find_device("cudda")
    with pytest.raises(UserError, match="unknown device `meta`"):
        find_device("meta")
    if not torch.cuda.is_available():
        with pytest.raises(UserError, match="torch sees no CUDA device"):
            load_policy("tiny", device="cuda")
    with pytest.raises(UserError, match=r"unknown dtype `bfloat61`; did you mean bfloat16\?"):
        load_policy("tiny", dtype="bfloat61")


def test_names_that_are_nothing() -> None:
    with pytest.raises(UserError, match="unknown model `nowhere`"):
        find_model("nowhere")
    with pytest.raises(UserError, match=r"unknown model `./no/such/folder`"):
        find_model("./no/such/folder")


def test_near_misses_of_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    random_policy().save(tmp_path / "my-run" / "checkpoint-100")
    for spec, said in {
        "my-run": r"my-run is not a model folder: it has no config\.json; give the folder .*, as .*-100$",
        "./my-rum": r"unknown model `./my-rum`; did you mean my-run\?",
        "my-run/checkpoint-10": r"hub cannot be reached .*; did you mean my-run/checkpoint-100\?; check the name",
        "my-run/checkpoint-100/config.json": "is a file; give the folder of the model .* as my-run/checkpoint-100$",
        "./no/such": r"unknown model `./no/such` \(seed",
    }.items():
        with pytest.raises(UserError, match=said):
            load_policy(spec)


def test_contexts() -> None:
    assert context_of({"max_position_embeddings": 32768}) == 32768
    assert context_of({"n_positions": 1024}) == 1024
    assert context_of({"text_config": {"max_position_embeddings": 8192}}) == 8192
    assert context_of({}) == 2048


# --- the hub ---


class Hub(BaseHTTPRequestHandler):
    """As much of the hub's API as a download needs, over one folder."""

    folder: Path
    asked: list[str]
    status = 200
    protocol_version = "HTTP/1.1"

    def answer(self, body: bool) -> None:
        self.asked.append(self.path)
        kind, content, headers = "application/json", b"", {}
        files = sorted(p.name for p in self.folder.iterdir())
        status = self.status
        if status != 200:
            headers["X-Error-Code"] = {404: "RepoNotFound", 403: "GatedRepo"}[status]
        elif "/api/models/" in self.path:
            about = {"id": "some/model", "sha": "a" * 40, "siblings": [{"rfilename": f} for f in files]}
            tree = [{"type": "file", "path": f, "size": (self.folder / f).stat().st_size, "oid": "0"} for f in files]
            content = json.dumps(tree if "/tree/" in self.path else about).encode()
        else:
            path = self.folder / self.path.rpartition("/")[2]
            content, kind = path.read_bytes(), "application/octet-stream"
            headers = {"ETag": f'"{sha1(content).hexdigest()}"', "X-Repo-Commit": "a" * 40}
        self.send_response(status)
        for name, value in ({"Content-Type": kind, "Content-Length": str(len(content))} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.wfile.write(content)

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.answer(body=True)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Hub]]:
    """A server on the loopback that has one model, and a cache that is empty."""

    class Own(Hub):
        folder, asked = hub_folder(tmp_path / "served", "qwen2"), []

    (Own.folder / "model.gguf").write_bytes(b"left out")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Own)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    yield Own
    server.shutdown()
    server.server_close()


def test_a_hub_id_is_downloaded_once(hub: type[Hub], tmp_path: Path) -> None:
    policy = load_policy("some/model")
    assert isinstance(policy.model, Decoder)
    assert policy.source == "some/model"
    assert not [path for path in hub.asked if "gguf" in path]
    folder = find_model("some/model")
    assert (folder / "model.safetensors").is_file()
    assert load_policy("some/model", adapters={"policy": Lora(2)}).source == "some/model"


def test_the_cache_serves_when_the_hub_does_not(
    hub: type[Hub], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_policy("some/model")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    load_policy("some/model")


@pytest.mark.parametrize(
    ("status", "said"), [(404, "the hub has no model `some/model`"), (403, "`some/model` is gated")]
)
def test_what_the_hub_refuses(hub: type[Hub], status: int, said: str) -> None:
    hub.status = status
    with pytest.raises(UserError, match=said):
        find_model("some/model")


def test_a_hub_that_cannot_be_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(UserError, match="neither a folder here nor in the local cache, and the hub cannot be reached"):
        find_model("some/model")


def test_the_tokenizer_must_fit(tmp_path: Path) -> None:
    hub_model("qwen2", 99).save_pretrained(tmp_path)
    hub_tokenizer("chatml").save_pretrained(tmp_path)
    with pytest.raises(UserError, match="do not belong together, so copy the tokenizer's files"):
        load_policy(str(tmp_path))
