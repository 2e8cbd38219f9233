"""Keep Parameter objects when a module moves to a device whose tensors are of another kind.

``Module.to("xla")`` and ``.to("tpu")`` make new Parameters, one for each place: tied weights come apart, and an
optimizer built before the move goes on training the old ones, without a word. On CUDA the objects stay. torch's own
switch (``torch.__future__.set_swap_module_params_on_conversion``) keeps them too, but then ``load_state_dict`` of an
nn.LSTM and moving a module with weight_norm raise. So the move is wrapped, and each new tensor put into the old object.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.parameter import UninitializedParameter

_MARK = "_torchport_keeps_parameters"


def keep_parameter_objects(after_move: Callable[[], None] | None = None) -> None:
    """Make every Module keep its Parameter objects across a move; ``after_move`` is called when some were moved."""
    original = torch.nn.Module._apply
    if hasattr(original, _MARK):
        return

    @functools.wraps(original)
    def apply_and_keep(self: torch.nn.Module, fn: Callable[..., Any], recurse: bool = True) -> torch.nn.Module:
        before = dict(self._parameters)
        for key, parameter in before.items():
            if isinstance(parameter, UninitializedParameter):
                self._parameters[key] = None  # torch would make a full Parameter of it
        result = original(self, fn, recurse)
        for key, old in before.items():
            new = self._parameters.get(key)
            if isinstance(old, UninitializedParameter):
                _move_uninitialized(old, fn)
            elif old is None or new is None or new is old:
                continue
            else:
                put_into(old, new)
                if after_move is not None:
                    after_move()
            self._parameters[key] = old
        return result

    setattr(apply_and_keep, _MARK, True)
    torch.nn.Module._apply = apply_and_keep  # type: ignore[method-assign]


def _move_uninitialized(parameter: UninitializedParameter, fn: Callable[..., Any]) -> None:
    like = fn(torch.empty(0, dtype=parameter.dtype, device=parameter.device))
    new = UninitializedParameter(parameter.requires_grad, device=like.device, dtype=like.dtype)
    put_into(parameter, new)


def put_into(old: torch.Tensor, new: torch.Tensor) -> None:
    """Give ``old`` the memory, device and grad of ``new``; its class, attributes and gradient hooks stay its own."""
    hooks = old._backward_hooks
    after_accumulation = old._post_accumulate_grad_hooks
    torch._C._swap_tensor_impl(old, new)  # type: ignore[attr-defined]
    if hooks:
        old._backward_hooks = hooks
    if after_accumulation:
        old._post_accumulate_grad_hooks = after_accumulation
