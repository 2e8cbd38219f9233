"""What BatchNorm remembers in training, and computes from it after eval(), is what the CPU remembers and computes."""

from __future__ import annotations

import copy
import os

import pytest
import torch

from torchport import shim

MODULES = [
    pytest.param(torch.nn.BatchNorm2d(4), (6, 4, 3, 3), id="2d"),
    pytest.param(torch.nn.BatchNorm1d(4, momentum=None), (8, 4), id="cumulative average"),
    pytest.param(torch.nn.BatchNorm1d(4, affine=False), (8, 4, 5), id="without weights"),
    pytest.param(torch.nn.BatchNorm3d(4, track_running_stats=False), (2, 4, 2, 2, 2), id="not tracked"),
    pytest.param(torch.nn.InstanceNorm2d(4, affine=True, track_running_stats=True), (2, 4, 3, 3), id="instance norm"),
]


@pytest.mark.parametrize(("module", "shape"), MODULES)
def test_training_then_eval(module: torch.nn.Module, shape: tuple[int, ...]) -> None:
    torch.manual_seed(5)
    here, there = copy.deepcopy(module), copy.deepcopy(module).to(shim.device())
    for turn in range(3):
        batch = torch.randn(shape) * 3 + turn
        want, got = here(batch), there(batch.to(shim.device()))
        torch.testing.assert_close(got.cpu(), want, rtol=1e-4, atol=1e-5)
    for name, want in here.named_buffers():
        torch.testing.assert_close(dict(there.named_buffers())[name].cpu(), want, rtol=1e-4, atol=1e-5)
    batch = torch.randn(shape)
    want, got = here.eval()(batch), there.eval()(batch.to(shim.device()))
    torch.testing.assert_close(got.cpu(), want, rtol=1e-4, atol=1e-5)


def test_gradients_are_those_of_the_cpu() -> None:
    torch.manual_seed(5)
    here = torch.nn.BatchNorm1d(4)
    there = copy.deepcopy(here).to(shim.device())
    batch, weights = torch.randn(8, 4), torch.randn(8, 4)
    (here(batch) * weights).sum().backward()
    (there(batch.to(shim.device())) * weights.to(shim.device())).sum().backward()
    for want, got in zip(here.parameters(), there.parameters(), strict=True):
        assert want.grad is not None
        assert got.grad is not None
        torch.testing.assert_close(got.grad.cpu(), want.grad, rtol=1e-4, atol=1e-5)


def test_nothing_is_remembered_outside_training() -> None:
    module = torch.nn.BatchNorm1d(4).to(shim.device()).eval()
    module(torch.randn(8, 4).to(shim.device()))
    assert module.running_mean is not None
    assert module.running_mean.abs().sum().item() == 0


@pytest.mark.skipif(
    os.environ["TORCHPORT_BACKEND"] == "xla", reason="PyTorch/XLA takes the operation apart before any kernel"
)
@torch.inference_mode()
def test_training_in_inference_mode() -> None:
    here = torch.nn.BatchNorm1d(4)
    there = copy.deepcopy(here).to(shim.device())
    batch = torch.randn(8, 4) * 3
    here(batch), there(batch.to(shim.device()))
    assert here.running_var is not None
    assert there.running_var is not None
    torch.testing.assert_close(there.running_var.cpu(), here.running_var, rtol=1e-4, atol=1e-5)
