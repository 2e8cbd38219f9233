"""What a migrated program imports: torch.cuda's names, for CUDA, TorchTPU, PyTorch/XLA and the CPU.

The back end is chosen at first use: ``TORCHPORT_BACKEND``, else CUDA, TorchTPU, PyTorch/XLA, CPU, in that order of what
is really there. Importing this package starts no runtime. Emulated and dropped features say so through ``logging``
("torchport.shim"), once per call site.
"""

from __future__ import annotations

from torchport.shim.amp import GradScaler, autocast, custom_bwd, custom_fwd
from torchport.shim.compiling import (
    OutOfMemoryError,
    checkpoint,
    compile,
    is_fused_optimizer_supported,
    set_default_tensor_type,
)
from torchport.shim.devices import (
    accelerator_type,
    current_device,
    device,
    device_context,
    device_count,
    device_of,
    device_string,
    get_device_capability,
    get_device_name,
    get_device_properties,
    init,
    is_available,
    is_bf16_supported,
    is_initialized,
    set_device,
    synchronize,
)
from torchport.shim.distributed import DataParallel, device_ids, init_process_group, launch
from torchport.shim.loading import is_pin_memory_supported, pin_memory
from torchport.shim.masking import masked_assign
from torchport.shim.memory import (
    empty_cache,
    ipc_collect,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_stats,
    memory_summary,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_memory_stats,
)
from torchport.shim.patching import install, uninstall
from torchport.shim.random import (
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
from torchport.shim.selection import backend
from torchport.shim.serialization import load, save
from torchport.shim.steps import steps, sync

__all__ = [
    "DataParallel",
    "GradScaler",
    "OutOfMemoryError",
    "accelerator_type",
    "autocast",
    "backend",
    "checkpoint",
    "compile",
    "current_device",
    "custom_bwd",
    "custom_fwd",
    "device",
    "device_context",
    "device_count",
    "device_ids",
    "device_of",
    "device_string",
    "empty_cache",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "init",
    "init_process_group",
    "initial_seed",
    "install",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_fused_optimizer_supported",
    "is_initialized",
    "is_pin_memory_supported",
    "launch",
    "load",
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
    "memory_stats",
    "memory_summary",
    "pin_memory",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_memory_stats",
    "save",
    "seed",
    "seed_all",
    "set_default_tensor_type",
    "set_device",
    "set_rng_state",
    "set_rng_state_all",
    "steps",
    "sync",
    "synchronize",
    "torch_manual_seed",
    "uninstall",
]
