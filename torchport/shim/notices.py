"""Say once per call site what is emulated or dropped on this back end."""

from __future__ import annotations

import logging
import sys
import threading
from types import FrameType

import torch

logger = logging.getLogger("torchport.shim")

_said: set[tuple[str, int, str]] = set()
_lock = threading.Lock()
_INSIDE = (__name__.rpartition(".")[0], "contextlib", "functools")


def notice(message: str) -> None:
    """Log ``message`` as a warning, with file and line of the caller outside this package, once per call site."""
    if torch.compiler.is_compiling():  # a traced function has no frames to look at
        return
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_inside(frame):
        frame = frame.f_back
    file, line = (frame.f_code.co_filename, frame.f_lineno) if frame is not None else ("<unknown>", 0)
    with _lock:
        if (file, line, message) in _said:
            return
        _said.add((file, line, message))
    logger.warning("%s:%d: %s", file, line, message)


def _is_inside(frame: FrameType) -> bool:
    module = str(frame.f_globals.get("__name__", ""))
    return any(module == name or module.startswith(name + ".") for name in _INSIDE)
