"""The program of the README's first command trains after its migration, on the back end under test. Needs torch."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from commands import ROOT

BACKEND = os.environ.get("TORCHPORT_TEST_BACKEND", "cpu")
LAUNCHER = ROOT / "tests/support/tpu_on_cpu.py"


def python_for(backend: str, folder: Path) -> str:
    """A Python that runs scripts on ``backend``. TorchTPU has to be brought up first, but not for ``-m torchport``."""
    if backend != "tpu":
        return sys.executable
    wrapper = folder / "python"
    wrapper.write_text(f'#!/bin/sh\n[ "$1" = -m ] || set -- "{LAUNCHER}" "$@"\nexec "{sys.executable}" "$@"\n')
    wrapper.chmod(0o755)
    return str(wrapper)


def test_example_trains(tmp_path: Path) -> None:
    examples = tmp_path / "examples"
    examples.mkdir()
    for name in ("run.sh", "train_cuda.py"):
        (examples / name).write_bytes((ROOT / "examples" / name).read_bytes())
    environment = {
        **os.environ,
        "PYTHON": python_for(BACKEND, tmp_path),
        "PYTHONPATH": str(ROOT),
        "TORCHPORT_BACKEND": BACKEND,
    }
    command = ["bash", "examples/run.sh", "--epochs", "2"]
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    first, second = (float(loss) for loss in re.findall(r"epoch \d: loss ([\d.]+)", run.stdout))
    assert second < first
    assert f"training on {BACKEND}" in run.stdout
    assert (examples / "migrated" / "net.pt").exists()
