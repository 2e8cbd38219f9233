"""Start a worker process: forked where that is safe, which costs milliseconds, otherwise spawned."""

from __future__ import annotations

import marshal
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Literal, Protocol

from torchport.pool.work import Channel, let_interrupts_through, serve

StartMethod = Literal["fork", "spawn"]


class Process(Protocol):
    """A child process, as ``multiprocessing`` has it."""

    @property
    def exitcode(self) -> int | None:
        """Its exit status, minus the number of the signal that killed it, or None while it lives."""

    def kill(self) -> None:
        """End it at once."""

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end for at most so many seconds."""


def start_method() -> StartMethod:
    """Fork on Linux as long as there are no other threads, whose locks a forked process would never see opened."""
    threading = sys.modules.get("threading")
    alone = threading is None or threading.active_count() == 1
    return "fork" if sys.platform == "linux" and alone else "spawn"


def start(method: StartMethod, work: Callable[[Any], Any], inherited: Sequence[Channel]) -> tuple[Process, Channel]:
    """A new worker for ``work``. ``inherited``: this process's ends of other workers, which a forked one must close."""
    with _interrupts_held():
        return _fork(work, inherited) if method == "fork" else _spawn(work)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """A worker that is just being started must not see Ctrl-C; it begins with the signal held back."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        let_interrupts_through()


def _spawn(work: Callable[[Any], Any]) -> tuple[Process, Channel]:
    from multiprocessing import get_context

    context = get_context("spawn")
    mine, theirs = context.Pipe()
    process = context.Process(target=serve, args=(theirs, work), daemon=True)
    process.start()
    theirs.close()
    return process, mine


def _fork(work: Callable[[Any], Any], inherited: Sequence[Channel]) -> tuple[Process, Channel]:
    """What multiprocessing does, without importing it: that takes longer than examining a small file."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    tasks_out, tasks_in = os.pipe()
    results_out, results_in = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            for channel in inherited:
                channel.close()
            os.close(tasks_in)
            os.close(results_out)
            serve(PipeChannel(tasks_out, results_in), work)
        finally:
            os._exit(1)  # never back into the parent's program
    os.close(tasks_out)
    os.close(results_in)
    return ForkedProcess(pid), PipeChannel(results_out, tasks_in)


_HEAD = 9
"""Bytes before an object: how it is written, and its length."""


class PipeChannel:
    """A Channel over two pipes. The ends take turns, so that no read-ahead swallows a second object.

    What is made of plain values alone is marshalled: to import pickle takes longer than to send all of it.
    """

    def __init__(self, reader: int, writer: int) -> None:
        self._in = os.fdopen(reader, "rb")
        self._out = os.fdopen(writer, "wb")

    def fileno(self) -> int:
        """What to wait on for the next object."""
        return self._in.fileno()

    def send(self, value: Any) -> None:
        """Make all of the text first: half an object must never go out."""
        way, body = _written(value)
        self._out.write(way + len(body).to_bytes(_HEAD - 1, "big"))
        self._out.write(body)
        self._out.flush()

    def recv(self) -> Any:
        """The next object."""
        head = self._read(_HEAD)
        body = self._read(int.from_bytes(head[1:], "big"))
        if head[:1] == b"m":
            return marshal.loads(body)
        import pickle

        return pickle.loads(body)

    def _read(self, length: int) -> bytes:
        data = self._in.read(length)
        if len(data) < length:
            raise EOFError
        return data

    def close(self) -> None:
        """Close both pipes; what could not be sent is lost."""
        self._in.close()
        with suppress(OSError):
            self._out.close()


def _written(value: Any) -> tuple[bytes, bytes]:
    try:
        return b"m", marshal.dumps(value)
    except ValueError:
        import pickle

        return b"p", pickle.dumps(value)


class ForkedProcess:
    """A child by its process id."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.exitcode: int | None = None

    def kill(self) -> None:
        """End it at once."""
        if self.exitcode is None:
            os.kill(self.pid, signal.SIGKILL)

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end for at most so many seconds."""
        end = None if timeout is None else time.monotonic() + timeout
        while self.exitcode is None:
            pid, status = os.waitpid(self.pid, 0 if end is None else os.WNOHANG)
            if pid:
                self.exitcode = os.waitstatus_to_exitcode(status)
            elif end is not None and time.monotonic() >= end:
                return
            else:
                time.sleep(0.001)
