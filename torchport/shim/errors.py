"""Errors: those of torch.cuda under names that hold on every back end, and the one for what only CUDA has."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

import torch

from torchport.shim.selection import backend

OutOfMemoryError = torch.OutOfMemoryError
"""For type checkers and plain imports; ``shim.OutOfMemoryError`` asks ``out_of_memory_error()`` each time."""

AcceleratorError: type[Exception] = getattr(torch, "AcceleratorError", RuntimeError)
DeferredCudaCallError: type[Exception] = torch.cuda.DeferredCudaCallError

_OUT_OF_MEMORY = ("RESOURCE_EXHAUSTED", "Out of memory allocating", "ran out of memory")


class CudaOnlyError(NotImplementedError):
    """A call that has a meaning with CUDA alone; NotImplementedError is a RuntimeError, as torch.cuda's errors are."""


def out_of_memory_error() -> type[BaseException]:
    """The class that ``except shim.OutOfMemoryError`` has to name.

    torch.OutOfMemoryError, but the class of the error that is being handled where that is how PyTorch/XLA or TorchTPU
    say that memory ran out: a RuntimeError with a text. An except clause looks the name up only when it is reached.
    """
    error = sys.exception()
    return type(error) if error is not None and is_out_of_memory(error) else torch.OutOfMemoryError


def is_out_of_memory(error: BaseException) -> bool:
    """Whether ``error`` says that the device ran out of memory."""
    if isinstance(error, torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(text in str(error) for text in _OUT_OF_MEMORY)


def cuda_only(name: str, advice: str) -> Any:
    """torch.cuda's own object of that name, or what raises a CudaOnlyError when it is called."""
    native = backend().native
    return _CudaOnly(name, advice) if native is None else getattr(native, name)


def raise_cuda_only(name: str, advice: str) -> NoReturn:
    """Raise a CudaOnlyError that says what to do."""
    raise CudaOnlyError(
        f"torch.cuda.{name} has no meaning on {backend().name}: {advice}. "
        'Where CUDA needs it, keep it behind `if shim.device().type == "cuda":`'
    )


class _CudaOnly:
    """A function or namespace of torch.cuda on another back end: may be named, not called."""

    def __init__(self, name: str, advice: str) -> None:
        self._name = name
        self._advice = advice

    def __getattr__(self, name: str) -> _CudaOnly:
        if name.startswith("__"):
            raise AttributeError(name)
        return _CudaOnly(f"{self._name}.{name}", self._advice)

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise_cuda_only(self._name, self._advice)

    def __enter__(self) -> NoReturn:
        raise_cuda_only(self._name, self._advice)

    def __exit__(self, *exception: object) -> None:
        """Never reached."""

    def __repr__(self) -> str:
        return f"<torch.cuda.{self._name}, which {backend().name} does not have>"
