"""Operators that PyTorch/XLA by itself computes wrongly in silence give what the CPU gives."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from torchport import shim

NAN, INF = math.nan, math.inf
FLOATS = torch.tensor([[1.0, NAN, 3.0], [4.0, 5.0, 6.0]])
LINE = torch.tensor([1.0, NAN, INF, -INF, -2.0])
WHOLE = torch.tensor([[0, 1, 2], [3, 4, 0]])
MASK = WHOLE > 0

OPERATORS: dict[str, tuple[torch.Tensor, Callable[[torch.Tensor], Any]]] = {
    "cumsum of a mask": (MASK, lambda x: torch.cumsum(x, 1) - 1),
    "cumsum of int32": (WHOLE.int(), lambda x: x.cumsum(-1)),
    "cumsum of uint8": ((WHOLE * 100).to(torch.uint8), lambda x: x.cumsum(1)),
    "cumsum to a dtype": (WHOLE.int(), lambda x: x.cumsum(1, dtype=torch.float32)),
    "cumsum in place": (WHOLE.int(), lambda x: x.cumsum_(1)),
    "cumprod of a mask": (MASK, lambda x: x.cumprod(1)),
    "count_nonzero of a mask": (MASK, lambda x: x.count_nonzero()),
    "count_nonzero along": (FLOATS, lambda x: x.count_nonzero(dim=(0, 1))),
    "count_nonzero along one": (WHOLE, lambda x: x.count_nonzero(1)),
    "amax of all": (WHOLE, lambda x: x.amax()),
    "amax of a mask": (MASK, lambda x: x.amax()),
    "amin of all, NaN": (FLOATS, lambda x: x.amin()),
    "amax along": (FLOATS, lambda x: x.amax(1, keepdim=True)),
    "amin along two": (FLOATS, lambda x: x.amin((0, 1))),
    "max of all": (FLOATS, lambda x: x.max()),
    "min of all": (FLOATS, lambda x: x.min()),
    "max of whole numbers": (WHOLE, lambda x: x.max()),
    "max along": (FLOATS, lambda x: x.max(1)),
    "max along, of equals": (torch.tensor([[1.0, 3.0, 3.0]]), lambda x: x.max(1)),
    "min along, keeping": (FLOATS, lambda x: x.min(1, keepdim=True)),
    "argmax": (FLOATS, lambda x: x.argmax()),
    "argmin along": (FLOATS, lambda x: x.argmin(1, keepdim=True)),
    "maximum": (LINE, lambda x: torch.maximum(x, x.flip(0))),
    "minimum": (LINE, lambda x: torch.minimum(x, x.flip(0))),
    "clamp": (LINE, lambda x: x.clamp(0.5, 1.5)),
    "clamp from below": (LINE, lambda x: x.clamp(min=1)),
    "clamp from above": (LINE, lambda x: x.clamp(max=1.0)),
    "clamp_max": (LINE, lambda x: x.clamp_max(1.0)),
    "clamp in place": (LINE, lambda x: x.clamp_(max=1.0)),
    "clamp the wrong way round": (LINE, lambda x: x.clamp(2, 1)),
    "clamp by NaN": (LINE, lambda x: x.clamp(min=NAN)),
    "clamp by tensors": (LINE, lambda x: x.clamp(x.new_tensor(0.5), x.new_tensor([1.5]))),
    "clamp whole numbers": (WHOLE, lambda x: x.clamp(1, 3)),
    "clamp whole numbers by others": (WHOLE, lambda x: x.clamp(0.5, 1.5)),
    "clamp a mask": (MASK, lambda x: x.clamp(0, 2)),
    "norm": (WHOLE.float(), lambda x: torch.linalg.vector_norm(x)),
    "norm 1": (WHOLE.float(), lambda x: x.norm(1)),
    "norm 2 along": (WHOLE.float(), lambda x: x.norm(dim=1, keepdim=True)),
    "norm to a dtype": (WHOLE.float(), lambda x: torch.linalg.vector_norm(x, 2, dim=1, dtype=torch.float64)),
    "norm inf to a dtype": (WHOLE.float(), lambda x: torch.linalg.vector_norm(x, INF, dim=1, dtype=torch.float64)),
    "norm of a matrix": (WHOLE.float(), lambda x: torch.linalg.matrix_norm(x, INF)),
    "norm inf": (WHOLE.float(), lambda x: x.norm(INF, dim=1)),
    "norm minus inf": (WHOLE.float() - 5, lambda x: torch.linalg.vector_norm(x, -INF, dim=(0, 1))),
    "norm inf of NaN": (FLOATS, lambda x: x.norm(INF)),
}


@pytest.mark.parametrize("case", OPERATORS)
def test_result_is_that_of_the_cpu(case: str, name: str) -> None:
    if name == "tpu":
        pytest.skip("TorchTPU's own kernels; the plug-in loses NaN as XLA's CPU compiler does, and aborts in cumsum")
    x, function = OPERATORS[case]
    want, got = function(x.clone()), function(x.to(shim.device()).clone())
    for here, there in zip(want, got, strict=True) if isinstance(want, tuple) else [(want, got)]:
        assert there.dtype == here.dtype
        torch.testing.assert_close(there.cpu(), here, equal_nan=True)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.clamp(-1, 2),
        lambda x: x.clamp_min(0),
        lambda x: x.max(),
        lambda x: x.amax(),
        lambda x: x.max(0).values,
        lambda x: x.norm(INF),
        lambda x: x.cumsum(0),
        lambda x: torch.maximum(x, x * 0.5),
    ],
)
def test_gradient_is_that_of_the_cpu(function: Callable[[torch.Tensor], torch.Tensor], name: str) -> None:
    if name == "tpu":
        pytest.skip("TorchTPU's own kernels; the plug-in aborts in cumsum")
    here = torch.tensor([1.0, -2.0, 5.0], requires_grad=True)
    there = here.detach().to(shim.device()).requires_grad_()
    function(here).sum().backward()
    function(there).sum().backward()
    assert here.grad is not None
    assert there.grad is not None
    assert there.grad.tolist() == here.grad.tolist()


FROZEN = [(nn.BatchNorm2d, (4, 3, 5, 5)), (nn.BatchNorm1d, (4, 3)), (nn.BatchNorm3d, (2, 3, 2, 2, 2))]


@pytest.mark.parametrize(("kind", "shape"), FROZEN)
@pytest.mark.parametrize("affine", [True, False])
def test_a_frozen_batch_norm_trains_what_is_before_it(
    kind: Callable[..., nn.Module], shape: tuple[int, ...], affine: bool
) -> None:
    torch.manual_seed(0)
    here = kind(3, affine=affine)
    here(torch.randn(shape))
    here.eval()
    there = copy.deepcopy(here).to(shim.device())
    x, weights = torch.randn(shape), torch.randn(shape)
    inputs = [x.clone().requires_grad_(), x.to(shim.device()).requires_grad_()]
    (here(inputs[0]) * weights).sum().backward()
    (there(inputs[1]) * weights.to(shim.device())).sum().backward()
    pairs = [(inputs[0], inputs[1]), *zip(here.parameters(), there.parameters(), strict=True)]
    for want, got in pairs:
        assert want.grad is not None
        assert got.grad is not None
        torch.testing.assert_close(got.grad.cpu(), want.grad, rtol=1e-4, atol=1e-5)


def test_a_gru_runs_on_the_cpu_and_on_the_device() -> None:
    shim.device()
    torch.manual_seed(0)
    layer = nn.GRU(3, 4)
    x = torch.randn(2, 1, 3)
    want = layer(x)[0]
    got = layer.to(shim.device())(x.to(shim.device()))[0]
    torch.testing.assert_close(got.cpu(), want, rtol=1e-3, atol=1e-4)


def test_clipping_on_the_cpu_stays_there() -> None:
    shim.device()
    parameter = nn.Parameter(torch.ones(2))
    assert nn.utils.clip_grad_norm_([parameter], 1.0).device.type == "cpu"
