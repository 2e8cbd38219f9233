"""Recomputing activations in the backward pass; PyTorch/XLA has the reentrant form only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torchport.shim.notices import notice
from torchport.shim.selection import backend

_UNKNOWN_TO_XLA = ("context_fn", "determinism_check", "debug", "early_stop")


def checkpoint(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """torch.utils.checkpoint.checkpoint: recompute ``function(*args)`` in the backward pass."""
    return backend().checkpoint(function, args, kwargs)


def checkpoint_sequential(functions: Any, segments: int, input: Any, **kwargs: Any) -> Any:
    """torch.utils.checkpoint.checkpoint_sequential: recompute all of ``segments`` parts but the last."""
    kwargs.setdefault("use_reentrant", True)
    parts = list(functions)  # children() of an nn.Sequential, which torch takes, has a layer that is used twice once
    size = len(parts) // segments
    for start in range(0, size * (segments - 1), size):
        input = checkpoint(_in_order(parts[start : start + size]), input, **kwargs)
    return _in_order(parts[size * (segments - 1) :])(input)


def _in_order(parts: list[Any]) -> Callable[[Any], Any]:
    def run(value: Any) -> Any:
        for part in parts:
            value = part(value)
        return value

    return run


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
