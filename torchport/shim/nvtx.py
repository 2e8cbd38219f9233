"""torch.cuda.nvtx: named ranges for NVIDIA's profiler on CUDA, for torch.profiler elsewhere."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from typing import Any

import torch

from torchport.shim.selection import backend


class _Open(threading.local):
    """The ranges that this thread has pushed, and those started by number."""

    def __init__(self) -> None:
        self.pushed: list[Any] = []
        self.started: dict[int, Any] = {}


_open = _Open()


def range(msg: str, *args: Any, **kwargs: Any) -> AbstractContextManager[Any]:
    """A context manager and decorator; ``msg.format(*args, **kwargs)`` names the range."""
    native = backend().native
    if native is not None:
        return native.nvtx.range(msg, *args, **kwargs)
    return torch.profiler.record_function(msg.format(*args, **kwargs))


def range_push(msg: str) -> int:
    """Begin a range within the last one, and return its depth, from 0."""
    native = backend().native
    if native is not None:
        return native.nvtx.range_push(msg)
    _open.pushed.append(_begin(msg))
    return len(_open.pushed) - 1


def range_pop() -> int:
    """End the last range, and return its depth; -1 where there is none."""
    native = backend().native
    if native is not None:
        return native.nvtx.range_pop()
    if _open.pushed:
        _open.pushed.pop().__exit__(None, None, None)
        return len(_open.pushed)
    return -1


def range_start(msg: str) -> Any:
    """Begin a range that need not nest, and return what ``range_end`` takes."""
    native = backend().native
    if native is not None:
        return native.nvtx.range_start(msg)
    number = max(_open.started, default=0) + 1
    _open.started[number] = _begin(msg)
    return number


def range_end(range_id: Any) -> None:
    """End the range that ``range_start`` began."""
    native = backend().native
    if native is not None:
        native.nvtx.range_end(range_id)
    elif range_id in _open.started:
        _open.started.pop(range_id).__exit__(None, None, None)


def mark(msg: str) -> None:
    """A point in time."""
    native = backend().native
    if native is not None:
        native.nvtx.mark(msg)
    else:
        _begin(msg).__exit__(None, None, None)


def _begin(msg: str) -> Any:
    opened = torch.profiler.record_function(msg)
    opened.__enter__()
    return opened
