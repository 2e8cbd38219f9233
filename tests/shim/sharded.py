"""Programs that shard a model, as ``migrate`` writes them; test_sharded.py starts them and compares their losses."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import many_devices
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.tensor import DTensor

from torchport import shim

STEPS = 4


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    x, y = zip(*many_devices.dataset(), strict=True)
    return torch.stack(x), torch.stack(y)


def train(model: torch.nn.Module, rank: int = 0, world: int = 1) -> list[float]:
    """Mean losses of all devices, each with its part of one batch."""
    device = shim.device()
    x, y = (part[rank::world].to(device) for part in batch())
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    losses = []
    for _ in shim.steps(range(STEPS)):
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        if isinstance(model, FullyShardedDataParallel):
            model.clip_grad_norm_(1.0)
        else:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        mean = loss.detach().clone()
        if world > 1:
            dist.all_reduce(mean, op=dist.ReduceOp.AVG)
        losses.append(mean)
    return [loss.item() for loss in losses]


def shard(kind: str, world: int) -> torch.nn.Module:
    """Models on the CPU, which FSDP itself moves to the device."""
    model: Any = many_devices.network()
    if kind == "fsdp1":
        return FullyShardedDataParallel(model, device_id=shim.current_device())
    if kind == "fsdp1-moved":
        return FullyShardedDataParallel(model.to(shim.device()))
    options: dict[str, Any] = {}
    if kind == "mesh":
        options["mesh"] = init_device_mesh(shim.device().type, (world,), mesh_dim_names=("data",))
    if kind == "mesh-2d":
        options["mesh"] = init_device_mesh(shim.device().type, (world, 1), mesh_dim_names=("data", "model"))["data"]
    for layer in model:
        if isinstance(layer, torch.nn.Linear):
            fully_shard(layer, **options)
    return fully_shard(model, **options)


def worker(rank: int, world: int, port: str, kinds: list[str]) -> None:
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(world), MASTER_ADDR="localhost")
    for number, kind in enumerate(kinds):
        os.environ["MASTER_PORT"] = str(int(port) + number)
        if kind != "mesh":  # init_device_mesh makes the group as well
            shim.init_process_group("nccl")
        model = shard(kind, world)
        losses = train(model, rank, world)
        weight = next(iter(model.state_dict().values()))
        whole = weight.full_tensor() if isinstance(weight, DTensor) else weight
        assert (whole.device.type, whole.shape) == (shim.device().type, (8, 4))
        if rank == 0:
            print("losses", kind, json.dumps(losses), flush=True)
        dist.destroy_process_group()


def fake(world: int) -> None:
    """The shards of one device of many; the collectives do nothing."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    shim.init_process_group("fake", rank=0, world_size=world, store=FakeStore())
    mesh = init_device_mesh(shim.device().type, (2, world // 2), mesh_dim_names=("replicate", "shard"))
    model: Any = many_devices.network()
    fully_shard(model[0], mesh=mesh["shard"])
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(2, 4).to(shim.device())).sum().backward()
    optimizer.step()
    for key, value in model.named_parameters():
        parts = [tuple(part.to_local().shape) for part in (value, value.grad)]
        print("shard", key, value.device.type, tuple(value.shape), *parts)
    dist.destroy_process_group()


if __name__ == "__main__":
    count = int(sys.argv[1])
    if sys.argv[2] == "fake":
        fake(count)
    else:
        shim.launch(worker, args=(count, sys.argv[2], sys.argv[3:]), nprocs=count)
