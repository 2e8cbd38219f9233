"""Several processes: process group, launcher, and the wrappers that name devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torchport.shim.notices import notice
from torchport.shim.selection import backend


def device_ids(*ids: Any) -> list[Any] | None:
    """``device_ids`` for DistributedDataParallel: ``ids`` on CUDA, None where a process has one device."""
    return backend().device_ids(ids)


class _AnyDataParallel(type):
    """Makes isinstance true of a model that somebody else wrapped, in PyTorch's own class."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, torch.nn.DataParallel)


class DataParallel(torch.nn.DataParallel[torch.nn.Module], metaclass=_AnyDataParallel):
    """torch.nn.DataParallel. With one device a process it passes calls through, and keeps ``.module`` and its keys."""

    def __init__(
        self, module: torch.nn.Module, device_ids: Any = None, output_device: Any = None, dim: int = 0
    ) -> None:
        if backend().data_parallel():
            super().__init__(module, device_ids, output_device, dim)
            return
        torch.nn.Module.__init__(self)
        self.module = module
        self.device_ids: list[Any] = []
        self.output_device = output_device
        self.dim = dim
        if backend().accelerator:
            notice(f"DataParallel: {backend().name} drives one device a process, so the module runs on that one")


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: Any = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
    **more: Any,
) -> None:
    """torch.distributed.init_process_group; "nccl" becomes what this back end has (gloo, xla, tpu_dist).

    ``more``: what other versions of torch take, such as ``_ranks``; it is handed on.

    Raises:
        RuntimeError: the environment describes more processes than the runtime of this back end knows of.
    """
    arguments: dict[str, Any] = {
        "init_method": init_method,
        "timeout": timeout,
        "world_size": world_size,
        "rank": rank,
        "store": store,
        "group_name": group_name,
        "pg_options": pg_options,
        "device_id": device_id,
        **more,
    }
    if backend == "fake":  # torch's own, to try the sharding of a program out; it knows only devices that are named
        own = _this_backend().device_type
        torch.distributed.init_process_group("fake" if own == "cpu" else f"cpu:fake,{own}:fake", **arguments)
        return
    _this_backend().init_process_group(None if backend is None else str(backend).lower(), arguments)


def new_group(
    ranks: list[int] | None = None,
    timeout: Any = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
    **more: Any,
) -> Any:
    """torch.distributed.new_group; "nccl" becomes the group of this back end's device (gloo, xla, tpu_dist).

    ``more``: what other versions of torch take, such as ``sort_ranks``; it is handed on.
    """
    chosen, asked = _this_backend(), None if backend is None else str(backend).lower()
    rest = {"use_local_synchronization": use_local_synchronization, "group_desc": group_desc, "device_id": device_id}
    if chosen.name != "cuda":
        del rest["device_id"]
        if asked is not None and "nccl" in asked:
            asked, pg_options = chosen.collectives, None  # the options are those of NCCL
    given = {key: value for key, value in rest.items() if value}  # PyTorch/XLA's new_group takes the first four alone
    return torch.distributed.new_group(ranks, timeout, asked, pg_options, **given, **more)


def accelerator_backend() -> str:
    """What get_backend() gives for the process group of the accelerator; "nccl", so never true, on the CPU back end."""
    chosen = _this_backend()
    return chosen.collectives if chosen.accelerator else "nccl"


def launch(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> Any:
    """torch.multiprocessing.spawn: run ``fn(rank, *args)`` in one process for each device.

    PyTorch/XLA starts a process (on a CPU a thread) for every device of the host whatever ``nprocs`` says.
    """
    options = {"join": join, "daemon": daemon, "start_method": start_method}
    return _this_backend().launch(fn, tuple(args), int(nprocs), options)


_this_backend = backend  # ``backend`` is a parameter of torch's signature above
