"""One process, on every back end: process group, DistributedDataParallel, DataParallel, launching."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from shim_models import batches, mlp
from torch import nn
from under_test import ROOT, TPU_ON_CPU

from torchport import shim

Run = Callable[..., subprocess.CompletedProcess[str]]
PORTS = iter(range(29640, 29700))
DDP = """
import os, torch
import torch.distributed as dist
from torchport import shim
shim.init_process_group({arguments})
device = shim.device()
torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
expected = [(model(torch.ones(1, 4)).sum()).item()]
model.to(device)
ddp = torch.nn.parallel.DistributedDataParallel(model, device_ids=shim.device_ids(0))
optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
losses = []
for _ in shim.steps(range(3)):
    optimizer.zero_grad()
    loss = ddp(torch.ones(1, 4).to(device)).sum()
    loss.backward()
    optimizer.step()
    losses.append(loss.detach())
losses = [v.item() for v in losses]
assert abs(losses[0] - expected[0]) < 1e-3, (losses, expected)
assert abs((losses[0] - losses[1]) - 1.0) < 1e-3, losses
tensor = torch.ones(2).to(device)
dist.all_reduce(tensor)
assert tensor.tolist() == [1, 1]
assert dist.get_world_size() == 1 and dist.get_rank() == 0
dist.destroy_process_group()
print("trained")
"""


def environment(**changes: str | None) -> dict[str, str | None]:
    return {"MASTER_ADDR": "localhost", "MASTER_PORT": str(next(PORTS)), "RANK": "0", "WORLD_SIZE": "1", **changes}


@pytest.mark.parametrize("arguments", ["'nccl'", "backend='cuda:nccl,cpu:gloo', init_method='env://'"])
def test_ddp_trains_at_world_size_one(run: Run, arguments: str) -> None:
    result = run(DDP.format(arguments=arguments), **environment())
    assert result.stdout.split()[-1:] == ["trained"], result.stderr


def test_device_id_and_explicit_ranks(run: Run, name: str) -> None:
    port = next(PORTS)
    arguments = f"'nccl', init_method='tcp://localhost:{port}', world_size=1, rank=0, device_id=shim.device(0)"
    result = run(DDP.format(arguments=arguments), RANK=None, WORLD_SIZE=None)
    assert result.stdout.split()[-1:] == ["trained"], result.stderr


def test_what_other_versions_of_torch_take_is_handed_on(run: Run) -> None:
    takes_ranks = "_ranks" in inspect.signature(torch.distributed.init_process_group).parameters
    result = run(f"from torchport import shim\nshim.init_process_group('nccl', _ranks={[0]})", **environment())
    if takes_ranks:
        assert result.returncode == 0, result.stderr
    else:
        assert "init_process_group() got an unexpected keyword argument '_ranks'" in result.stderr


def test_more_processes_than_devices_are_refused(run: Run, name: str) -> None:
    if name not in ("xla", "tpu"):
        pytest.skip("only TPU runtimes would train each process alone")
    result = run("from torchport import shim\nshim.init_process_group('nccl')", **environment(WORLD_SIZE="2"))
    assert result.returncode != 0
    assert "RuntimeError: WORLD_SIZE=2, but" in result.stderr or "2 processes, but" in result.stderr


HOSTS = """
import sys, torch, torch.distributed as dist
from torchport import shim
rank = int(sys.argv[1])
shim.init_process_group("gloo", init_method="file://" + sys.argv[2], world_size=2, rank=rank)
total = torch.tensor([rank + 1.0])
dist.all_reduce(total)
print("total", total.item(), dist.get_backend())
if shim.device().type == "xla":
    try:
        dist.all_reduce(total.to(shim.device()))
    except RuntimeError as error:
        print("refused", "would change nothing" in str(error))
"""


def test_gloo_joins_processes_that_are_not_those_of_the_devices(tmp_path: Path, name: str) -> None:
    script = tmp_path / "hosts.py"
    script.write_text(HOSTS)
    launcher = [str(TPU_ON_CPU)] if name == "tpu" else []
    command = [sys.executable, *launcher, str(script)]
    given = {"PYTHONPATH": str(ROOT), "CPU_NUM_DEVICES": "1"}
    options: dict[str, Any] = {"env": {**os.environ, **given}, "text": True, "stdout": subprocess.PIPE}
    runs = [subprocess.Popen([*command, str(rank), str(tmp_path / "store")], **options) for rank in range(2)]
    told = [run.communicate(timeout=120)[0] for run in runs]
    assert all("total 3.0 gloo" in text for text in told), told
    assert name != "xla" or all("refused True" in text for text in told), told


PROGRAM = (Path(__file__).parents[2] / "fixtures" / "TP305-in-a-program" / "portable.py").read_text()


def test_migrated_program_with_collectives_takes_the_path_of_the_device(run: Run, name: str) -> None:
    result = run(PROGRAM, **environment())
    on_device = name != "cpu"
    assert f"nccl {on_device} {not on_device} {on_device}" in result.stdout, result.stderr
    assert f"loss [3.0, 3.0] on {shim.device().type}" in result.stdout


def test_groups_of_the_device_and_of_the_cpu(run: Run, name: str) -> None:
    program = """
