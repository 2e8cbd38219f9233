"""Tensor types that a program keeps in a name: they make tensors of the device, and cast tensors and modules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from torchport import shim

KINDS = [shim.FloatTensor, shim.LongTensor, torch.FloatTensor, torch.float32, "torch.LongTensor"]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_tensor_becomes_of_a_type(kind: Any) -> None:
    cast = shim.as_type(torch.ones(2, dtype=torch.int32), kind)
    ours = kind in (shim.FloatTensor, shim.LongTensor)
    assert cast.tolist() == [1, 1]
    assert cast.dtype == (torch.int64 if "Long" in str(kind) else torch.float32)
    assert cast.device.type == (shim.device().type if ours else "cpu")


def test_gradients_go_through() -> None:
    x = torch.ones(2, requires_grad=True)
    (shim.as_type(x, shim.FloatTensor) * 3).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [3, 3]


def test_a_module_becomes_of_a_type_in_place() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)).double()
    assert shim.as_type(model, shim.FloatTensor) is model
    assert {(p.device.type, p.dtype) for p in model.parameters()} == {(shim.device().type, torch.float32)}
    assert shim.as_type(model, torch.FloatTensor) is model
    assert {p.device.type for p in model.parameters()} == {"cpu"}


VALUES = [np.array([[1.5, 2.0]]), [[1.5, 2.0]], torch.tensor([[1.5, 2.0]])]


@pytest.mark.parametrize("given", VALUES, ids=["array", "list", "tensor"])
def test_values_are_taken_as_torch_takes_them(given: Any) -> None:
    made = shim.FloatTensor(given)
    assert (made.tolist(), made.dtype) == ([[1.5, 2.0]], torch.float32)
    assert made.device.type == shim.device().type


def test_sizes_make_a_tensor_that_can_be_filled() -> None:
    like = torch.zeros(2, 3)
    for made in (shim.FloatTensor(2, 3), shim.FloatTensor(like.size()), shim.FloatTensor(like.size(0), 3)):
        assert made.fill_(1.0).sum().item() == 6


def test_what_is_no_type_is_refused() -> None:
    with pytest.raises((TypeError, ValueError)):
        shim.as_type(torch.ones(1), 3)


def test_the_name_of_its_type_is_taken_of_a_tensor_on_the_device() -> None:
    x = torch.ones(2).to(shim.device())
    kind = x.type()
    assert shim.as_type(torch.tensor([1, 2]), kind).dtype == torch.float32
    assert shim.as_type(torch.tensor([1, 2]), kind).device.type == x.device.type
