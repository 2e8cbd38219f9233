"""The log and the summary of ``torchport run``, as text or as JSON lines."""

from __future__ import annotations

import json
import logging
from dataclasses import asdict
from typing import IO, TYPE_CHECKING, Any

from torchport.shim.patching.log import Entry, logger
from torchport.shim.selection import backend

if TYPE_CHECKING:
    from torchport.shim.patching.session import Session


class _Lines(logging.Handler):
    """Writes each mapped call and each notice of the shim as one line."""

    def __init__(self, stream: IO[str], as_json: bool) -> None:
        super().__init__()
        self._stream = stream
        self._as_json = as_json

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        entry = getattr(record, "torchport_entry", None)
        if not self._as_json:
            _write(self._stream, f"torchport: {record.getMessage()}")
        elif isinstance(entry, Entry):
            _write_json(self._stream, "call", asdict(entry))
        elif isinstance(record.args, tuple) and len(record.args) == 3:
            _write_json(self._stream, "notice", dict(zip(("file", "line", "message"), record.args, strict=True)))
        else:
            _write_json(self._stream, "notice", {"message": record.getMessage()})


def send_to(stream: IO[str], as_json: bool) -> None:
    """Write what the shim logs to ``stream``, and nowhere else."""
    logger.addHandler(_Lines(stream, as_json))
    logger.setLevel(logging.INFO)
    logger.propagate = False


def head(session: Session, stream: IO[str], as_json: bool) -> None:
    """Say which back end it is, and what was asked."""
    name = backend().name
    if as_json:
        _write_json(stream, "start", {"backend": name, "pretend_cuda": session.pretend_cuda})
        return
    what = "the program runs as it is" if name == "cuda" else f"CUDA calls are mapped to the device {name!r}"
    _write(stream, f"torchport: back end {name}; {what}")


def summary(session: Session, stream: IO[str], as_json: bool) -> None:
    """Say how many calls were mapped, and whether the program left the accelerator alone."""
    counts = session.log.calls_by_support()
    places = len({(entry.file, entry.line) for entry in session.log})
    boundaries = session.boundaries.count
    if as_json:
        found = {"backend": backend().name, "pretend_cuda": session.pretend_cuda, "device_used": session.moved}
        calls = [asdict(entry) for entry in session.log]
        _write_json(stream, "summary", {**found, "step_boundaries": boundaries, "by_support": counts, "calls": calls})
        return
    listed = ", ".join(f"{count} {support}" for support, count in counts.items()) or "none"
    _write(stream, f"torchport: {sum(counts.values())} calls at {places} places on {backend().name}: {listed}")
    if backend().lazy:
        _write(stream, f"torchport: {boundaries} step boundaries")
    for line in _fallen_to_cpu(session):
        _write(stream, f"torchport: {line}")


def _fallen_to_cpu(session: Session) -> list[str]:
    kept = [entry for entry in session.log if entry.support == "kept"]
    if session.moved or not backend().accelerator:
        return []
    if not kept:
        return [f"nothing was put on {backend().name}: the program asked for no CUDA device"]
    first = kept[0]
    return [
        f"nothing was put on {backend().name}: the program ran on the CPU, because {first.old}() was answered"
        f" {first.new} at {first.file}:{first.line}; run it with --pretend-cuda"
    ]


def _write_json(stream: IO[str], kind: str, fields: dict[str, Any]) -> None:
    _write(stream, json.dumps({"type": kind, **fields}))


def _write(stream: IO[str], line: str) -> None:
    try:
        print(line, file=stream, flush=True)
    except (OSError, ValueError):  # a closed pipe or stream must not end the program
        return
