"""torch.cuda.profiler, which starts and stops NVIDIA's profiler; there is none elsewhere."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from torchport.shim.notices import notice
from torchport.shim.selection import backend


def _call(name: str) -> None:
    native = backend().native
    if native is not None:
        getattr(native.profiler, name)()
    else:
        notice(f"profiler.{name}: {backend().name} has no NVIDIA profiler; use torch.profiler")


def start() -> None:
    """Start to collect."""
    _call("start")


def stop() -> None:
    """Stop to collect."""
    _call("stop")


@contextlib.contextmanager
def profile() -> Iterator[None]:
    """Collect within."""
    _call("start")
    try:
        yield
    finally:
        _call("stop")
