"""Devices: what is asked for, what is there."""

from __future__ import annotations

import pytest
import torch

from torchport import shim


@pytest.mark.parametrize("asked", [None, 0, "cuda", "cuda:0", "0", torch.device("cuda"), torch.device("cuda", 0)])
def test_a_cuda_device_becomes_that_of_the_back_end(asked: object, name: str) -> None:
    device = shim.device(asked)  # type: ignore[arg-type]
    assert device.type == name
    if name in ("xla", "tpu"):
        assert device.index is None
    assert torch.ones(2).to(device).device.type == name


def test_a_cuda_device_that_settings_name_is_nobodys_but_cudas(name: str) -> None:
    """What TP118 says of `device: cuda` in a file that the program reads."""
    if name == "cuda":
        pytest.skip("here it is right")
    with pytest.raises((RuntimeError, AssertionError)):
        torch.ones(2, device=torch.device("cuda"))
    with pytest.raises((RuntimeError, AssertionError)):
        torch.nn.Linear(2, 2).to("cuda")


@pytest.mark.parametrize("asked", ["cpu", "meta", torch.device("cpu"), torch.device("meta")])
def test_other_devices_are_handed_back(asked: str | torch.device) -> None:
    assert shim.device(asked) == torch.device(asked)


@pytest.mark.parametrize("asked", ["no such device", "cuda:x"])
def test_a_bad_name_is_torchs_error(asked: str) -> None:
    with pytest.raises(RuntimeError):
        shim.device(asked)


def test_comparing_with_the_accelerator_type(name: str) -> None:
    on_device = torch.ones(1).to(shim.device())
    assert (on_device.device.type == shim.accelerator_type()) is (name != "cpu")
    assert torch.ones(1).device.type != shim.accelerator_type()


def test_availability_and_counts(name: str) -> None:
    assert shim.is_available() is (name != "cpu")
    assert (shim.device_count() == 0) is (name == "cpu")
    assert shim.current_device() == 0
    assert shim.is_bf16_supported() in ((True, False) if name == "cuda" else (name != "cpu",))


def test_what_the_device_says_of_itself(name: str) -> None:
    shim.init()
    shim.set_device(0)
    assert isinstance(shim.get_device_name(), str)
    assert shim.get_device_name()
    properties = shim.get_device_properties(0)
    assert properties.total_memory >= 0
    assert properties.name
    assert (shim.get_device_capability() > (0, 0)) is (name == "cuda")


def test_contexts_and_waiting() -> None:
    x = torch.ones(3).to(shim.device())
    with shim.device_context(0), shim.device_of(x):
        y = x + 1
    shim.synchronize()
    shim.synchronize(0)
    assert y.tolist() == [2, 2, 2]
    assert shim.is_initialized() is (shim.backend().name != "cpu")
