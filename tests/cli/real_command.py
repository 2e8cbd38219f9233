"""Run the real command line from a test."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import torchport

Result = subprocess.CompletedProcess[str]
Torchport = Callable[..., Result]


def run_torchport(
    folder: Path, *arguments: str, before: tuple[str, ...] = (), preexec: Callable[[], None] | None = None, **env: str
) -> Result:
    """The real command, in ``folder``. ``before`` stands in front of it; no variable of the tester's changes it."""
    environment = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR")}
    environment |= {"PYTHONPATH": str(Path(torchport.__file__).parents[1]), "PYTHONUTF8": "1"} | env
    argv = [*before, sys.executable, "-m", "torchport", *arguments]
    done = subprocess.run(argv, cwd=folder, env=environment, capture_output=True, check=False, preexec_fn=preexec)
    return Result(argv, done.returncode, done.stdout.decode(), done.stderr.decode())
