"""Streams and events. Only CUDA has several queues; elsewhere work is done in the order of the program.

So waiting for another stream or for an event needs nothing, and the time between two events is measured on the host,
around waits for the device.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from typing import Any

import torch

from torchport.shim.errors import raise_cuda_only
from torchport.shim.notices import notice
from torchport.shim.selection import backend


class _AnyStream(type):
    """Makes isinstance true of PyTorch's own streams."""

    def __instancecheck__(cls, instance: object) -> bool:
        return type.__instancecheck__(cls, instance) or isinstance(instance, torch.Stream)


class Stream(metaclass=_AnyStream):
    """torch.cuda.Stream; elsewhere a name for the one queue of the device."""

    priority: int

    def __new__(cls, device: Any = None, priority: int = 0, **kwargs: Any) -> Any:
        """torch.cuda's own stream on CUDA."""
        native = backend().native
        if native is not None:
            return native.Stream(device, priority, **kwargs)
        if backend().accelerator:
            notice(f"Stream: {backend().name} has one queue, which keeps the order of the program")
        return super().__new__(cls)

    def __init__(self, device: Any = None, priority: int = 0, **kwargs: Any) -> None:
        self.priority = priority
        self._within: list[AbstractContextManager[Any]] = []

    @property
    def device(self) -> torch.device:
        """The device whose queue it is."""
        return backend().device()

    @property
    def device_index(self) -> int:
        """The index of that device."""
        return backend().current_device()

    @property
    def stream_id(self) -> int:
        """0, the only queue."""
        return 0

    @property
    def cuda_stream(self) -> int:
        """There is no pointer to a CUDA stream: a CudaOnlyError."""
        raise_cuda_only("Stream.cuda_stream", "it is a pointer for kernels of CUDA")

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """The least and the greatest priority."""
        native = backend().native
        return (0, 0) if native is None else native.Stream.priority_range()

    def query(self) -> bool:
        """Wait, and return True: a loop that polls ends, and what it waits for is done."""
        backend().synchronize()
        return True

    def synchronize(self) -> None:
        """Wait until everything that was asked of the device is done."""
        backend().synchronize()

    def wait_event(self, event: Any) -> None:
        """Nothing: work is done in the order of the program."""

    def wait_stream(self, stream: Any) -> None:
        """Nothing: work is done in the order of the program."""

    def record_event(self, event: Any = None) -> Any:
        """Record ``event``, or a new one, and return it."""
        recorded = Event() if event is None else event
        recorded.record(self)
        return recorded

    def __enter__(self) -> Stream:
        context = stream(self)
        context.__enter__()
        self._within.append(context)
        return self

    def __exit__(self, *exception: Any) -> None:
        self._within.pop().__exit__(*exception)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return 0


class _AnyEvent(type):
    """Makes isinstance true of PyTorch's own events."""

    def __instancecheck__(cls, instance: object) -> bool:
        return type.__instancecheck__(cls, instance) or isinstance(instance, torch.Event)


class Event(metaclass=_AnyEvent):
    """torch.cuda.Event; elsewhere one with ``enable_timing`` waits for the device and takes the time of the host."""

    def __new__(
        cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, external: bool = False
    ) -> Any:
        """torch.cuda's own event on CUDA."""
        native = backend().native
        if native is not None:
            more = {"external": True} if external else {}
            return native.Event(enable_timing, blocking, interprocess, **more)
        if interprocess:
            raise_cuda_only(
                "Event(interprocess=True)", "processes wait for each other with torch.distributed.barrier()"
            )
        if enable_timing and backend().accelerator:
            notice(f"Event: {backend().name} measures on the host, so each record() waits for the device")
        return super().__new__(cls)

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, external: bool = False
    ) -> None:
        self._timing = enable_timing
        self._time: float | None = None
        self._recorded = False

    def record(self, stream: Any = None) -> None:
        """Mark this point of the program; with ``enable_timing`` wait until the device has come to it."""
        self._recorded = True
        if self._timing:
            backend().synchronize()
            self._time = time.perf_counter()

    def wait(self, stream: Any = None) -> None:
        """Nothing: work is done in the order of the program."""

    def query(self) -> bool:
        """Wait, and return True: a loop that polls ends, and what it waits for is done."""
        self.synchronize()
        return True

    def synchronize(self) -> None:
        """Wait until the device has come to the point that was recorded."""
        if self._recorded and not self._timing:
            backend().synchronize()

    def elapsed_time(self, end_event: Any) -> float:
        """Milliseconds from this event to ``end_event``.

        Raises:
            ValueError: one of the two was made without ``enable_timing``, or not recorded.
        """
        if self._time is None or end_event._time is None:
            raise ValueError("Both events must be created with enable_timing=True and recorded before elapsed_time()")
        return (end_event._time - self._time) * 1000

    def ipc_handle(self) -> Any:
        """There are no handles for other processes: a CudaOnlyError."""
        raise_cuda_only("Event.ipc_handle", "processes wait for each other with torch.distributed.barrier()")


class StreamContext:
    """torch.cuda.StreamContext; elsewhere ``with`` one of the names of the one queue."""

    def __new__(cls, stream: Any) -> Any:
        """torch.cuda's own on CUDA."""
        native = backend().native
        return super().__new__(cls) if native is None else native.StreamContext(stream)

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            _current.append(self.stream)

    def __exit__(self, *exception: object) -> None:
        if self.stream is not None:
            _current.pop()


_current: list[Any] = []


def stream(stream: Any) -> AbstractContextManager[Any]:
    """torch.cuda.stream: work within goes to ``stream``; None changes nothing."""
    return StreamContext(stream)


def current_stream(device: Any = None) -> Any:
    """The stream in use."""
    native = backend().native
    if native is not None:
        return native.current_stream(device)
    return _current[-1] if _current else default_stream()


def default_stream(device: Any = None) -> Any:
    """The stream that is used where none is chosen."""
    native = backend().native
    if native is not None:
        return native.default_stream(device)
    made = object.__new__(Stream)
    made.__init__()  # type: ignore[misc]
    return made


def set_stream(stream: Any) -> None:
    """Use ``stream`` from here on; None changes nothing."""
    native = backend().native
    if native is not None:
        native.set_stream(stream)
    elif stream is not None:
        _current[:] = [stream]


def record_stream(tensor: torch.Tensor, stream: Any) -> None:
    """``tensor.record_stream(stream)``, which only the allocator of CUDA needs."""
    if backend().native is not None:
        tensor.record_stream(stream)
