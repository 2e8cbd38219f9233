"""Compiling, recomputing activations, fused optimizers, default tensor type."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from torchport.shim.devices import device
from torchport.shim.selection import backend

OutOfMemoryError = torch.OutOfMemoryError

_DTYPES = {
    "FloatTensor": torch.float32,
    "DoubleTensor": torch.float64,
    "HalfTensor": torch.float16,
    "BFloat16Tensor": torch.bfloat16,
}


def compile(model: Callable[..., Any] | None = None, **kwargs: Any) -> Any:
    """torch.compile, with the compiler and the options of this back end; also a decorator."""
    if model is None:
        return functools.partial(compile, **kwargs)
    return torch.compile(model, **backend().compile_arguments(kwargs))


def checkpoint(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """torch.utils.checkpoint.checkpoint: recompute ``function(*args)`` in the backward pass."""
    return backend().checkpoint(function, args, kwargs)


def is_fused_optimizer_supported() -> bool:
    """Whether ``fused=True`` works for parameters on the device."""
    return backend().supports_fused_optimizers()


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
