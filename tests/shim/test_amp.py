"""Mixed precision."""

from __future__ import annotations

import logging
import pickle
import warnings
from typing import Any

import pytest
import torch
from torch import nn
from torch.amp.grad_scaler import OptState

from torchport import shim


def product(**options: Any) -> torch.dtype:
    x = torch.ones(4, 4).to(shim.device())
    with shim.autocast(**options):
        return (x @ x).dtype


@pytest.mark.parametrize("dtype", [None, torch.float16, torch.bfloat16])
def test_the_dtype_computed_in(dtype: torch.dtype | None, name: str) -> None:
    expected = {"cpu": torch.float32, "cuda": dtype or torch.float16}.get(name, torch.bfloat16)
    assert product(dtype=dtype) == expected
    assert product(dtype=dtype, enabled=False) == torch.float32


@pytest.mark.parametrize("dtype", [None, torch.float16, torch.bfloat16])
def test_with_a_device_type_it_is_torch_autocast(dtype: torch.dtype | None, name: str) -> None:
    own = shim.device().type
    expected = torch.bfloat16
    if name in ("cpu", "cuda"):
        expected = dtype or torch.get_autocast_dtype(name)
    assert product(device_type=own, dtype=dtype) == expected
    x = torch.ones(2, 2)
    with shim.autocast(device_type="cpu", dtype=torch.bfloat16):
        assert (x @ x).dtype == torch.bfloat16
    assert (product(device_type="cuda", dtype=torch.bfloat16) == torch.float32) is (name == "cpu")


def test_nothing_warns_and_the_change_of_dtype_is_logged_once(caplog: pytest.LogCaptureFixture, name: str) -> None:
    x = torch.ones(2, 2).to(shim.device())
    with warnings.catch_warnings(), caplog.at_level(logging.WARNING, "torchport.shim"):
        warnings.simplefilter("error")
        for _ in range(3):
            with shim.autocast(dtype=torch.float16):
                pass
        shim.sync()
        del x
    said = [r.getMessage() for r in caplog.records if r.name == "torchport.shim"]
    if name in ("cpu", "cuda"):
        assert said == []
    else:
        assert len(said) == 1
        assert said[0].startswith(__file__)
        assert "bfloat16" in said[0]


def test_decorator_reuse_and_nesting(name: str) -> None:
    x = torch.ones(2, 2).to(shim.device())
    outer = shim.autocast(True, torch.bfloat16)

    @outer
    def decorated(a: torch.Tensor) -> torch.Tensor:
        return a @ a

    expected = torch.float32 if name == "cpu" else torch.bfloat16
    assert decorated(x).dtype == decorated(x).dtype == expected
    with outer:
        with shim.autocast(True, torch.bfloat16), shim.autocast(False):
            assert (x @ x).dtype == torch.float32
        assert (x @ x).dtype == expected
    assert (x @ x).dtype == torch.float32


def test_layer_norm_is_computed_in_float32_as_on_cuda(name: str) -> None:
    torch.manual_seed(0)
    layer = nn.LayerNorm(8)
    x = torch.randn(4, 8)
    expected = layer(x)
    layer.to(shim.device())
    with shim.autocast(dtype=torch.bfloat16):
        result = layer(x.to(shim.device()).bfloat16() if name != "cpu" else x)
        result.float().sum().backward()
    assert torch.allclose(result.float().cpu(), expected, atol=3e-2)
    assert layer.weight.grad is not None
    assert layer.weight.grad.dtype == torch.float32
    if name in ("tpu", "cuda"):
        assert result.dtype == torch.float32


class TestGradScaler:
    def test_is_the_real_class(self) -> None:
        scaler: torch.amp.GradScaler = shim.GradScaler(1024.0, growth_interval=10, enabled=True)
        assert isinstance(scaler, shim.GradScaler)
        assert isinstance(scaler, torch.amp.GradScaler)

    def test_scales_on_cuda_only(self, name: str) -> None:
        scaler = shim.GradScaler(init_scale=1024.0)
        model = nn.Linear(2, 1).to(shim.device())
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        before = model.weight.detach().cpu().clone()
        loss = model(torch.ones(1, 2).to(shim.device())).sum()
        scaled = scaler.scale(loss)
        assert (scaled is loss) is (name != "cuda")
        scaled.backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        shim.sync()
        assert torch.allclose(before - model.weight.detach().cpu(), torch.ones(1, 2))
        assert scaler.get_scale() == (1024.0 if name == "cuda" else 1.0)
        assert scaler.is_enabled() is (name == "cuda")

    def test_keeps_what_programs_read_of_an_enabled_one(self, name: str) -> None:
        scaler = shim.GradScaler(init_scale=4.0, growth_interval=3)
        model = nn.Linear(2, 1).to(shim.device())
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        scaler.scale(model(torch.ones(1, 2).to(shim.device())).sum()).backward()
        assert scaler._per_optimizer_states[id(optimizer)]["stage"] is OptState.READY
        assert scaler._get_scale_async().item() == (4.0 if name == "cuda" else 1.0)
        assert (scaler._growth_interval, scaler._growth_factor) == (3, 2.0)
        assert pickle.loads(pickle.dumps(scaler)).get_scale() == scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        assert scaler.state_dict() == {} or name == "cuda"

    def test_takes_states_of_other_back_ends(self, name: str) -> None:
        scaler = shim.GradScaler()
        written = {"scale": 8.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 9}
        written["_growth_tracker"] = 0
        scaler.load_state_dict(written)
        assert scaler.get_scale() == (8.0 if name == "cuda" else 1.0)
        scaler.load_state_dict({})
        scaler.load_state_dict(scaler.state_dict())


class Double(torch.autograd.Function):
    seen: torch.dtype | None = None

    @staticmethod
    @shim.custom_fwd(cast_inputs=torch.float16)
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        Double.seen = x.dtype
        return 2 * x

    @staticmethod
    @shim.custom_bwd
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return 2 * gradient


def test_custom_autograd_functions(name: str) -> None:
    x = torch.ones(3, device=shim.device(), requires_grad=True)
    with shim.autocast():
        y = Double.apply(x)
    y.float().sum().backward()
    shim.sync()
    assert x.grad is not None
    assert x.grad.tolist() == [2, 2, 2]
    assert Double.seen == {"cpu": torch.float32, "cuda": torch.float16}.get(name, torch.bfloat16)