import torch, torch.distributed as dist
from torchport import shim
shim.init_process_group("nccl")
kinds = [dist.get_backend(shim.new_group([0], backend=b)) for b in ("nccl", "NCCL", "cpu:gloo,cuda:nccl", "gloo", None)]
print(kinds)
"""
    kind = {"cpu": "gloo", "cuda": "nccl", "xla": "xla", "tpu": "cpu:gloo,tpu:tpu_dist"}[name]
    mixed = "cpu:gloo,cuda:nccl" if name == "cuda" else kind
    assert str([kind, kind, mixed, "gloo", kind]) in run(program, **environment()).stdout


def test_device_ids(name: str) -> None:
    assert shim.device_ids(0) == ([0] if name == "cuda" else None)
    assert shim.device_ids() == ([] if name == "cuda" else None)


def test_data_parallel_passes_through() -> None:
    torch.manual_seed(0)
    model = mlp()
    x = batches("mlp", 1)[0][0]
    expected = model(x)
    wrapped = shim.DataParallel(model, device_ids=None).to(shim.device())
    assert isinstance(wrapped, nn.DataParallel)
    assert wrapped.module is model
    assert all(key.startswith("module.") for key in wrapped.state_dict())
    result = wrapped(x.to(shim.device()))
    assert torch.allclose(result.cpu(), expected, atol=1e-2)
    result.sum().backward()
    assert all(p.grad is not None for p in model.parameters())


LAUNCHES = """
import torch
from torchport import shim

def work(rank, word):
    shim.torch_manual_seed(1)
    assert torch.ones(2).to(shim.device()).sum().item() == 2
    print("worked", rank, word, flush=True)

def fail(rank):
    raise ValueError("inside")

if __name__ == "__main__":
    shim.torch_manual_seed(0)
    assert shim.launch(work, ("plain",)) is None
    running = shim.launch(work, args=("unjoined",), nprocs=max(shim.device_count(), 1), join=False)
    while not running.join():
        pass
    try:
        shim.launch(fail, nprocs=1)
    except Exception as error:
        print("raised", "inside" in str(error), flush=True)
    torch.ones(1).to(shim.device()).sum().item()
    shim.launch(work, ("touched",), nprocs=1)
"""


def test_launch(run: Run) -> None:
    """Joined or not, with an error, after seeding, and after the device was touched."""
    result = run(LAUNCHES)
    words = [line for line in result.stdout.splitlines() if line.startswith(("worked", "raised"))]
    expected = ["worked 0 plain", "worked 0 unjoined", "raised True", "worked 0 touched"]
    assert words == expected, result.stderr
    assert result.returncode == 0, result.stderr


NOTHING = """
from torchport import shim

def work(rank, world, file):
    shim.init_process_group("nccl", init_method=f"file://{file}", rank=rank, world_size=world)
    print("worked", rank, flush=True)

if __name__ == "__main__":
    import sys
    shim.launch(work, (0 if shim.backend().name == "cuda" else shim.device_count(), sys.argv[0] + ".store"), nprocs=0)
"""


def test_launching_no_process_is_never_silent(run: Run, name: str) -> None:
    """Programs give ``device_count()`` as the number of processes and as the size of the world, 0 without a GPU."""
    result = run(NOTHING)
    if name == "cuda":
        assert "nprocs must be at least 1" in result.stderr
    else:
        assert "worked 0" in result.stdout, result.stderr


def test_a_seed_before_a_launch_over_several_devices_starts_no_runtime(run: Run, name: str) -> None:
    if name in ("cpu", "cuda"):
        pytest.skip("a CPU is not shared out, and CUDA seeds no device before it is used")
    result = run(
        """
import torch
from torchport import shim
if shim.backend().name == "tpu":
    from torch_tpu._internal.utils import hardware
    hardware.get_tpu_device_count = lambda: 2  # as on a host with two
shim.torch_manual_seed(3)
assert shim.device_count() == 2 and not shim.is_initialized()
model = torch.nn.Linear(2, 2)
model.to(shim.device())
first = torch.rand(3, device=shim.device()).tolist()
shim.torch_manual_seed(3)
assert torch.rand(3, device=shim.device()).tolist() == first
try:
    shim.launch(print, nprocs=2)
except RuntimeError as error:
    print(error)
""",
        CPU_NUM_DEVICES="2",
    )
    assert "was started before" in result.stdout, result.stderr
