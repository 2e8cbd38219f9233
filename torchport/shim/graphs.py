"""CUDA graphs. Elsewhere nothing is recorded: functions are called, and back ends of TPUs compile them anyway."""

from __future__ import annotations

from typing import Any, NoReturn

from torchport.shim.errors import raise_cuda_only
from torchport.shim.notices import notice
from torchport.shim.selection import backend

_ADVICE = "call the function itself in place of replay(), or make it with shim.make_graphed_callables or shim.compile"


class CUDAGraph:
    """torch.cuda.CUDAGraph; elsewhere an object that says at the first capture or replay what to do instead."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """torch.cuda's own graph on CUDA."""
        native = backend().native
        return super().__new__(cls) if native is None else native.CUDAGraph(*args, **kwargs)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def capture_begin(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Nothing can be recorded: a CudaOnlyError."""
        raise_cuda_only("CUDAGraph", _ADVICE)

    def replay(self) -> NoReturn:
        """Nothing was recorded: a CudaOnlyError."""
        raise_cuda_only("CUDAGraph", _ADVICE)

    def reset(self) -> None:
        """Nothing: there is nothing to forget."""


class graph:
    """torch.cuda.graph, which records what happens within; elsewhere a CudaOnlyError, as replay() would do nothing."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """torch.cuda's own on CUDA."""
        native = backend().native
        if native is None:
            raise_cuda_only("graph", _ADVICE)
        return native.graph(*args, **kwargs)


def make_graphed_callables(callables: Any, sample_args: Any, *args: Any, **kwargs: Any) -> Any:
    """torch.cuda.make_graphed_callables; elsewhere the callables themselves."""
    native = backend().native
    if native is not None:
        return native.make_graphed_callables(callables, sample_args, *args, **kwargs)
    if backend().accelerator:
        notice(f"make_graphed_callables: {backend().name} has no CUDA graphs; the callables are handed back")
    return callables


def graph_pool_handle() -> Any:
    """A token for the memory that graphs share; elsewhere one that means nothing."""
    native = backend().native
    return (0, 0) if native is None else native.graph_pool_handle()


def is_current_stream_capturing() -> bool:
    """Whether a graph is being recorded."""
    native = backend().native
    return False if native is None else native.is_current_stream_capturing()
