"""What PyTorch/XLA's process group gets wrong or lacks, put right in its own class, so that torch.distributed's functions work.

An average is refused; the barrier does not wait; CPU tensors, which also carry objects, are refused; and gloo leaves XLA tensors as
they are, without a word.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch_xla.distributed.xla_backend import ProcessGroupXla

_AVERAGED = ("allreduce", "reduce", "reduce_scatter", "reduce_scatter_coalesced", "_reduce_scatter_base")
_CARRIED = (
    *("allreduce", "allgather", "allgather_coalesced", "_allgather_base", "broadcast", "gather", "scatter", "reduce"),
    *("reduce_scatter", "_reduce_scatter_base", "alltoall", "alltoall_base", "send", "recv"),
)
_MADE_LOUD = (
    *("allreduce_", "allreduce_coalesced_", "broadcast_", "reduce_", "allgather_", "_allgather_base_", "gather_"),
    *("allgather_coalesced_", "allgather_into_tensor_coalesced_", "reduce_scatter_", "_reduce_scatter_base_"),
    *("reduce_scatter_tensor_coalesced_", "scatter_", "alltoall_", "alltoall_base_", "send", "recv_"),
)


@functools.cache
def put_right(after: Callable[[], None] | None) -> Any:
    """Change PyTorch/XLA's process group, for this process. ``after`` is called after each collective on the device.

    Returns:
        What keeps the refusal of gloo in place for as long as it lives; it is kept here.
    """
    for name in _AVERAGED:
        setattr(ProcessGroupXla, name, _with_average(getattr(ProcessGroupXla, name)))
    for name in _CARRIED:
        setattr(ProcessGroupXla, name, _for_any_device(name, getattr(ProcessGroupXla, name), after))
    ProcessGroupXla.barrier = _barrier
    return _refuse_xla_tensors()


def _with_average(method: Any) -> Any:
    @functools.wraps(method)
    def collective(group: Any, *args: Any) -> Any:
        options = args[-1]
        if options.reduceOp != dist.ReduceOp.AVG:
            return method(group, *args)
        options.reduceOp = dist.ReduceOp.SUM
        work = method(group, *args)
        for tensor in _tensors(args[0]):
            tensor.div_(group.size())
        return work

    return collective


def _for_any_device(name: str, method: Any, after: Callable[[], None] | None) -> Any:
    """CPU tensors go over gloo, as with "cpu:gloo" on CUDA."""

    @functools.wraps(method)
    def collective(group: Any, *args: Any) -> Any:
        if any(tensor.device.type == "cpu" for tensor in _tensors(args[:2])):
            return getattr(_host_group(group), name)(*args)
        work = method(group, *args)
        if after is not None:
            after()
        return work

    return collective


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [tensor for item in value for tensor in _tensors(item)] if isinstance(value, list | tuple) else []


def _host_group(group: Any) -> Any:
    """Gloo between the same processes, made at the first use."""
    if not hasattr(group, "_torchport_host"):
        store = dist.PrefixStore("torchport_host", group.prefix_store)
        group._torchport_host = dist.ProcessGroupGloo(store, group.rank(), group.size(), group.timeout)
    return group._torchport_host


def _barrier(group: Any, options: Any = None) -> Any:
    """Wait for every process of the group. On the host: work of the device is not waited for."""
    return _host_group(group).barrier(dist.BarrierOptions())


def _refuse_xla_tensors() -> Any:
    library = torch.library.Library("c10d", "IMPL")
    for name in _MADE_LOUD:
        library.impl(name, functools.partial(_refuse, name), "XLA")
    return library


def _refuse(name: str, *args: Any, **kwargs: Any) -> Any:
    raise RuntimeError(
        f"torch.distributed: {name.strip('_')} of XLA tensors in a process group that has no back end for them (gloo"
        " alone?) would change nothing; make the group with torchport.shim.init_process_group, or move the tensors to"
        " the CPU"
    )
