"""Start-up stays cheap: torch is never imported, LibCST only where something is rewritten."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DRIVER = """
import os, runpy, sys

log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)

def note(event, arguments):
    # An import of a module that is not there raises this event too; worker processes inherit the hook.
    if event == "import" and arguments[0] in WATCHED:
        os.write(log, arguments[0].encode() + b"\\n")

WATCHED = os.environ["WATCHED"].split()
sys.addaudithook(note)
del sys.argv[1]
if len(sys.argv) > 1:
    runpy.run_module("torchport", run_name="__main__", alter_sys=True)
else:
    import torchport
"""
HEAVY = ("torch", "libcst")
NOT_FOR_ONE_FILE = (
    *HEAVY,
    *("click", "argparse", "gettext", "locale", "platform", "uuid", "threading", "inspect", "dataclasses"),
    *("dis", "fnmatch", "urllib"),  # what inspect and pathlib load, which are held back
    *("pickle", "subprocess", "multiprocessing", "tempfile", "difflib", "textwrap"),
)
"""What the report on one file must not wait for: half of what it costs is what it imports."""
CLEAN = '''"""A model that says nothing of cuda but in this line."""
import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x)
'''
CUDA = """import torch

x = torch.ones(3).cuda(non_blocking=True)
"""


def heavy_imports(folder: Path, *arguments: str, watched: tuple[str, ...] = HEAVY) -> tuple[set[str], int]:
    """Which of these modules ``torchport ARGUMENTS`` imports, in any of its processes, and its exit status."""
    driver, log = folder / "driver.py", folder / "imports.txt"
    driver.write_text(DRIVER)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "WATCHED": " ".join(watched)}
    command = [sys.executable, driver, log, *arguments]
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
    return set(log.read_text().split()), run.returncode


def test_import_torchport(tmp_path: Path) -> None:
    assert heavy_imports(tmp_path) == (set(), 0)


@pytest.mark.parametrize("arguments", [["--version"], ["rules"], ["--help"], ["migrate", "--help"]])
def test_commands_that_rewrite_nothing(tmp_path: Path, arguments: list[str]) -> None:
    assert heavy_imports(tmp_path, *arguments) == (set(), 0)


def test_check_of_a_clean_file(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(CLEAN)
    assert heavy_imports(tmp_path, "migrate", "--check", "net.py") == (set(), 0)


def test_check_of_a_file_to_rewrite_needs_libcst_alone(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(CUDA)
    assert heavy_imports(tmp_path, "migrate", "--check", "train.py") == ({"libcst"}, 1)


@pytest.mark.parametrize("arguments", [["migrate", "--check"], ["lint", "--no-cache"], ["lint"]])
def test_one_file_needs_few_modules(tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "net.py").write_text(CLEAN)
    assert heavy_imports(tmp_path, *arguments, "net.py", watched=NOT_FOR_ONE_FILE) == (set(), 0)


def test_what_is_watched_is_seen(tmp_path: Path) -> None:
    seen, _ = heavy_imports(tmp_path, "migrate", "--help", watched=NOT_FOR_ONE_FILE)
    assert "click" in seen
