"""Carry checkpoints between back ends through files, by hand, as no environment has two of them:

    python carried.py write FOLDER          # on the one
    python carried.py read FOLDER           # on the other: how far its losses are from those of the one

``data/checkpoints/`` holds what PyTorch/XLA and TorchTPU wrote of the smallest of the models; test_models.py reads it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from shim_tasks import TASKS, Training

from torchport import shim


def write(kind: str, folder: Path) -> None:
    """The checkpoint half way, and the losses of the second half."""
    folder.mkdir(parents=True, exist_ok=True)
    training = Training(TASKS[kind], shim.device())
    training.epoch()
    shim.save(training.state(), folder / f"{kind}.pt")
    (folder / f"{kind}.json").write_text(json.dumps(training.epoch()) + "\n")


def read(kind: str, folder: Path) -> tuple[list[float], list[float]]:
    """The losses of the second half, here and where the checkpoint was written."""
    training = Training(TASKS[kind], shim.device(), seed=1)
    training.load(shim.load(folder / f"{kind}.pt", map_location="cuda"))
    return training.epoch(), json.loads((folder / f"{kind}.json").read_text())


def locations(path: Path) -> set[str]:
    """The devices of the storages in a file, as it names them."""
    found: set[str] = set()

    def note(storage: torch.UntypedStorage, location: str) -> torch.UntypedStorage:
        found.add(location)
        return storage

    torch.load(path, map_location=note)
    return found


def main(what: str, folder: Path) -> None:
    for kind in TASKS:
        if what == "write":
            write(kind, folder)
            continue
        here, there = read(kind, folder)
        worst = max(abs(a - b) / abs(b) for a, b in zip(here, there, strict=True))
        print(f"{shim.backend().name} reads {folder.name}/{kind}: relative difference {worst:.1e}")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
