"""Tensor types of the device: what ``torch.cuda.FloatTensor`` and its like, kept in a name, are for CUDA."""

from __future__ import annotations

from typing import Any, TypeVar, cast

import torch

from torchport.shim.devices import accelerator_type, device
from torchport.shim.selection import backend
from torchport.shim.support import TENSORS

Movable = TypeVar("Movable", torch.Tensor, torch.nn.Module)
NAMES = tuple(f"{kind}Tensor" for kind in TENSORS)


class TensorType(type):
    """The type of a tensor type: its class makes tensors on the device, and ``isinstance`` knows them."""

    dtype: torch.dtype

    def __instancecheck__(cls, instance: object) -> bool:
        if not isinstance(instance, torch.Tensor):
            return False
        return instance.dtype == cls.dtype and instance.device.type == accelerator_type()

    def __call__(cls, *args: Any, **kwargs: Any) -> torch.Tensor:
        """As ``torch.FloatTensor(...)``: of sizes an uninitialised tensor, of numbers one that holds them."""
        if len(args) == 1 and isinstance(args[0], torch.Tensor):
            return args[0].to(device(), cls.dtype)
        made: torch.Tensor = getattr(torch, cls.__name__)(*args, **kwargs)
        return made.to(device())


def made(name: str, kind: type[TensorType] = TensorType) -> TensorType:
    """The tensor type of that name; it calls itself CUDA's, for code that reads the device off its name."""
    return kind(name, (), {"__module__": "torch.cuda", "dtype": getattr(torch, name).dtype})


def as_type(value: Movable, dtype: Any, non_blocking: bool = False) -> Movable:
    """``value.type(dtype)`` of a tensor or a module, where ``dtype`` may also be a tensor type of the shim.

    With one, or with what ``tensor.type()`` says of a tensor of the device (PyTorch/XLA does not take its own
    "torch.xla.FloatTensor"), it moves to the device. Raises TypeError where ``dtype`` is no dtype or tensor type.
    """
    wanted = _dtype_on_device(dtype)
    if wanted is not None:
        return value.to(device(), wanted, non_blocking=non_blocking)
    return value.type(dtype, non_blocking) if non_blocking else value.type(dtype)


def _dtype_on_device(kind: Any) -> torch.dtype | None:
    if isinstance(kind, TensorType):
        return kind.dtype
    place, _, name = kind.rpartition(".") if isinstance(kind, str) else ("", "", "")
    if name in NAMES and backend().native is None and place in ("torch.cuda", f"torch.{device().type}"):
        return cast(torch.dtype, getattr(torch, name).dtype)
    return None


def __getattr__(name: str) -> Any:
    """``FloatTensor`` and its like: CUDA's own, or a TensorType, which ``as_type`` takes, not ``Tensor.type``."""
    if name not in NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return made(name) if backend().native is None else getattr(torch.cuda, name)
