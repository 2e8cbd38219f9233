"""torch.distributed.reduce on TorchTPU, whose process group has no such collective."""

from __future__ import annotations

import functools
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d

_MARK = "_torchport_reduce"


def emulate_reduce() -> None:
    """Have ``torch.distributed.reduce`` of TPU tensors run as an all_reduce whose result only ``dst`` keeps."""
    original = distributed_c10d.reduce
    if hasattr(original, _MARK):
        return

    @functools.wraps(original)
    def reduce(
        tensor: torch.Tensor,
        dst: int | None = None,
        op: Any = dist.ReduceOp.SUM,
        group: Any = None,
        async_op: bool = False,
        group_dst: int | None = None,
    ) -> Any:
        if tensor.device.type != "tpu":
            return original(tensor, dst, op, group, async_op, group_dst)
        total = tensor.clone()
        work = dist.all_reduce(total, op, group, async_op)
        if work is not None:
            work.wait()  # the copy below needs the result; what is returned is done already
        at = group_dst if dst is None else dst
        if at == dist.get_rank(group if dst is None else None):
            tensor.copy_(total)
        return work

    setattr(reduce, _MARK, True)
    distributed_c10d.reduce = dist.reduce = reduce
