"""What a migrated program imports: torch.cuda's names, for CUDA, TorchTPU, PyTorch/XLA and the CPU.

The back end is chosen at first use: ``TORCHPORT_BACKEND``, else CUDA, TorchTPU, PyTorch/XLA, CPU, in that order of what
is really there. Importing this package imports nothing else and starts no runtime: each name comes from its module when
it is first used (``support.py`` says which). Emulated and dropped features say so through ``logging``
("torchport.shim"), once per call site.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from torchport.shim.support import CUDA_ONLY, HOMES

if TYPE_CHECKING:
    from torchport.shim import nvtx, profiler
    from torchport.shim.amp import GradScaler, amp_definitely_not_available, autocast, custom_bwd, custom_fwd
    from torchport.shim.attention import sdp_kernel, sdpa_kernel
    from torchport.shim.boundaries import steps, sync
    from torchport.shim.compiling import compile
    from torchport.shim.defaults import inference_mode, set_default_tensor_type, set_float32_matmul_precision
    from torchport.shim.devices import (
        accelerator_type,
        can_device_access_peer,
        current_device,
        device,
        device_context,
        device_count,
        device_of,
        device_string,
        get_arch_list,
        get_device_capability,
        get_device_name,
        get_device_properties,
        get_gencode_flags,
        get_sync_debug_mode,
        init,
        is_available,
        is_bf16_supported,
        is_initialized,
        is_tf32_supported,
        set_device,
        set_sync_debug_mode,
        synchronize,
    )
    from torchport.shim.distributed import (
        DataParallel,
        accelerator_backend,
        device_ids,
        init_process_group,
        launch,
        new_group,
    )
    from torchport.shim.errors import AcceleratorError, CudaOnlyError, DeferredCudaCallError, OutOfMemoryError
    from torchport.shim.graphs import (
        CUDAGraph,
        graph,
        graph_pool_handle,
        is_current_stream_capturing,
        make_graphed_callables,
    )
    from torchport.shim.loading import is_pin_memory_supported, pin_memory, pin_memory_device
    from torchport.shim.masking import masked_assign
    from torchport.shim.memory import (
        empty_cache,
        get_per_process_memory_fraction,
        host_memory_stats,
        host_memory_stats_as_nested_dict,
        ipc_collect,
        max_memory_allocated,
        max_memory_cached,
        max_memory_reserved,
        mem_get_info,
        memory_allocated,
        memory_cached,
        memory_reserved,
        memory_snapshot,
        memory_stats,
        memory_stats_as_nested_dict,
        memory_summary,
        reset_accumulated_host_memory_stats,
        reset_accumulated_memory_stats,
        reset_max_memory_allocated,
        reset_max_memory_cached,
        reset_peak_host_memory_stats,
        reset_peak_memory_stats,
        set_per_process_memory_fraction,
    )
    from torchport.shim.monitoring import (
        clock_rate,
        device_memory_used,
        list_gpu_processes,
        memory_usage,
        power_draw,
        temperature,
        utilization,
    )
    from torchport.shim.optimizing import (
        clip_grad_norm_,
        clip_grad_value_,
        is_capturable_optimizer_supported,
        is_foreach_optimizer_supported,
        is_fused_optimizer_supported,
    )
    from torchport.shim.patching import install, uninstall
    from torchport.shim.random import (
        Generator,
        fork_rng,
        get_rng_state,
        get_rng_state_all,
        initial_seed,
        manual_seed,
        manual_seed_all,
        seed,
        seed_all,
        set_rng_state,
        set_rng_state_all,
        torch_manual_seed,
    )
    from torchport.shim.recompute import checkpoint, checkpoint_sequential
    from torchport.shim.selection import backend
    from torchport.shim.serialization import load, save
    from torchport.shim.streams import (
        Event,
        Stream,
        StreamContext,
        current_stream,
        default_stream,
        record_stream,
        set_stream,
        stream,
    )
    from torchport.shim.tensor_types import (
        BFloat16Tensor,
        BoolTensor,
        ByteTensor,
        CharTensor,
        DoubleTensor,
        FloatTensor,
        HalfTensor,
        IntTensor,
        LongTensor,
        ShortTensor,
        as_type,
    )
else:

    def __getattr__(name: str) -> Any:
        """The public name of that name, from its module."""
        if name == "OutOfMemoryError":  # not kept: it depends on the error that is being handled
            return importlib.import_module(f"{__name__}.errors").out_of_memory_error()
        if name in CUDA_ONLY:
            return importlib.import_module(f"{__name__}.errors").cuda_only(name, CUDA_ONLY[name])
        if name not in HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        home = importlib.import_module(f"{__name__}.{HOMES[name]}")
        value = home if name == HOMES[name] else getattr(home, name)
        globals()[name] = value  # the next use does not come here
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *HOMES})


__all__ = [
    "AcceleratorError",
    "BFloat16Tensor",
    "BoolTensor",
    "ByteTensor",
    "CUDAGraph",
    "CharTensor",
    "CudaOnlyError",
    "DataParallel",
    "DeferredCudaCallError",
    "DoubleTensor",
    "Event",
    "FloatTensor",
    "Generator",
    "GradScaler",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "OutOfMemoryError",
    "ShortTensor",
    "Stream",
    "StreamContext",
    "accelerator_backend",
    "accelerator_type",
    "amp_definitely_not_available",
    "as_type",
    "autocast",
    "backend",
    "can_device_access_peer",
    "checkpoint",
    "checkpoint_sequential",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clock_rate",
    "compile",
    "current_device",
    "current_stream",
    "custom_bwd",
    "custom_fwd",
    "default_stream",
    "device",
    "device_context",
    "device_count",
    "device_ids",
    "device_memory_used",
    "device_of",
    "device_string",
    "empty_cache",
    "fork_rng",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_gencode_flags",
    "get_per_process_memory_fraction",
    "get_rng_state",
    "get_rng_state_all",
    "get_sync_debug_mode",
    "graph",
    "graph_pool_handle",
    "host_memory_stats",
    "host_memory_stats_as_nested_dict",
    "inference_mode",
    "init",
    "init_process_group",
    "initial_seed",
    "install",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_capturable_optimizer_supported",
    "is_current_stream_capturing",
    "is_foreach_optimizer_supported",
    "is_fused_optimizer_supported",
    "is_initialized",
    "is_pin_memory_supported",
    "is_tf32_supported",
    "launch",
    "list_gpu_processes",
    "load",
    "make_graphed_callables",
    "manual_seed",
    "manual_seed_all",
    "masked_assign",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "memory_usage",
    "new_group",
    "nvtx",
    "pin_memory",
    "pin_memory_device",
    "power_draw",
    "profiler",
    "record_stream",
    "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_host_memory_stats",
    "reset_peak_memory_stats",
    "save",
    "sdp_kernel",
    "sdpa_kernel",
    "seed",
    "seed_all",
    "set_default_tensor_type",
    "set_device",
    "set_float32_matmul_precision",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "set_sync_debug_mode",
    "steps",
    "stream",
    "sync",
    "synchronize",
    "temperature",
    "torch_manual_seed",
    "uninstall",
    "utilization",
]
