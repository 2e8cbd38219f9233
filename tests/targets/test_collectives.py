"""What the target writes for a process group in use runs, at world size one: tests for NCCL, groups, collectives."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from torchport.model import Target

ROOT = Path(__file__).parents[2]
LAUNCH = {
    **{"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29538", "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1"},
    **{"TORCH_TPU_SLICEBUILDER_ADDRESSES": "localhost:8471", "TORCH_TPU_TOPOLOGY": "1,1,1", "PJRT_DEVICE": "CPU"},
}


def test_program_with_collectives_takes_the_path_of_the_device(target: Target) -> None:
    launcher = [str(ROOT / "tests" / "support" / "tpu_on_cpu.py")] if target == "tpu" else []
    program = ROOT / "fixtures" / "TP305-in-a-program" / f"{target}.py"
    environment = {**os.environ, **LAUNCH, "TORCH_DEVICE_BACKEND_AUTOLOAD": str(int(target == "tpu"))}
    argv = [sys.executable, *launcher, str(program)]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "nccl True False True" in done.stdout
    assert f"loss [3.0, 3.0] on {target}" in done.stdout
