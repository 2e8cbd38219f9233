"""A module of the project is no library of its name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from torchport.rewrite import Outcome


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a folder ``triton/runner``, a package ``models`` and a module ``cupy`` in it."""
    for name in ("triton/runner/core.py", "models/__init__.py", "models/cupy.py", "tools/readers.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tmp_path


@pytest.mark.parametrize(
    ("place", "statement", "left"),
    [
        ("main.py", "from triton.runner.core import Runner", 0),
        ("triton/metrics.py", "from triton.runner import core", 0),
        ("triton/metrics.py", "import triton.runner.core", 0),
        ("triton/runner/main.py", "from triton.language import exp", 1),
        ("main.py", "import triton", 1),
        ("models/main.py", "import cupy", 1),
        ("models/main.py", "from models.cupy import array", 0),
    ],
)
def test_imports_of_the_project(
    project: Path, migrate: Callable[..., Outcome], place: str, statement: str, left: int
) -> None:
    outcome = migrate(f"{statement}\n", path=str(project / place))
    assert len([f for f in outcome.left if f.code.startswith("TP9")]) == left


@pytest.mark.parametrize(("module", "changed"), [("tools.readers", True), ("readers", False), ("easyocr", False)])
def test_a_class_of_the_project_asks_for_an_accelerator(
    project: Path, migrate: Callable[..., Outcome], module: str, changed: bool
) -> None:
    text = f"import torch\nfrom {module} import Reader\nReader(gpu=torch.cuda.is_available())\n"
    outcome = migrate(text, path=str(project / "main.py"))
    assert ("gpu=shim.is_available()" in (outcome.text or "")) is changed
