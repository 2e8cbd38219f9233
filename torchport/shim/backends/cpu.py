"""The CPU, with torch alone: what a program written for CUDA does on a machine that has none."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import torch

from torchport.shim.backends.base import Backend, Off, run_in_place, without
from torchport.shim.notices import notice
from torchport.shim.sharding import move_to_one_device


class CpuBackend(Backend):
    """No accelerator: ``is_available()`` is False, and nothing is ever dropped that a CPU-only torch would do."""

    name = "cpu"
    order = 90
    accelerator = False
    device_type = "cpu"
    reported_type = "cuda"  # x.device.type == "cuda" was False on a CPU, and stays so
    autocast_type = "cuda"
    saves_own_tensors = True
    supports_capturable = False

    def start(self) -> None:
        move_to_one_device(torch.device("cpu"))

    def device_count(self) -> int:
        return 0

    def device_name(self, device: Any = None) -> str:
        return platform.processor() or platform.machine() or "cpu"

    def total_memory(self) -> int:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")

    def supports_bf16(self) -> bool:
        return False

    def is_initialized(self) -> bool:
        return False

    def amp_dtype(self, dtype: torch.dtype | None) -> torch.dtype | None:
        return dtype

    def autocast(
        self, dtype: torch.dtype | None, enabled: bool, cache_enabled: bool | None, named: bool
    ) -> AbstractContextManager[Any]:
        if not named:  # torch.cuda.amp.autocast() disables itself without a GPU
            return Off()
        return torch.autocast("cpu", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)

    def memory_action(self, what: str, device: Any = None) -> bool:
        return what in ("empty_cache", "ipc_collect")  # as torch.cuda's without a GPU

    def attention_kernels(self, asked: list[Any]) -> list[Any] | None:
        return [kernel for kernel in asked if kernel.name in ("FLASH_ATTENTION", "MATH")] or None

    def init_process_group(self, backend: str | None, arguments: Mapping[str, Any]) -> None:
        if backend is None or "nccl" in backend:
            notice(f"init_process_group: {backend or 'the default back end'} becomes gloo on the CPU")
            backend = "gloo"
        kept = without(arguments, ["device_id"], "a CPU process group is bound to no device")
        if kept.get("world_size") == 0:  # device_count() of a program that gives each device a process
            notice("init_process_group: world_size=0 becomes 1, as `launch` runs one process on the CPU")
            kept["world_size"] = 1
        torch.distributed.init_process_group(backend, **kept)

    def launch(self, fn: Callable[..., Any], args: tuple[Any, ...], nprocs: int, options: Mapping[str, Any]) -> Any:
        if nprocs >= 1:
            return super().launch(fn, args, nprocs, options)
        notice(f"launch: nprocs={nprocs} would start nothing; one process is run on the CPU")
        return run_in_place(fn, args, options)
