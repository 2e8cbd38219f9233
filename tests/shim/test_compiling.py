"""Compiling, recomputing, fused optimizers, pinned memory, default tensor type."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from torchport import shim


def grads(model: nn.Module) -> list[torch.Tensor]:
    return [p.grad.detach().cpu().clone() for p in model.parameters() if p.grad is not None]


def body() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 4))


@pytest.mark.parametrize(
    "options",
    [{}, {"use_reentrant": True}, {"use_reentrant": False}, {"use_reentrant": False, "preserve_rng_state": False}],
)
@pytest.mark.filterwarnings("ignore:.*use_reentrant.*")
@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad")
def test_checkpoint_gives_the_same_gradients(options: dict[str, Any]) -> None:
    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(1))
    plain = body()
    plain(x).pow(2).sum().backward()
    model = body().to(shim.device())
    inputs = x.to(shim.device())
    if options.get("use_reentrant") is not False:
        inputs.requires_grad_()
    shim.checkpoint(model, inputs, **options).pow(2).sum().backward()
    shim.sync()
    assert len(grads(model)) == 4
    assert all(torch.allclose(a, b, atol=1e-2) for a, b in zip(grads(model), grads(plain), strict=True))


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoint_sequential_runs_every_layer(reentrant: bool) -> None:
    layer = body().to(shim.device())
    x = torch.ones(2, 4).to(shim.device()).requires_grad_()
    want = layer(layer(layer(x)))
    got = shim.checkpoint_sequential(nn.Sequential(layer, layer, layer), 2, x, use_reentrant=reentrant)
    assert torch.allclose(got.cpu(), want.cpu(), atol=1e-4)
    got.sum().backward()
    assert x.grad is not None
    assert len(grads(layer)) == 4


def test_checkpoint_with_keywords_and_several_outputs() -> None:
    layer = nn.Linear(3, 3).to(shim.device())

    def function(a: torch.Tensor, *, scale: float) -> tuple[torch.Tensor, torch.Tensor]:
        return layer(a) * scale, a + 1

    a = torch.ones(2, 3).to(shim.device())
    first, second = shim.checkpoint(function, a, use_reentrant=False, scale=2.0)
    (first.sum() + second.sum()).backward()
    assert layer.bias.grad is not None
    assert layer.bias.grad.tolist() == [4, 4, 4]
    with torch.no_grad():
        assert not shim.checkpoint(function, a, use_reentrant=False, scale=1.0)[0].requires_grad


def test_checkpoint_under_autocast_recomputes_alike() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.Linear(4, 2)).to(shim.device())
    x = torch.randn(3, 4).to(shim.device())
    with shim.autocast(dtype=torch.bfloat16):
        loss = shim.checkpoint(model, x, use_reentrant=False).float().pow(2).sum()
    loss.backward()
    recomputed = grads(model)
    model.zero_grad()
    with shim.autocast(dtype=torch.bfloat16):
        loss = model(x).float().pow(2).sum()
    loss.backward()
    assert all(torch.allclose(a, b, atol=2e-2, rtol=2e-2) for a, b in zip(recomputed, grads(model), strict=True))


@pytest.mark.filterwarnings("ignore")  # compilers warn of much that is not ours
def test_compile_trains(name: str) -> None:
    x = torch.randn(3, 4)
    plain = body()
    plain(x).pow(2).sum().backward()
    model = body().to(shim.device())
    arguments: dict[str, Any] = {"mode": "max-autotune", "dynamic": True} if name in ("xla", "tpu") else {}
    if name == "cpu":
        arguments["backend"] = "eager"  # the machine may have no C++ compiler
    compiled = shim.compile(model, **arguments)
    try:
        compiled(x.to(shim.device())).pow(2).sum().backward()
    except NotImplementedError as error:
        if "GetOutputMemoryKinds" not in str(error):
            raise
        pytest.skip("the PJRT plug-in xla-cpu-pjrt cannot compile; lammps-jax-pjrt-cpu can")
    shim.sync()
    assert all(torch.allclose(a, b, atol=1e-2) for a, b in zip(grads(model), grads(plain), strict=True))


@pytest.mark.parametrize("backend", ["inductor", "cudagraphs", None])
def test_compile_takes_the_compiler_of_the_back_end(backend: str | None, name: str) -> None:
    given = {"mode": "reduce-overhead", "fullgraph": True, "dynamic": True}
    if backend is not None:
        given["backend"] = backend
    taken = shim.backend().compile_arguments(given)
    expected = {"xla": {"fullgraph": True, "backend": "openxla"}, "tpu": {"fullgraph": True}}
    assert taken == expected.get(name, given)
    assert given["fullgraph"] is True


def test_compile_is_a_decorator() -> None:
    @shim.compile(backend="eager")
    def function(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    assert function(torch.ones(2)).tolist() == [2, 2]


@pytest.mark.parametrize("optimizer", [torch.optim.AdamW, torch.optim.SGD])
def test_fused_optimizers_are_supported_where_it_says_so(optimizer: Any) -> None:
    parameter = nn.Parameter(torch.ones(3).to(shim.device()))
    parameter.grad = torch.ones_like(parameter)
    if not shim.is_fused_optimizer_supported():
        with pytest.raises(RuntimeError, match="fused"):
            optimizer([parameter], lr=0.1, fused=True).step()
        return
    expected = nn.Parameter(torch.ones(3))
    expected.grad = torch.ones(3)
    optimizer([parameter], lr=0.1, fused=True).step()
    optimizer([expected], lr=0.1).step()
    assert torch.allclose(parameter.detach().cpu(), expected.detach(), atol=1e-5)


def test_pinned_memory() -> None:
    tensor = torch.ones(3)
    pinned = shim.pin_memory(tensor)
    assert pinned.tolist() == [1, 1, 1]
    assert (pinned is tensor) is (not shim.is_pin_memory_supported())
    loader = torch.utils.data.DataLoader([tensor] * 4, batch_size=2, pin_memory=shim.is_pin_memory_supported())
    assert [batch.shape for batch in loader] == [(2, 3), (2, 3)]


@pytest.mark.parametrize("kind", ["torch.cuda.FloatTensor", "torch.cuda.DoubleTensor", torch.cuda.FloatTensor])
def test_default_tensor_type(kind: Any) -> None:
    shim.set_default_tensor_type(kind)
    made = torch.zeros(2)
    assert made.device.type == shim.device().type
    assert made.dtype == (torch.float64 if "Double" in str(kind) else torch.float32)
    shim.set_default_tensor_type("torch.FloatTensor")
    assert torch.zeros(2).device.type == "cpu"
    with pytest.raises(TypeError, match="IntTensor"):
        shim.set_default_tensor_type("torch.cuda.IntTensor")


def test_out_of_memory_is_an_exception_class() -> None:
    assert issubclass(shim.OutOfMemoryError, RuntimeError)
