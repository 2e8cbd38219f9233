"""Page-locked host memory."""

from __future__ import annotations

import torch

from torchport.shim.notices import notice
from torchport.shim.selection import backend


def is_pin_memory_supported() -> bool:
    """Whether ``DataLoader(pin_memory=True)`` works for this back end."""
    return backend().supports_pinned_memory()


def pin_memory_device() -> str:
    """The ``pin_memory_device`` of a DataLoader: empty, torch's own choice, where CUDA is not there."""
    return "cuda" if backend().native is not None else ""


def pin_memory(tensor: torch.Tensor) -> torch.Tensor:
    """``tensor.pin_memory()`` where host memory can be page-locked, else ``tensor`` itself."""
    chosen = backend()
    if chosen.supports_pinned_memory():
        return tensor.pin_memory()
    if chosen.accelerator:
        notice(f"pin_memory: {chosen.name} has no page-locked host memory; the tensor is handed back")
    return tensor
