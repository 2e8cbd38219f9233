"""NVIDIA GPUs: every name is torch's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch

from torchport.shim.backends.base import Backend


class CudaBackend(Backend):
    """The original: the migrated program does what it did before."""

    name = "cuda"
    order = 10
    device_type = "cuda"
    autocast_type = "cuda"
    collectives = "nccl"
    saves_own_tensors = True
    scales_gradients = True
    native = torch.cuda

    @classmethod
    def why_unusable(cls) -> str:
        if torch.cuda.is_available():
            return ""
        return "torch sees no CUDA device: install a CUDA build of torch and an NVIDIA driver, or choose another"

    def device(self, index: int | None = None) -> torch.device:
        return torch.device("cuda") if index is None else torch.device("cuda", index)

    def device_count(self) -> int:
        return torch.cuda.device_count()

    def current_device(self) -> int:
        return torch.cuda.current_device()

    def set_device(self, device: Any) -> None:
        torch.cuda.set_device(device)

    def device_context(self, device: Any) -> AbstractContextManager[Any]:
        context: AbstractContextManager[Any] = torch.cuda.device(device)
        return context

    def device_of(self, tensor: Any) -> AbstractContextManager[Any]:
        context: AbstractContextManager[Any] = torch.cuda.device_of(tensor)
        return context

    def synchronize(self, device: Any = None) -> None:
        torch.cuda.synchronize(device)

    def is_initialized(self) -> bool:
        return torch.cuda.is_initialized()

    def init(self) -> None:
        torch.cuda.init()

    def device_name(self, device: Any = None) -> str:
        return torch.cuda.get_device_name(device)

    def device_properties(self, device: Any = None) -> Any:
        return torch.cuda.get_device_properties(torch.cuda.current_device() if device is None else device)

    def device_capability(self, device: Any = None) -> tuple[int, int]:
        return torch.cuda.get_device_capability(device)

    def supports_bf16(self) -> bool:
        return torch.cuda.is_bf16_supported()

    def amp_dtype(self, dtype: torch.dtype | None) -> torch.dtype | None:
        return dtype

    def autocast(
        self, dtype: torch.dtype | None, enabled: bool, cache_enabled: bool | None, named: bool
    ) -> AbstractContextManager[Any]:
        chosen = dtype or (None if named else torch.float16)
        return torch.autocast("cuda", dtype=chosen, enabled=enabled, cache_enabled=cache_enabled)

    def seed_accelerator(self, seed: int) -> None:
        torch.cuda.manual_seed_all(seed)

    def initial_seed(self) -> int:
        return torch.cuda.initial_seed()

    def get_rng_state(self) -> torch.Tensor:
        return torch.cuda.get_rng_state()

    def set_rng_state(self, state: torch.Tensor) -> None:
        torch.cuda.set_rng_state(state.cpu())

    def memory(self, what: str, device: Any = None) -> Any:
        return getattr(torch.cuda, what)(device)

    def memory_action(self, what: str, device: Any = None) -> bool:
        function = getattr(torch.cuda, what)
        if what in ("empty_cache", "ipc_collect") or "host" in what:
            function()
        else:
            function(device)
        return True

    def device_ids(self, ids: Sequence[Any]) -> list[Any] | None:
        return list(ids)

    def data_parallel(self) -> bool:
        return True

    def init_process_group(self, backend: str | None, arguments: Mapping[str, Any]) -> None:
        torch.distributed.init_process_group(backend, **arguments)

    def launch(self, fn: Callable[..., Any], args: tuple[Any, ...], nprocs: int, options: Mapping[str, Any]) -> Any:
        if nprocs < 1:
            raise ValueError(f"launch: nprocs must be at least 1, not {nprocs}: nothing would run")
        return super().launch(fn, args, nprocs, options)

    def supports_pinned_memory(self) -> bool:
        return True
