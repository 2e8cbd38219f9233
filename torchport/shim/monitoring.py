"""What NVIDIA's management library tells of a GPU; on a TPU `tpu-info` tells it, from outside of the program."""

from __future__ import annotations

from typing import Any

from torchport.shim.notices import notice
from torchport.shim.selection import backend


def _ask(what: str, device: Any, instead: Any) -> Any:
    native = backend().native
    if native is not None:
        return getattr(native, what)(device)
    notice(f"{what}: {backend().name} does not tell it; {instead!r} is returned, and `tpu-info` shows it for a TPU")
    return instead


def utilization(device: Any = None) -> int:
    """Per cent of the time in which kernels ran; 0 where unknown."""
    return _ask("utilization", device, 0)


def memory_usage(device: Any = None) -> int:
    """Per cent of the time in which memory was read or written; 0 where unknown."""
    return _ask("memory_usage", device, 0)


def temperature(device: Any = None) -> int:
    """Degrees Celsius; 0 where unknown."""
    return _ask("temperature", device, 0)


def power_draw(device: Any = None) -> int:
    """Milliwatts; 0 where unknown."""
    return _ask("power_draw", device, 0)


def clock_rate(device: Any = None) -> int:
    """Megahertz; 0 where unknown."""
    return _ask("clock_rate", device, 0)


def device_memory_used(device: Any = None) -> int:
    """Bytes in use on the device by all processes; 0 where unknown."""
    return _ask("device_memory_used", device, 0)


def list_gpu_processes(device: Any = None) -> str:
    """Processes on the device and the memory they use, as text; empty where unknown."""
    return _ask("list_gpu_processes", device, "")
