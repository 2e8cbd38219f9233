"""Several devices for real: gloo between processes, threads of PyTorch/XLA's CPU device, TorchTPU alone."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import many_devices
import pytest
import torch
from under_test import BACKEND, ROOT, TPU_ON_CPU

PORTS = iter(range(29700, 29760))
PROGRAM = pathlib.Path(many_devices.__file__)
WORLDS = {"cpu": (2, 4), "xla": (4,), "tpu": (1,), "cuda": (max(torch.cuda.device_count(), 1),)}


def start(arguments: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def losses(result: subprocess.CompletedProcess[str]) -> list[float]:
    found = [line for line in result.stdout.splitlines() if line.startswith("losses ")]
    assert len(found) == 1, result.stderr
    values: list[float] = json.loads(found[0].removeprefix("losses "))
    return values


@pytest.mark.parametrize("world", WORLDS[BACKEND])
def test_data_parallel_training_gives_the_losses_of_one_device(tmp_path: pathlib.Path, world: int, name: str) -> None:
    launcher = [str(TPU_ON_CPU)] if name == "tpu" else []
    file = str(tmp_path / "model.pt")
    result = start(
        [*launcher, str(PROGRAM), str(world), str(next(PORTS)), file],
        **({"CPU_NUM_DEVICES": str(world)} if name == "xla" else {}),
    )
    assert losses(result) == pytest.approx(many_devices.train_on_one(world), abs=5e-3 if name == "tpu" else 1e-5)
    assert result.returncode == 0, result.stderr


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="NCCL between GPUs needs two of them; this machine has not")
def test_data_parallel_training_with_nccl(tmp_path: pathlib.Path) -> None:
    """Also where another back end is tested, so that a machine without GPUs says what it did not run."""
    world = torch.cuda.device_count()
    arguments = [str(PROGRAM), str(world), str(next(PORTS)), str(tmp_path / "model.pt")]
    result = start(arguments, TORCHPORT_BACKEND="cuda")
    assert losses(result) == pytest.approx(many_devices.train_on_one(world), abs=1e-5)


def test_torchrun(tmp_path: pathlib.Path, name: str) -> None:
    if name != "cpu":
        pytest.skip("a process a device needs a TPU or several GPUs there; threads of XLA are started by the launcher")
    file = str(tmp_path / "model.pt")
    torchrun = ["-m", "torch.distributed.run", "--nproc-per-node=2", f"--master-port={next(PORTS)}"]
    result = start([*torchrun, str(PROGRAM), "2", "-", file])
    assert losses(result) == pytest.approx(many_devices.train_on_one(2), abs=1e-5)


REFUSED = """
import torch
import torch.distributed as dist
from torchport import shim

shim.backend()
dist.init_process_group("gloo", init_method="tcp://localhost:{port}", rank=0, world_size=1)
for collective in (dist.all_reduce, lambda tensor: dist.broadcast(tensor, 0), lambda tensor: dist.reduce(tensor, 0)):
    try:
        collective(torch.ones(2).to(shim.device()))
    except RuntimeError as error:
        print("refused", "would change nothing" in str(error))
dist.all_reduce(torch.ones(2))
dist.destroy_process_group()
try:
    shim.init_process_group("nccl", init_method="tcp://localhost:{port}", rank=0, world_size=2)
except RuntimeError as error:
    print("world", str(error).startswith("world_size=2, but PyTorch/XLA sees 1 device(s)"))
"""


def test_what_would_be_lost_without_a_word_is_refused(tmp_path: pathlib.Path, name: str) -> None:
    if name != "xla":
        pytest.skip("gloo takes the tensors of every other back end, or says that it does not")
    program = tmp_path / "refused.py"
    program.write_text(REFUSED.format(port=next(PORTS)))
    result = start([str(program)])
    said = [line for line in result.stdout.splitlines() if not line.startswith("[Gloo]")]
    assert said == ["refused True"] * 3 + ["world True"], result.stderr


SPMD = """
import pathlib
import numpy
import torch
import torch_xla.runtime as xr
import torch_xla.distributed.spmd as xs
import many_devices
from torchport import shim

xr.use_spmd()
mesh = xs.Mesh(numpy.arange(4), (4,), ("data",))
model = many_devices.network().to(shim.device())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for _ in range(many_devices.EPOCHS):
    for turn, (x, y) in enumerate(shim.steps(many_devices.batches(4))):
        x, y = x.to(shim.device()), y.to(shim.device())
        xs.mark_sharding(x, mesh, ("data", None))
        xs.mark_sharding(y, mesh, ("data", None))
        loss = torch.nn.functional.mse_loss(model(x), y) / 2
        loss.backward()
        if turn % 2:
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.detach())
file = pathlib.Path(__file__).with_name("model.pt")
shim.save(model.state_dict(), file)
assert shim.load(file, map_location="cpu")["0.weight"].shape == (8, 4)
print("losses", [loss.item() for loss in losses])
"""


def test_sharded_batches_under_spmd_give_the_losses_of_one_device(tmp_path: pathlib.Path, name: str) -> None:
    if name != "xla":
        pytest.skip("only PyTorch/XLA has SPMD")
    program = tmp_path / "spmd.py"
    program.write_text(SPMD)
    path = f"{ROOT}{os.pathsep}{PROGRAM.parent}"
    result = start([str(program)], CPU_NUM_DEVICES="4", PYTHONPATH=path)
    assert losses(result) == pytest.approx(many_devices.train_on_one(4), abs=1e-5)
