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


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """``memory_stats`` with a dict for each part of a name before a dot."""
    return _nested(memory_stats(device))


def _nested(figures: dict[str, Any]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for key, value in figures.items():
        *path, last = key.split(".")
        place = nested
        for part in path:
            place = place.setdefault(part, {})
        place[last] = value
    return nested


def memory_snapshot(mempool_id: Any = None) -> Any:
    """The state of CUDA's allocator; empty where there is none."""
    native = backend().native
    return _unknown("memory_snapshot", []) if native is None else native.memory_snapshot(mempool_id)


def host_memory_stats() -> dict[str, Any]:
    """Figures of page-locked host memory; empty where CUDA is not there."""
    native = backend().native
    return _unknown("host_memory_stats", {}) if native is None else native.host_memory_stats()


def host_memory_stats_as_nested_dict() -> dict[str, Any]:
    """``host_memory_stats`` with a dict for each part of a name before a dot."""
    return _nested(host_memory_stats())


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Limit the memory of this process, on CUDA."""
    native = backend().native
    if native is None:
        notice(f"set_per_process_memory_fraction: {backend().name} does not limit memory")
    else:
        native.set_per_process_memory_fraction(fraction, device)


def get_per_process_memory_fraction(device: Any = None) -> float:
    """The limit that ``set_per_process_memory_fraction`` set; 1.0, all of it, where CUDA is not there."""
    native = backend().native
    return 1.0 if native is None else native.get_per_process_memory_fraction(device)


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


def reset_peak_host_memory_stats() -> None:
    """Start the maxima of page-locked host memory afresh."""
    _act("reset_peak_host_memory_stats")


def reset_accumulated_host_memory_stats() -> None:
    """Start the running totals of page-locked host memory afresh."""
    _act("reset_accumulated_host_memory_stats")


def empty_cache() -> None:
    """Give unused cached memory back."""
    _act("empty_cache")


def ipc_collect() -> None:
    """Free memory that other processes have closed (CUDA only)."""
    _act("ipc_collect")
