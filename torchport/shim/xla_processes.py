"""Many devices with PyTorch/XLA: its process group and its launcher.

A TPU host has a process a device. On the CPU (``CPU_NUM_DEVICES``) the devices are threads of one process, and a
collective that two of them compile at the same time waits for itself. So there each one is compiled by one thread after
the other, and runs when it is called.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.runtime as xr

from torchport.shim.backends.base import FinishedProcesses, plain_gloo, run_in_place, world_size_from_environment
from torchport.shim.notices import notice

_THREADS = {"XLA_THREAD_POOL_SIZE": "16", "NPROC": "16"}
_WAIT = 300.0
"""Seconds after which threads that do not all come to the same step boundary are told so."""


class Turns:
    """Has the threads of one process run a collective one after the other, and go on together."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._barrier: threading.Barrier | None = None
        self._failure: BaseException | None = None

    def take(self) -> None:
        """Run what is recorded, in every thread of the launch. Raises RuntimeError where some never come here."""
        with self._lock:
            torch_xla.sync()
        self.meet()

    def meet(self) -> None:
        """Wait for every thread of the launch. Raises RuntimeError where some never come here."""
        with self._lock:
            if self._barrier is None:
                self._barrier = threading.Barrier(xr.local_device_count())
        try:
            self._barrier.wait(_WAIT)
        except threading.BrokenBarrierError as broken:
            if self._failure is not None:
                raise RuntimeError(f"another device has failed: {self._failure!r}") from self._failure
            raise RuntimeError(
                "not every device has come to this collective or barrier: all have to call each of them"
            ) from broken

    def give_up(self, failure: BaseException) -> None:
        """Wake the threads that wait: one has failed."""
        self._failure = self._failure or failure
        if self._barrier is not None:
            self._barrier.abort()


turns = Turns()


def devices_are_threads() -> bool:
    """Whether this is a thread of a launch that gave each device a thread of the same process."""
    return xr.device_type() == "CPU" and "PJRT_LOCAL_PROCESS_RANK" in os.environ and xr.local_device_count() > 1


_lock = threading.Lock()


def _prepare_for_threads() -> None:
    """Give each thread its own torch.distributed, as torch_xla does on TPU v2 and v3, whose devices are threads too."""
    from torch.testing._internal.distributed.multi_threaded_pg import ThreadLocalWorld, _install_threaded_pg

    with _lock:
        if isinstance(torch.distributed.distributed_c10d._world, ThreadLocalWorld):
            return
        _install_threaded_pg()
        torch._C._distributed_c10d._set_thread_isolation_mode(True)


class _Worker:
    """The launched function; where devices are threads, one that fails does not leave the others waiting."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *args: Any) -> Any:
        if devices_are_threads():
            _prepare_for_threads()
        try:
            return self._function(*args)
        except BaseException as failure:
            turns.give_up(failure)
            raise


def launch(backend: Any, fn: Callable[..., Any], args: tuple[Any, ...], nprocs: int, options: Mapping[str, Any]) -> Any:
    """What ``shim.launch`` does on PyTorch/XLA."""
    if xr.is_spmd():
        notice("launch: under SPMD one process drives all devices of the host; the function runs once")
        return run_in_place(fn, args, options)
    if backend.is_initialized() and not torch.distributed.is_torchelastic_launched():
        if backend.device_count() == 1:
            return run_in_place(fn, args, options)
        raise RuntimeError(
            "launch: the XLA runtime was started before (by a tensor or module moved to the device, or a backward"
            " pass), so its devices cannot be shared out any more; do that inside the launched function"
        )
    if nprocs not in (0, backend.device_count()):
        notice(f"launch: nprocs={nprocs} is dropped: torch_xla.launch uses all {backend.device_count()} device(s)")
    if xr.device_type() == "CPU":
        for key, value in _THREADS.items():
            os.environ.setdefault(key, value)
    torch_xla.launch(_Worker(fn), args=args, start_method=options.get("start_method", "spawn"))
    return None if options.get("join", True) else FinishedProcesses()


def start_torchrun_process() -> None:
    """Tell the runtime which device of the host is that of this process of torchrun, before the runtime starts."""
    from torch_xla._internal import pjrt

    if int(os.environ.get("LOCAL_WORLD_SIZE", "1")) > 1:
        pjrt.initialize_multiprocess(int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"]))
    else:
        pjrt.initialize_singleprocess()


def init_process_group(backend: str | None, arguments: Mapping[str, Any]) -> None:
    """What ``shim.init_process_group`` does on PyTorch/XLA."""
    from torchport.shim import xla_group

    if backend == "gloo" and _other_worlds(arguments):
        plain_gloo(arguments, "the processes are not those of the devices")
        return
    _check_world(arguments)
    names = ["store", "rank", "world_size", "device_id", "pg_options"]
    kept = {key: value for key, value in arguments.items() if key not in names}
    if xr.is_spmd():
        notice("init_process_group: under SPMD the compiler reduces; the group joins the hosts, with gloo")
        torch.distributed.init_process_group("gloo", **{**kept, "init_method": "xla://"})
        return
    if backend == "gloo":
        notice("init_process_group: gloo would leave XLA tensors as they are; xla reduces them, and gloo CPU tensors")
    if devices_are_threads():
        xla_group.put_right(turns.take, turns.meet)
    else:
        xla_group.put_right(None, lambda: xm.rendezvous("torchport.barrier"))
    torch.distributed.init_process_group("xla", **{**kept, "init_method": "xla://"})


def _other_worlds(arguments: Mapping[str, Any]) -> list[str]:
    """What is said of the number of processes, by argument and by the environment, and is not the number of devices."""
    there, given, told = _devices(), arguments.get("world_size", -1), world_size_from_environment()
    wrong = (("world_size", given, given > 0 and given != there), ("WORLD_SIZE", told, told > there))
    return [f"{name}={wanted}" for name, wanted, is_wrong in wrong if is_wrong]


def _devices() -> int:
    return xr.process_count() if xr.is_spmd() else xr.world_size()


def _check_world(arguments: Mapping[str, Any]) -> None:
    for said in _other_worlds(arguments):
        raise RuntimeError(
            f"{said}, but PyTorch/XLA sees {_devices()} device(s) in this program (PJRT_DEVICE="
            f"{xr.device_type()}): processes would train alone, each without a word. Start the program with"
            " torchport.shim.launch (torch_xla.launch) over all devices, or unset WORLD_SIZE"
        )
    rank = arguments.get("rank", -1)
    if rank >= 0 and not xr.is_spmd() and rank != xr.global_ordinal():
        notice(
            f"init_process_group: rank={rank}, but this device is number {xr.global_ordinal()} to PyTorch/XLA, and so"
            " to torch.distributed.get_rank()"
        )
