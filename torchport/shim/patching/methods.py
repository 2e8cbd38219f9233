"""Methods of tensors and modules, and the classes of CUDA tensors."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch

from torchport import shim
from torchport.shim.patching.mapping import Wrappers, called_by_torch, shown
from torchport.shim.patching.registry import Patches
from torchport.shim.tensor_types import NAMES, TensorType, made

if TYPE_CHECKING:
    from torchport.shim.patching.session import Session


def put(session: Session, patches: Patches) -> None:
    """Replace ``.cuda()``, ``.type()``, ``.pin_memory()``, ``.is_cuda`` and torch.cuda.FloatTensor and its like."""
    make = Wrappers(session)
    types = {name: _tensor_type(name, make) for name in NAMES}
    for name, ours in types.items():
        patches.put(torch.cuda, name, make.by_value(ours))

    def tensor_cuda(original: Any) -> Any:
        @functools.wraps(original)
        def cuda(
            self: torch.Tensor,
            device: Any = None,
            non_blocking: bool = False,
            memory_format: Any = torch.preserve_format,
        ) -> torch.Tensor:
            if not session.active:
                return original(self, device, non_blocking, memory_format=memory_format)
            return self.to(make.cuda_method(device, "Tensor"), non_blocking=non_blocking, memory_format=memory_format)

        return cuda

    def module_cuda(original: Any) -> Any:
        @functools.wraps(original)
        def cuda(self: torch.nn.Module, device: Any = None) -> torch.nn.Module:
            if not session.active:
                return original(self, device)
            target = make.cuda_method(device, "Module")
            return self._apply(lambda tensor: tensor.to(target))

        return cuda

    named = {f"torch.cuda.{name}": ours for name, ours in types.items()}
    known: dict[Any, Any] = {**named, **{ours: ours for ours in types.values()}}

    def tensor_type(original: Any) -> Any:
        @functools.wraps(original)
        def type_(self: torch.Tensor, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
            wanted = known.get(dtype)
            if not session.active or wanted is None:
                return original(self, dtype, non_blocking, **kwargs)
            make.same(
                f"Tensor.type(torch.cuda.{wanted.__name__})", f"Tensor.to({shown(shim.device())}, {wanted.dtype})"
            )
            return self.to(shim.device(), wanted.dtype, non_blocking=non_blocking)

        return type_

    def pin_memory(original: Any) -> Any:
        @functools.wraps(original)
        def pin(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
            if not session.active or called_by_torch() or shim.is_pin_memory_supported():
                return original(self, *args, **kwargs)
            make.dropped("Tensor.pin_memory()")
            return self

        return pin

    def is_cuda(original: Any) -> Any:
        def get(self: torch.Tensor) -> bool:
            truth: bool = original.__get__(self)
            if not session.active or self.device.type == "cpu" or called_by_torch():
                return truth
            return bool(make.answer("Tensor.is_cuda", truth, True))

        return property(get)

    patches.put(torch.Tensor, "cuda", tensor_cuda)
    patches.put(torch.nn.Module, "cuda", module_cuda)
    patches.put(torch.Tensor, "type", tensor_type)
    patches.put(torch.Tensor, "pin_memory", pin_memory)
    patches.put(torch.Tensor, "is_cuda", is_cuda)


def _tensor_type(name: str, make: Wrappers) -> Any:
    """What stands for torch.cuda.FloatTensor and its like; it says so where it makes a tensor."""

    class Told(TensorType):
        def __instancecheck__(cls, instance: object) -> bool:
            """As on a TPU, also where this is the CPU."""
            return isinstance(instance, torch.Tensor) and (instance.dtype, instance.device.type) == (
                cls.dtype,
                shim.device().type,
            )

        def __call__(cls, *args: Any, **kwargs: Any) -> torch.Tensor:
            make.same(f"torch.cuda.{name}()", f"torch.{name}().to({shown(shim.device())})")
            return super().__call__(*args, **kwargs)

    return made(name, Told)
