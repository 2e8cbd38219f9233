"""Activation checkpointing on PyTorch/XLA, which has the reentrant form only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torchport.shim.notices import notice

_UNKNOWN_TO_XLA = ("context_fn", "determinism_check", "debug", "early_stop")


def checkpoint_on_xla(function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """torch.utils.checkpoint.checkpoint by torch_xla's own, whose optimisation barriers keep the recomputation.

    ``use_reentrant=False`` is emulated: keyword arguments are bound, and one more input carries a gradient, so that the
    parameters inside get theirs even if no other input needs one.
    """
    from torch_xla.utils.checkpoint import checkpoint

    kwargs = dict(options)
    reentrant = kwargs.pop("use_reentrant", None)
    preserve = kwargs.pop("preserve_rng_state", True)
    for key in _UNKNOWN_TO_XLA:
        if kwargs.pop(key, None) is not None:
            notice(f"checkpoint: {key}= is dropped on xla")
    if reentrant is not False:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        return checkpoint(function, *args, use_reentrant=True, preserve_rng_state=preserve)
    notice("checkpoint: use_reentrant=False is emulated by the reentrant form on xla")
    if not torch.is_grad_enabled():
        return function(*args, **kwargs)
    carrier = torch.zeros(1, device="xla", requires_grad=True)

    def with_carrier(_: torch.Tensor, *inner: Any) -> Any:
        return function(*inner, **kwargs)

    return checkpoint(with_carrier, carrier, *args, use_reentrant=True, preserve_rng_state=preserve)
