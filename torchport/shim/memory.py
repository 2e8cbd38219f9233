"""Memory figures of the device, in bytes: real where the back end has them, 0 with a notice where it has none."""

from __future__ import annotations

from typing import Any

from torchport.shim.notices import notice
from torchport.shim.selection import backend


def _bytes(what: str, device: Any) -> int:
    value = backend().memory(what, device)
    return int(_unknown(what, 0) if value is None else value)


def _unknown(what: str, instead: Any) -> Any:
    notice(f"{what}: {backend().name} has no memory statistics here; {instead!r} is returned")
    return instead


def _act(what: str, device: Any = None) -> None:
    if not backend().memory_action(what, device):
        notice(f"{what}: nothing to do on {backend().name}")


def memory_allocated(device: Any = None) -> int:
    """Bytes that tensors take now."""
    return _bytes("memory_allocated", device)


def max_memory_allocated(device: Any = None) -> int:
    """Bytes that tensors took at most."""
    return _bytes("max_memory_allocated", device)


def memory_reserved(device: Any = None) -> int:
    """Bytes that the allocator holds now."""
    return _bytes("memory_reserved", device)


def max_memory_reserved(device: Any = None) -> int:
    """Bytes that the allocator held at most."""
    return _bytes("max_memory_reserved", device)


def memory_cached(device: Any = None) -> int:
    """The old name of ``memory_reserved``."""
    return _bytes("memory_reserved", device)


def max_memory_cached(device: Any = None) -> int:
    """The old name of ``max_memory_reserved``."""
    return _bytes("max_memory_reserved", device)


def memory_stats(device: Any = None) -> dict[str, Any]:
    """The allocator's figures by name; the names differ between back ends."""
    value = backend().memory("memory_stats", device)
    return dict(_unknown("memory_stats", {}) if value is None else value)


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """The figures as text."""
    text = backend().memory("memory_summary", device)
    if text is None:
        figures = backend().memory("memory_stats", device)
        text = "".join(f"{key}: {value}\n" for key, value in (figures or {}).items())
    return str(text or _unknown("memory_summary", ""))


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Free and total bytes of device memory, (0, 0) where unknown."""
    value = backend().memory("mem_get_info", device)
    free, total = _unknown("mem_get_info", (0, 0)) if value is None else value
    return (int(free), int(total))


def reset_peak_memory_stats(device: Any = None) -> None:
    """Start the maxima afresh."""
    _act("reset_peak_memory_stats", device)


def reset_max_memory_allocated(device: Any = None) -> None:
    """The old name of ``reset_peak_memory_stats``."""
    _act("reset_peak_memory_stats", device)


def reset_max_memory_cached(device: Any = None) -> None:
    """The old name of ``reset_peak_memory_stats``."""
    _act("reset_peak_memory_stats", device)


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Start the running totals afresh."""
    _act("reset_accumulated_memory_stats", device)


def empty_cache() -> None:
    """Give unused cached memory back."""
    _act("empty_cache")


def ipc_collect() -> None:
    """Free memory that other processes have closed (CUDA only)."""
    _act("ipc_collect")
