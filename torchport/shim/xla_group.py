"""What PyTorch/XLA's process group gets wrong or lacks, put right where torch.distributed's functions find it.

An average is refused; the barrier does not wait; CPU tensors, which also carry objects, are refused; and gloo leaves
XLA tensors as they are, without a word.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
import torch_xla
from torch_xla.distributed.xla_backend import ProcessGroupXla, _ret_work

_MARK = "_torchport_put_right"

_AVERAGED = ("allreduce", "reduce_scatter", "reduce_scatter_coalesced", "_reduce_scatter_base")
_CARRIED = (
    *("allreduce", "allgather", "allgather_coalesced", "_allgather_base", "broadcast", "gather", "scatter"),
    *("reduce_scatter", "_reduce_scatter_base", "alltoall", "alltoall_base", "send", "recv"),
)
_MADE_LOUD = (
    *("allreduce_", "allreduce_coalesced_", "broadcast_", "reduce_", "allgather_", "_allgather_base_", "gather_"),
    *("allgather_coalesced_", "allgather_into_tensor_coalesced_", "reduce_scatter_", "_reduce_scatter_base_"),
    *("reduce_scatter_tensor_coalesced_", "scatter_", "alltoall_", "alltoall_base_", "send", "recv_"),
)


_lock = threading.Lock()
_alive: list[Any] = []  # a kernel lasts as long as its library


def put_right(at_once: Callable[[], None] | None, meet: Callable[[], None]) -> None:
    """Change PyTorch/XLA's process group, for this process.

    Args:
        at_once: runs what is recorded, where a collective must not wait for the end of the step.
        meet: waits until every process has called it.
    """

    def barrier(group: Any, opts: Any = None) -> Any:
        meet()
        return _ret_work([])

    def reduce(group: Any, tensors: list[torch.Tensor], opts: Any) -> Any:
        """As PyTorch/XLA's own, but within the group, with averages, and where devices are threads."""
        options = dist.AllreduceOptions()
        options.reduceOp = opts.reduceOp
        totals = [tensor.clone() for tensor in tensors]
        group.allreduce(totals, options)
        if at_once is None:
            torch_xla.sync()  # what follows differs between the processes, and must not be in one graph with it
        if group.rank() == opts.rootRank:
            for tensor, total in zip(tensors, totals, strict=True):
                tensor.copy_(total)
        return _ret_work(tensors)

    with _lock:
        if hasattr(ProcessGroupXla, _MARK):
            return
        for name in _AVERAGED:
            setattr(ProcessGroupXla, name, _with_average(getattr(ProcessGroupXla, name)))
        for name in _CARRIED:
            setattr(ProcessGroupXla, name, _for_any_device(getattr(ProcessGroupXla, name), at_once))
        ProcessGroupXla.barrier = barrier
        ProcessGroupXla.reduce = reduce
        setattr(ProcessGroupXla, _MARK, True)


def refuse_xla_tensors() -> None:
    """Have collectives of XLA tensors raise in process groups without PyTorch/XLA, where they would do nothing."""
    with _lock:
        if not _alive:
            library = torch.library.Library("c10d", "IMPL")
            for name in _MADE_LOUD:
                library.impl(name, functools.partial(_refuse, name), "XLA")
            _alive.append(library)


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


def _for_any_device(method: Any, at_once: Callable[[], None] | None) -> Any:
    """CPU tensors, which also carry objects, go over the device and come back: PyTorch/XLA refuses them."""

    @functools.wraps(method)
    def collective(group: Any, *args: Any, **kwargs: Any) -> Any:
        carried: list[tuple[torch.Tensor, torch.Tensor]] = []
        work = method(group, *(_on_device(value, carried) for value in args), **kwargs)
        if at_once is not None:
            at_once()
        elif carried:
            torch_xla.sync()
        for original, copy in carried:
            original.copy_(copy)
        return work

    return collective


def _on_device(value: Any, carried: list[tuple[torch.Tensor, torch.Tensor]]) -> Any:
    """``value`` with copies on the device for its CPU tensors, which are noted in ``carried``."""
    if isinstance(value, list | tuple):
        return type(value)(_on_device(item, carried) for item in value)
    if isinstance(value, torch.Tensor) and value.device.type == "cpu":
        carried.append((value, value.to("xla")))
        return carried[-1][1]
    return value


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [tensor for item in value for tensor in _tensors(item)] if isinstance(value, list | tuple) else []


def _refuse(name: str, *args: Any, **kwargs: Any) -> Any:
    raise RuntimeError(
        f"torch.distributed: {name.strip('_')} of XLA tensors in a process group that has no back end for them (gloo"
        " alone?) would change nothing; make the group with torchport.shim.init_process_group, or move the tensors to"
        " the CPU"
    )
