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
from conftest import BACKEND, ROOT, TPU_ON_CPU

PORTS = iter(range(29700, 29760))
PROGRAM = pathlib.Path(many_devices.__file__)
WORLDS = {"cpu": (2, 4), "xla": (4,), "tpu": (1,), "cuda": (torch.cuda.device_count(),)}


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


def test_torchrun(tmp_path: pathlib.Path, name: str) -> None:
    if name != "cpu":
        pytest.skip("a process a device needs a TPU or several GPUs there; threads of XLA are started by the launcher")
    file = str(tmp_path / "model.pt")
    torchrun = ["-m", "torch.distributed.run", "--nproc-per-node=2", f"--master-port={next(PORTS)}"]
    result = start([*torchrun, str(PROGRAM), "2", "-", file])
    assert losses(result) == pytest.approx(many_devices.train_on_one(2), abs=1e-5)
