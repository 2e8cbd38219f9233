"""The device to use, and what torch.cuda tells about it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch

from torchport.shim.notices import notice
from torchport.shim.selection import backend


def device(index: int | str | torch.device | None = None) -> torch.device:
    """The ``torch.device`` to use. Starts no runtime, so it may stand as a default argument.

    A number, a CUDA name ("cuda", "cuda:1", "0") or a CUDA device becomes the device of this back end; any other name
    or device is handed back as it is. Back ends with one device a process ignore the number.
    """
    if index is None or (isinstance(index, int) and not isinstance(index, bool)):
        return backend().device(index)
    if isinstance(index, str) and index.strip().isdecimal():
        return backend().device(int(index))
    given = torch.device(index)
    return backend().device(given.index) if given.type == "cuda" else given


def device_string(name: Any) -> Any:
    """A device name as a user typed it, made the name of this back end where it is one of CUDA.

    Anything else, also what is no text, is handed back as it is. Raises RuntimeError for a CUDA name that torch.device
    does not read, such as "cuda:x".
    """
    return str(device(name)) if isinstance(name, str) and name.startswith("cuda") else name


def accelerator_type() -> str:
    """The device type of tensors on the accelerator, to compare with; "cuda", so never true, on the CPU back end."""
    chosen = backend()
    return chosen.reported_type or chosen.device_type


def is_available() -> bool:
    """Whether an accelerator is there. Starts no runtime."""
    return backend().accelerator


def device_count() -> int:
    """The number of accelerators of this host, 0 on the CPU back end. Starts no runtime."""
    return backend().device_count()


def current_device() -> int:
    """The index of the device in use."""
    return backend().current_device()


def set_device(device: Any) -> None:
    """Choose the current CUDA device; elsewhere a process has one device, and this does nothing."""
    backend().set_device(device)


def synchronize(device: Any = None) -> None:
    """Wait until the device has done everything that was asked of it."""
    backend().synchronize(device)


def is_initialized() -> bool:
    """Whether the device runtime runs."""
    return backend().is_initialized()


def init() -> None:
    """Start the device runtime."""
    backend().init()


def get_device_name(device: Any = None) -> str:
    """The name of the device model."""
    return backend().device_name(device)


def get_device_properties(device: Any = None) -> Any:
    """An object with ``name``, ``total_memory`` (bytes, 0 where unknown), ``multi_processor_count``; more on CUDA."""
    return backend().device_properties(device)


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """CUDA's compute capability; (0, 0) elsewhere, so that a guard for new GPUs takes the plain path."""
    return backend().device_capability(device)


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the accelerator computes in bfloat16."""
    return backend().supports_bf16()


def is_tf32_supported() -> bool:
    """Whether products can be computed in TF32, a format of NVIDIA's GPUs."""
    native = backend().native
    return False if native is None else native.is_tf32_supported()


def get_arch_list() -> list[str]:
    """The GPU architectures that torch was built for; empty where CUDA is not there."""
    native = backend().native
    return [] if native is None else native.get_arch_list()


def get_gencode_flags() -> str:
    """The flags of NVCC that torch was built with; empty where CUDA is not there."""
    native = backend().native
    return "" if native is None else native.get_gencode_flags()


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Whether one device reads the memory of the other; False where a process has one device."""
    native = backend().native
    return False if native is None else native.can_device_access_peer(device, peer_device)


def get_sync_debug_mode() -> int:
    """Whether torch tells of waits for the device: 0 no, 1 it warns, 2 it raises; 0 where CUDA is not there."""
    native = backend().native
    return 0 if native is None else native.get_sync_debug_mode()


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """Have torch tell of waits for the device, on CUDA."""
    native = backend().native
    if native is not None:
        native.set_sync_debug_mode(debug_mode)
    elif debug_mode not in (0, "default"):
        notice(f"set_sync_debug_mode: {backend().name} does not tell of waits; `torchport lint` finds them")


def device_context(device: Any) -> AbstractContextManager[Any]:
    """torch.cuda.device: make ``device`` current within the context."""
    return backend().device_context(device)


def device_of(obj: Any) -> AbstractContextManager[Any]:
    """torch.cuda.device_of: make the device of tensor ``obj`` current within the context."""
    return backend().device_of(obj)
