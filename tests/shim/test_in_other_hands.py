"""What other code does with the shim's objects: torch.compile, isinstance, decorators."""

from __future__ import annotations

import torch

from torchport import shim


def test_autocast_is_traced_whole() -> None:
    shim.device()

    def function(x: torch.Tensor) -> torch.Tensor:
        with shim.autocast(dtype=torch.float16):
            y = x @ x
        with shim.autocast(enabled=False):
            return y.float() + x

    compiled = torch.compile(function, backend="eager", fullgraph=True)
    x = torch.ones(2, 2, device=shim.device())
    assert torch.equal(compiled(x).cpu(), function(x).cpu())


def test_device_and_type_are_traced_whole() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x + 1 if x.device.type == shim.accelerator_type() else x + torch.zeros(2, device=shim.device())

    compiled = torch.compile(function, backend="eager", fullgraph=True)
    x = torch.ones(2, device=shim.device())
    assert torch.equal(compiled(x).cpu(), function(x).cpu())


def test_autocast_decorates() -> None:
    @shim.autocast(dtype=torch.bfloat16)
    def function(x: torch.Tensor) -> torch.Tensor:
        return x @ x

    dtype = torch.bfloat16 if shim.is_available() else torch.float32
    assert function(torch.ones(2, 2, device=shim.device())).dtype == dtype


def test_isinstance_is_true_of_what_pytorch_makes() -> None:
    inner = torch.nn.Linear(2, 2)
    wrapped = torch.nn.DataParallel.__new__(torch.nn.DataParallel)
    torch.nn.Module.__init__(wrapped)
    assert isinstance(wrapped, shim.DataParallel)
    assert isinstance(shim.DataParallel(inner), torch.nn.DataParallel)
    assert not isinstance(inner, shim.DataParallel)
    assert isinstance(torch.amp.GradScaler("cpu", enabled=False), shim.GradScaler)
    assert isinstance(shim.GradScaler(), torch.amp.GradScaler)


def test_a_typed_device_name_is_read() -> None:
    assert shim.device_string("cuda") == str(shim.device())
    assert shim.device_string("cuda:0") == str(shim.device(0))
    assert shim.device_string("mps") == "mps"
