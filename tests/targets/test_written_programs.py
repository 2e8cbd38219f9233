"""Programs that the target wrote run: process groups in use at world size one, the CPU as a choice, default types."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from torchport.model import Target

ROOT = Path(__file__).parents[2]
LAUNCH = {
    **{"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29538", "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1"},
    **{"TORCH_TPU_SLICEBUILDER_ADDRESSES": "localhost:8471", "TORCH_TPU_TOPOLOGY": "1,1,1", "PJRT_DEVICE": "CPU"},
}


def run(target: Target, case: str, *, on_device: bool = True) -> subprocess.CompletedProcess[str]:
    """The recorded output of a case, as a program; without the device, TorchTPU is not loaded."""
    there = target == "tpu" and on_device
    launcher = [str(ROOT / "tests" / "support" / "tpu_on_cpu.py")] if there else []
    argv = [sys.executable, *launcher, str(ROOT / "fixtures" / case / f"{target}.py")]
    environment = {**os.environ, **LAUNCH, "TORCH_DEVICE_BACKEND_AUTOLOAD": str(int(there))}
    return subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=200, check=False)


def test_program_with_collectives_takes_the_path_of_the_device(target: Target) -> None:
    done = run(target, "TP305-in-a-program")
    assert done.returncode == 0, done.stderr[-3000:]
    assert "nccl True False True" in done.stdout
    assert f"loss [3.0, 3.0] on {target}" in done.stdout


@pytest.mark.parametrize("on_device", [True, False])
def test_choice_of_the_cpu_is_kept(target: Target, on_device: bool) -> None:
    if target == "xla" and not on_device:
        pytest.skip("PyTorch/XLA always has a device")
    done = run(target, "TP301-the-cpu-run-stays", on_device=on_device)
    assert done.returncode == 0, done.stderr[-3000:]
    assert f"[1.0, 1.0] on {target if on_device else 'cpu'}, 0 MiB" in done.stdout


def test_default_type_of_the_cpu_takes_the_device_back(target: Target) -> None:
    done = run(target, "TP111-type-that-is-restored")
    assert f"{target} torch.float32 cpu torch.float64" in done.stdout, done.stderr[-3000:]
