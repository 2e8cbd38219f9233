"""A data-parallel program: the test starts it over several devices and compares its losses with those of one."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Subset, TensorDataset
from torch.utils.data.distributed import DistributedSampler

from torchport import shim

SAMPLES, BATCH, EPOCHS = 32, 2, 2


def dataset() -> TensorDataset:
    generator = torch.Generator().manual_seed(1)
    return TensorDataset(torch.randn(SAMPLES, 4, generator=generator), torch.randn(SAMPLES, 1, generator=generator))


def network() -> torch.nn.Module:
    """The same weights in each thread: the generator is its own."""
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.3)
    return model


def batches(world: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """What all devices together see in each turn of an epoch."""
    turns = SAMPLES // world // BATCH
    order = [[turn * BATCH * world + i for i in range(BATCH * world)] for turn in range(turns)]
    return [next(iter(DataLoader(Subset(dataset(), indices), batch_size=BATCH * world))) for indices in order]


def train_on_one(world: int) -> list[float]:
    """The losses of the same training in one process on the CPU."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(EPOCHS):
        for turn, (x, y) in enumerate(batches(world)):
            loss = torch.nn.functional.mse_loss(model(x), y) / 2
            loss.backward()
            if turn % 2:
                optimizer.step()
                optimizer.zero_grad()
            losses.append(loss.item())
    return losses


def train(rank: int, world: int, file: str) -> None:
    """Accumulate gradients with no_sync, reduce the losses, save from rank 0 between barriers, exchange objects."""
    shim.init_process_group("nccl")
    assert (dist.get_rank(), dist.get_world_size()) == (rank, world)
    device = shim.device(rank)
    model = DistributedDataParallel(network().to(device), device_ids=shim.device_ids(rank))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sampler: Any = DistributedSampler(dataset(), shuffle=False)
    losses = []
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        for turn, (x, y) in enumerate(shim.steps(DataLoader(dataset(), batch_size=BATCH, sampler=sampler))):
            with contextlib.nullcontext() if turn % 2 else model.no_sync():
                loss = torch.nn.functional.mse_loss(model(x.to(device)), y.to(device)) / 2
                loss.backward()
            if turn % 2:
                optimizer.step()
                optimizer.zero_grad()
            mean = loss.detach().clone()
            dist.all_reduce(mean, op=dist.ReduceOp.AVG)
            losses.append(mean)
        dist.barrier()
        if rank == 0:
            shim.save(model.module.state_dict(), file)
        dist.barrier()
        loaded = shim.load(file, map_location="cpu")
        assert loaded["0.weight"].shape == (8, 4)
    values = [loss.item() for loss in losses]
    collectives(rank, world, device)
    everyones: list[Any] = [None] * world
    dist.all_gather_object(everyones, values)
    assert all(each == values for each in everyones)
    if rank == 0:
        print("losses", json.dumps(values), flush=True)
    dist.destroy_process_group()


def collectives(rank: int, world: int, device: torch.device) -> None:
    """Those that a back end lacks or refuses, and those on CPU tensors, which XLA's group refuses."""
    total = sum(range(1, world + 1))
    for place in (device, torch.device("cpu")):
        if place.type == "cpu" and shim.device().type == "cuda":
            continue  # nccl takes no CPU tensors
        value = torch.tensor([rank + 1.0], device=place)
        dist.all_reduce(value, op=dist.ReduceOp.SUM)
        gathered = [torch.zeros(1, device=place) for _ in range(world)]
        dist.all_gather(gathered, torch.tensor([rank + 1.0], device=place))
        first = torch.tensor([rank + 1.0], device=place)
        dist.broadcast(first, src=world - 1)
        at_first = torch.tensor([rank + 1.0], device=place)
        dist.reduce(at_first, dst=0)
        shim.sync()
        assert value.item() == total
        assert [item.item() for item in gathered] == list(range(1, world + 1))
        assert first.item() == world
        assert at_first.item() == (total if rank == 0 else rank + 1) or rank > 0
    words = [f"word of {rank}"]
    dist.broadcast_object_list(words, src=world - 1)
    assert words == [f"word of {world - 1}"]


def start(rank: int, world: int, port: str, file: str) -> None:
    """What torchrun sets, where a process is no thread."""
    if shim.device().type in ("cpu", "cuda", "tpu"):
        os.environ.update(RANK=str(rank), WORLD_SIZE=str(world), MASTER_ADDR="localhost", MASTER_PORT=port)
    shim.set_device(rank)
    train(rank, world, file)


if __name__ == "__main__":
    if "LOCAL_RANK" in os.environ and os.environ.get("TORCHELASTIC_RUN_ID"):
        train(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), sys.argv[3])
    else:
        count = int(sys.argv[1])
        shim.launch(start, args=(count, sys.argv[2], sys.argv[3]), nprocs=count)
