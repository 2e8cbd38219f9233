"""Folders of files to look for, and git in them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from torchport.project.files import Selection

Git = Callable[..., str]


def make(root: Path, *names: str) -> None:
    """Write a small file under each of these names."""
    for name in names:
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("import torch\n")


def paths(selection: Selection) -> list[str]:
    """The files that are taken."""
    return [file.path for file in selection.files]
