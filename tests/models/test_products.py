from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from evolvent.models import products
from evolvent.models.checkpoint import seed_config
from evolvent.models.decoder import Decoder, DecoderConfig, initialise
from evolvent.models.products import FEW, LARGE, SHORT, exact, fast, linear

CPU = torch.device("cpu")
needs_onednn = pytest.mark.skipif(not products.available(), reason="this processor has no AVX-512 for oneDNN")


@pytest.mark.parametrize("rows", [1, FEW - 1, FEW, 200])
@pytest.mark.parametrize("bias", [True, False])
def test_products_are_those_of_torch(rows: int, bias: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    x, weight = torch.randn(rows, 1, 192, generator=generator), torch.randn(256, 192, generator=generator)
    added = torch.randn(256, generator=generator) if bias else None
    with torch.inference_mode():
        torch.testing.assert_close(linear(x, weight, added), F.linear(x, weight, added), atol=1e-4, rtol=1e-5)


@needs_onednn
def test_onednn_is_used_only_where_it_gains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(F, "linear", lambda *_: pytest.fail("torch's own product"))
    large = torch.randn(256, 192)
    with torch.inference_mode():
        linear(torch.randn(FEW, 192), large)
        for x, weight in ((torch.randn(FEW - 1, 192), large), (torch.randn(500, 64), torch.randn(96, 64))):
            with pytest.raises(pytest.fail.Exception):
                linear(x, weight)
        with pytest.raises(pytest.fail.Exception):
            linear(torch.randn(FEW, 192).double(), large.double())


@needs_onednn
@pytest.mark.skipif(not exact(), reason="this processor rounds to bfloat16")
def test_gradients_of_the_fast_pass_are_the_same() -> None:
    model = Decoder(DecoderConfig.read(seed_config(2, 64, 4, 128, 64, 100)))
    initialise(model, torch.Generator().manual_seed(0))
    tokens = torch.randint(0, 90, (40, 20), generator=torch.Generator().manual_seed(1))

    def gradients() -> list[torch.Tensor]:
        model.zero_grad(set_to_none=True)
        F.cross_entropy(model.head(model(tokens)).flatten(0, 1), tokens.flatten()).backward()
        return [p.grad.clone() for p in model.parameters() if p.grad is not None]

    plain = gradients()
    with fast(CPU, LARGE, SHORT):
        assert torch.get_float32_matmul_precision() == "medium"
        quick = gradients()
    for a, b in zip(plain, quick, strict=True):
        torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize(
    ("device", "parameters", "longest", "there"),
    [
        (torch.device("cuda"), LARGE, SHORT, True),
        (CPU, LARGE - 1, SHORT, True),
        (CPU, LARGE, SHORT + 1, True),
        (CPU, LARGE, SHORT, False),
    ],
)
def test_torch_is_left_as_it_was(
    device: torch.device, parameters: int, longest: int, there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(products, "available", lambda: there)
    monkeypatch.setattr(products, "exact", lambda: there)
    before = torch.get_float32_matmul_precision()
    with fast(device, parameters, longest):
        assert torch.get_float32_matmul_precision() == before


def test_the_setting_goes_back_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "available", lambda: True)
    monkeypatch.setattr(products, "exact", lambda: True)
    before = torch.get_float32_matmul_precision()
    with pytest.raises(ZeroDivisionError), fast(CPU, LARGE, SHORT):
        raise ZeroDivisionError
    assert torch.get_float32_matmul_precision() == before


@pytest.mark.parametrize(
    ("text", "wanted"), [("vendor_id\t: GenuineIntel\n", True), ("vendor_id\t: AuthenticAMD\n", False)]
)
def test_the_maker_of_the_processor(tmp_path: Path, text: str, wanted: bool) -> None:
    (tmp_path / "cpuinfo").write_text(text)
    assert products.made_by_intel(tmp_path / "cpuinfo") is wanted
    assert not products.made_by_intel(tmp_path / "nothing")
