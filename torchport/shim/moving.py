"""Move the tensors inside any structure to a device, in place."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from typing import Any

import torch

from torchport.shim.parameters import put_into

_LEAVES = (
    str,
    bytes,
    int,
    float,
    complex,
    type(None),
    type,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.ModuleType,
)


def move_tensors(obj: Any, device: torch.device, wanted: Callable[[torch.Tensor], bool] | None = None) -> Any:
    """Put the CPU tensors inside ``obj`` (those that ``wanted`` accepts) on ``device``, and return ``obj``.

    The tensor objects stay, so what held one tensor twice still does; tensors over the same memory still share it.
    """
    shared: dict[Any, torch.Tensor] = {}
    alive: list[Any] = []  # an address must not be used again meanwhile
    seen: set[int] = set()
    todo: list[Any] = [obj]
    while todo:
        item = todo.pop()
        if isinstance(item, _LEAVES) or id(item) in seen:
            continue
        seen.add(id(item))
        alive.append(item)
        if isinstance(item, torch.Tensor):
            if item.grad is not None:
                todo.append(item.grad)
            if item.device.type == "cpu" and (wanted is None or wanted(item)):
                alive.append(_move(item, device, shared))
        else:
            todo.extend(_parts(item))
    return obj


def _parts(item: Any) -> Iterable[Any]:
    if isinstance(item, dict):
        yield from item.keys()
        yield from item.values()
    elif isinstance(item, list | tuple | set | frozenset):
        yield from item
    yield from getattr(item, "__dict__", {}).values()
    for cls in type(item).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            yield getattr(item, name, None)


def _move(tensor: torch.Tensor, device: torch.device, shared: dict[Any, torch.Tensor]) -> torch.Tensor:
    """Returns what must stay alive: the memory that ``tensor`` had."""
    key: Any = id(tensor)
    if tensor.layout == torch.strided:
        storage = tensor.untyped_storage()._cdata
        key = (storage, tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype)
    if key not in shared:
        shared[key] = tensor.detach().to(device)
    new = shared[key].detach()
    new.requires_grad_(tensor.requires_grad)
    grad, tensor.grad = tensor.grad, None
    put_into(tensor, new)
    tensor.grad = grad
    return new
