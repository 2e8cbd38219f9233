"""Settings of torch itself: the default tensor type, the precision of products, inference mode."""

from __future__ import annotations

from typing import Any

import torch

from torchport.shim.devices import device
from torchport.shim.selection import backend

_DTYPES = {
    "FloatTensor": torch.float32,
    "DoubleTensor": torch.float64,
    "HalfTensor": torch.float16,
    "BFloat16Tensor": torch.bfloat16,
}


def set_default_tensor_type(t: Any) -> None:
    """torch.set_default_tensor_type; a CUDA type makes new tensors on the device of this back end.

    Raises:
        TypeError: ``t`` is no floating point tensor type.
    """
    name = t if isinstance(t, str) else f"{t.__module__}.{t.__name__}"
    place, _, kind = name.rpartition(".")
    if kind not in _DTYPES:
        raise TypeError(f"invalid type object: {name!r} is no floating point tensor type")
    torch.set_default_dtype(_DTYPES[kind])
    torch.set_default_device(device() if place == "torch.cuda" else "cpu")


def set_float32_matmul_precision(precision: str) -> None:
    """torch.set_float32_matmul_precision ("highest", "high" or "medium"), also for the device."""
    backend().set_matmul_precision(precision)


def inference_mode(mode: Any = True) -> Any:
    """torch.inference_mode: gives a context manager that is also a decorator. PyTorch/XLA takes no_grad instead."""
    return backend().inference_mode(mode)
