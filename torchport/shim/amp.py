"""Mixed precision: autocast, the gradient scaler, and the decorators for custom autograd functions."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import torch
from torch.amp.grad_scaler import _refresh_per_optimizer_state

from torchport.shim.notices import notice
from torchport.shim.selection import backend


def autocast(
    enabled: bool = True,
    dtype: torch.dtype | None = None,
    cache_enabled: bool | None = True,
    *,
    device_type: str | None = None,
) -> Any:
    """torch.cuda.amp.autocast for every back end: gives a context manager that is also a decorator.

    TPUs compute in bfloat16 whatever 16-bit dtype was asked. On the CPU back end it is off, as torch.cuda.amp.autocast
    is without a GPU. With ``device_type`` it is torch.autocast for that device; a CUDA name stands for the accelerator.
    What is given is torch.autocast's own object wherever it is on, so that torch.compile traces through it.
    """
    chosen = backend()
    own = chosen.device_type
    asked = None if device_type is None else torch.device(device_type).type
    if asked is not None and asked not in ("cuda", own):
        return torch.autocast(asked, dtype, enabled, cache_enabled)
    return chosen.autocast(dtype, bool(enabled), cache_enabled, asked == own)


class _AnyGradScaler(type):
    """Makes isinstance true of a scaler that somebody else made, of PyTorch's own class."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, torch.amp.GradScaler)


class GradScaler(torch.amp.GradScaler, metaclass=_AnyGradScaler):
    """torch.cuda.amp.GradScaler; on TPUs and on the CPU it is disabled, because bfloat16 needs no loss scaling.

    Disabled, ``scale()`` returns the loss, ``step()`` steps the optimizer, and a state written on CUDA is accepted.
    What an enabled one keeps is there for programs that read it: a scale of 1, and stages of optimizers.
    """

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        scales = backend().scales_gradients
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled and scales)
        if enabled and not scales:
            self._init_scale, self._scale = 1.0, torch.tensor(1.0)
            self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
            self._growth_interval, self._init_growth_tracker = growth_interval, 0
            self._growth_tracker = torch.tensor(0, dtype=torch.int32)
            stages: dict[int, dict[str, Any]] = defaultdict(_refresh_per_optimizer_state)
            self._per_optimizer_states = stages

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a saved state; one written where scaling was off says nothing, and the scale stays as it is."""
        if self.is_enabled() and not state_dict:
            notice("GradScaler: the state was saved where loss scaling is off; the scale starts afresh")
            return
        super().load_state_dict(state_dict)


def amp_definitely_not_available() -> bool:
    """Whether there is no accelerator, so that mixed precision is off."""
    return not backend().accelerator


def custom_fwd(fwd: Callable[..., Any] | None = None, *, cast_inputs: torch.dtype | None = None) -> Any:
    """torch.cuda.amp.custom_fwd for the device of this back end."""
    if fwd is None:
        return functools.partial(custom_fwd, cast_inputs=cast_inputs)
    return _lazily(fwd, lambda function: _custom_fwd(function, cast_inputs))


def custom_bwd(bwd: Callable[..., Any]) -> Any:
    """torch.cuda.amp.custom_bwd for the device of this back end."""
    return _lazily(bwd, lambda function: torch.amp.custom_bwd(function, device_type=backend().autocast_type))


def _custom_fwd(function: Callable[..., Any], cast_inputs: torch.dtype | None) -> Callable[..., Any]:
    chosen = backend()
    dtype = None if cast_inputs is None else chosen.amp_dtype(cast_inputs)
    decorated: Callable[..., Any] = torch.amp.custom_fwd(function, device_type=chosen.autocast_type, cast_inputs=dtype)
    return decorated


def _lazily(
    function: Callable[..., Any], decorate: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> Callable[..., Any]:
    """Decorate at the first call: a class body must not choose the back end."""
    made: list[Callable[..., Any]] = []

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not made:
            made.append(decorate(function))
        return made[0](*args, **kwargs)

    return call
