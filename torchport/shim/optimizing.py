"""What optimizers and gradient clipping can do for parameters on the device."""

from __future__ import annotations

from typing import Any

import torch

from torchport.shim.notices import notice
from torchport.shim.selection import backend


def is_fused_optimizer_supported() -> bool:
    """Whether ``fused=True`` works for parameters on the device."""
    return backend().supports_fused_optimizers()


def is_foreach_optimizer_supported() -> bool:
    """Whether ``foreach=True`` works for parameters on the device."""
    return backend().supports_foreach


def is_capturable_optimizer_supported() -> bool:
    """Whether ``capturable=True`` works for parameters on the device."""
    return backend().supports_capturable


def clip_grad_norm_(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> torch.Tensor:
    """torch.nn.utils.clip_grad_norm_, with ``foreach`` where the back end has it. Returns the norm, on the device.

    The norm itself brings nothing to the host; ``error_if_nonfinite=True`` does, on every back end.
    """
    from torch.nn.utils.clip_grad import clip_grad_norm_  # torch_xla replaces the one in torch.nn.utils

    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, _foreach("clip_grad_norm_", foreach))


def clip_grad_value_(parameters: Any, clip_value: float, foreach: bool | None = None) -> None:
    """torch.nn.utils.clip_grad_value_, with ``foreach`` where the back end has it."""
    torch.nn.utils.clip_grad_value_(parameters, clip_value, _foreach("clip_grad_value_", foreach))


def _foreach(what: str, asked: bool | None) -> bool | None:
    if asked and not backend().supports_foreach:
        notice(f"{what}: foreach=True is dropped on {backend().name}")
        return None
    return asked
