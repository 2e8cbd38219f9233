"""The life of a worker process: take a task, send its result, until the other end is closed."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any, Literal, Protocol

from torchport.lazy import NamedTuple


class Failure(NamedTuple):
    """Stands for the result of a task that has none. ``detail`` is one line."""

    kind: Literal["died", "timeout", "memory", "recursion", "error"]
    detail: str


class Channel(Protocol):
    """One end of a connection that carries objects both ways."""

    def send(self, value: Any, /) -> None:
        """Raises ConnectionError where the other end is closed, anything where ``value`` cannot be pickled."""

    def recv(self) -> Any:
        """The next object. Raises EOFError or OSError where the other end is closed."""

    def close(self) -> None:
        """Close this end."""


def serve(channel: Channel, work: Callable[[Any], Any]) -> None:
    """Say that this process is ready, then do one task after the other."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    let_interrupts_through()
    _collect_seldom()
    _be_quiet()
    channel.send("ready")
    while True:
        try:
            task = channel.recv()
        except (EOFError, OSError):
            return
        result = _attempt(work, task)
        try:
            channel.send(result)
        except ConnectionError:
            return
        except Exception as error:  # the result cannot be pickled
            channel.send(_failure(error))


def let_interrupts_through() -> None:
    """Undo what was done to Ctrl-C while this process was being forked."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _collect_seldom() -> None:
    """Syntax trees are many objects and no cycles: looking through them for some takes a fifth of the time."""
    import gc

    gc.freeze()
    gc.set_threshold(1_000_000, 50, 100)


def _be_quiet() -> None:
    """Whatever a native parser prints when it dies is not for the user, who gets one line about it."""
    import faulthandler
    import warnings

    faulthandler.disable()
    warnings.simplefilter("ignore")
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    os.close(null)


def _attempt(work: Callable[[Any], Any], task: Any) -> Any:
    try:
        return work(task)
    except MemoryError:
        return Failure("memory", "out of memory")
    except RecursionError:
        return Failure("recursion", "nested too deeply")
    except BaseException as error:  # a panic in a native parser is no Exception
        return _failure(error)


def _failure(error: BaseException) -> Failure:
    return Failure("error", " ".join(f"{type(error).__name__}: {error} ({_place_of(error)})".split()))


def _place_of(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return "nowhere"
    path = trace.tb_frame.f_code.co_filename.replace(os.sep, "/")
    return f"{'/'.join(path.split('/')[-2:])}:{trace.tb_lineno}"
