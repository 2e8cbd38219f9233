"""Pickle device tensors as CPU tensors, without touching the objects that hold them."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch

_OWN_KINDS = ("cpu", "cuda", "meta")


def portable_pickle_module(original: Any, key_of: Callable[[torch.Tensor], Any]) -> Any:
    """A stand-in for ``original`` as torch.save's ``pickle_module``, whose Pickler writes device tensors from the CPU.

    ``key_of`` gives equal keys for device tensors that share their memory.
    """
    original = original or pickle
    copies = _Copies(key_of)

    class Pickler(original.Pickler):  # type: ignore[misc]
        def reducer_override(self, obj: Any) -> Any:
            if isinstance(obj, torch.Tensor) and obj.device.type not in _OWN_KINDS:
                return copies.on_cpu(obj).__reduce_ex__(2)
            inherited = getattr(super(), "reducer_override", None)
            return inherited(obj) if inherited is not None else NotImplemented

    class Module(ModuleType):
        def __getattr__(self, name: str) -> Any:
            return getattr(original, name)

    module = Module(original.__name__)
    module.Pickler = Pickler  # type: ignore[attr-defined]
    return module


class _Copies:
    """CPU copies of device tensors; what shared memory on the device shares it here."""

    def __init__(self, key_of: Callable[[torch.Tensor], Any]) -> None:
        self._key_of = key_of
        self._made: dict[Any, torch.Tensor] = {}
        self._alive: list[torch.Tensor] = []  # a key may be an address, which must not be used again meanwhile

    def on_cpu(self, tensor: torch.Tensor) -> torch.Tensor:
        """A CPU tensor of the class, attributes, hooks and ``requires_grad`` of ``tensor``."""
        data = tensor.detach()
        key = self._key_of(data)
        if key not in self._made:
            self._made[key] = data.cpu()
            self._alive.append(data)
        copy = self._made[key].detach()
        if type(tensor) is torch.nn.Parameter:
            copy = torch.nn.Parameter(copy, tensor.requires_grad)
        elif copy.dtype.is_floating_point or copy.dtype.is_complex:
            copy.requires_grad_(tensor.requires_grad)
        copy.__dict__.update(tensor.__dict__)
        copy._backward_hooks = tensor._backward_hooks
        return copy
