"""``torchport run`` where it cannot start; the programs that it runs are tested beside the shim, where torch is."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from real_command import Torchport

needs_no_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="torch is here")


@needs_no_torch
def test_without_torch(command: Torchport, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\n")
    done = command("run", "--pretend-cuda", "train.py", "--lr", "1")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: `torchport run` needs torch in the environment of torchport")
    assert done.stderr.count("\n") == 1


def test_help_and_wrong_options(command: Torchport) -> None:
    done = command("run", "--help")
    assert done.returncode == 0
    assert "--pretend-cuda" in done.stdout
    assert command("run").returncode == 2
    assert command("run", "--log-format", "xml", "train.py").returncode == 2


def test_a_script_that_is_not_there(command: Torchport) -> None:
    done = command("run", "train.py")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: train.py: there is no such file; expected a Python script (or a module, with -m)\n"
