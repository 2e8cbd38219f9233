"""The record of what was mapped: once per call site, with counts."""

from __future__ import annotations

import logging
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Literal

import torch

logger = logging.getLogger("torchport.shim")

Support = Literal["same", "emulated", "dropped", "kept"]
_INSIDE = frozenset({"torch", "torch_tpu", "torch_xla", "torchport", "typing_extensions", "contextlib", "functools"})


PRETEND = "if the program falls to the CPU here: `torchport run --pretend-cuda` or install(pretend_cuda=True)"


@dataclass(slots=True)
class Entry:
    """One call site. ``support`` "kept" means that the call was left as it is, and what it says is true."""

    file: str
    line: int
    old: str
    new: str
    support: Support
    count: int = 0

    def __str__(self) -> str:
        text = f"{self.file}:{self.line}: {self.old} -> {self.new} ({self.support})"
        return f"{text}; {PRETEND}" if self.support == "kept" else text


class Log:
    """All entries of a session, in the order of their first call."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, int, str, str], Entry] = {}
        self._lock = threading.Lock()

    def record(self, old: str, new: str, support: Support = "same") -> None:
        """Count a call, and log the first one of each call site."""
        if torch.compiler.is_compiling():  # a traced function has no frames to look at
            return
        file, line = call_site()
        key = (file, line, old, new)
        with self._lock:
            first = key not in self._entries
            entry = self._entries.setdefault(key, Entry(file, line, old, new, support))
            entry.count += 1
        if first:
            level = logging.WARNING if support == "kept" else logging.INFO
            logger.log(level, "%s", entry, extra={"torchport_entry": entry})

    def __iter__(self) -> Iterator[Entry]:
        return iter(list(self._entries.values()))

    def calls_by_support(self) -> dict[str, int]:
        """How many calls were mapped in each way."""
        counts: Counter[str] = Counter()
        for entry in self:
            counts[entry.support] += entry.count
        return dict(counts)


def call_site() -> tuple[str, int]:
    """File and line of the nearest caller outside torch and torchport."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__", "")).partition(".")[0] in _INSIDE:
        frame = frame.f_back
    return ("<unknown>", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)
