"""Which names of torch are replaced, as data. A name that a version of torch lacks is passed over."""

from __future__ import annotations

TRUTHFUL = frozenset({"torch", "torch_tpu", "torch_xla", "torchport", "triton"})
"""Packages whose own questions and calls to torch.cuda are answered by torch itself."""

SHIM_FUNCTIONS = {
    "torch": {
        "compile": "compile",
        "load": "load",
        "save": "save",
        "set_default_tensor_type": "set_default_tensor_type",
    },
    "torch.backends.cuda": {"sdp_kernel": "sdp_kernel"},
    "torch.nn.attention": {"sdpa_kernel": "sdpa_kernel"},
    "torch.serialization": {"load": "load", "save": "save"},
    "torch.utils.checkpoint": {"checkpoint": "checkpoint"},
    "torch.cuda": {"_lazy_init": "init", "device": "device_context"},
    "torch.cuda.amp": {"custom_fwd": "custom_fwd", "custom_bwd": "custom_bwd"},
    "torch.distributed": {"init_process_group": "init_process_group"},
    "torch.distributed.distributed_c10d": {"init_process_group": "init_process_group"},
}
"""Module, name, and what stands for it in the shim. The names that torch.cuda and the shim share are added to these."""

OF_THE_PROGRAM = {
    "torch": {"manual_seed": "torch_manual_seed"},
    "torch.random": {"manual_seed": "torch_manual_seed", "fork_rng": "fork_rng"},
    "torch.distributed": {"new_group": "new_group"},
    "torch.distributed.distributed_c10d": {"new_group": "new_group"},
}
"""The same, but torch's own calls stay: among them is the seeding of a DataLoader's worker, which has no device."""

NOT_SHARED = frozenset({"OutOfMemoryError", "device", "device_count", "is_available", "nvtx", "profiler"})
"""Names of the shim that stand in torch.cuda too and are not replaced by it: questions, other meanings, modules."""

SUBMODULES = ("torch.cuda.memory", "torch.cuda.random", "torch.cuda.streams", "torch.cuda.graphs")
"""Where torch.cuda's functions stand a second time."""

DROPPED = {
    "torch.cuda": ("_sleep", "set_per_process_memory_fraction", "set_sync_debug_mode"),
    "torch.cuda.memory": ("_dump_snapshot", "_record_memory_history"),
    "torch.backends.cuda": ("preferred_blas_library", "preferred_linalg_library"),
    "torch.cuda.nvtx": ("mark", "range_end", "range_pop", "range_push", "range_start"),
    "torch.cuda.profiler": ("start", "stop"),
    "torch.Tensor": ("record_stream",),
}
"""What does nothing and returns 0, or None for a method."""

DEVICE_FUNCTIONS = {
    "torch": (
        *("arange", "as_tensor", "asarray", "bartlett_window", "blackman_window", "empty", "empty_like"),
        *("empty_permuted", "empty_strided", "eye", "full", "full_like", "hamming_window", "hann_window"),
        *("kaiser_window", "linspace", "logspace", "normal", "ones", "ones_like", "rand", "rand_like", "randint"),
        *("randint_like", "randn", "randn_like", "randperm", "range", "scalar_tensor", "sparse_compressed_tensor"),
        *("sparse_coo_tensor", "sparse_csr_tensor", "tensor", "tril_indices", "triu_indices", "zeros", "zeros_like"),
    ),
    "torch.fft": ("fftfreq", "rfftfreq"),
    "torch.Tensor": ("new_empty", "new_empty_strided", "new_full", "new_ones", "new_tensor", "new_zeros"),
}
"""Functions and methods with a keyword ``device``."""

FIRST_ARGUMENT = {
    "torch.Tensor": ("to",),
    "torch.nn.Module": ("to",),
    "torch.utils._device.DeviceContext": ("__init__",),
}
"""Functions and methods with a device first, or as a keyword ``device``. DeviceContext is torch.set_default_device and
``with torch.device(...)``."""

DEVICE_TYPES = {
    "torch.distributed": ("init_device_mesh",),
    "torch.distributed.device_mesh": ("init_device_mesh",),
    "torch.distributed.device_mesh.DeviceMesh": ("__init__",),
}
"""Functions with a device type first, or as a keyword ``device_type``."""

AUTOCAST = {
    "torch": (
        *("get_autocast_dtype", "is_autocast_available", "is_autocast_enabled", "set_autocast_dtype"),
        "set_autocast_enabled",
    ),
    "torch.amp": ("custom_bwd", "custom_fwd"),
}
"""The same, on accelerators only: autocast of the CPU is not what a CUDA program means."""

QUESTIONS = {
    "torch.cuda": {"device_count": "device_count", "is_available": "is_available"},
    "torch.distributed": {"is_nccl_available": "is_available"},
    "torch.distributed.distributed_c10d": {"is_nccl_available": "is_available"},
    "torch.backends.cuda": {"is_built": "is_available"},
}
"""What asks whether CUDA is there, and which name of the shim answers where CUDA is pretended."""

ACCELERATOR = {
    "current_device_index": "current_device",
    "device_count": "device_count",
    "empty_cache": "empty_cache",
    "is_available": "is_available",
    "max_memory_allocated": "max_memory_allocated",
    "max_memory_reserved": "max_memory_reserved",
    "memory_allocated": "memory_allocated",
    "memory_reserved": "memory_reserved",
    "memory_stats": "memory_stats",
    "reset_peak_memory_stats": "reset_peak_memory_stats",
    "set_device_index": "set_device",
    "synchronize": "synchronize",
}
"""Names of torch.accelerator, which does not know PyTorch/XLA, and the shim's answers, which are true."""

FUSED = ("Adagrad", "Adam", "AdamW", "SGD")
"""Optimizers of torch.optim that take ``fused=``."""
