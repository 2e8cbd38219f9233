"""What each public name of the shim does on each back end.

Data without torch: ``docs/build.py`` makes docs/shim.md of it, ``torchport.shim`` finds its names here, and a test runs
every name on every back end. A cell begins with one of ``LEVELS``; after a colon it says more.
"""

from __future__ import annotations

from typing import NamedTuple

BACKENDS = ("cuda", "cpu", "xla", "tpu")
LEVELS = {
    "same": "what torch.cuda does there, or does without a GPU",
    "emulated": "the same result by other means",
    "dropped": "nothing happens, and a notice says so once for each place that calls it",
    "raises": "an error that says what to do instead",
}


class Row(NamedTuple):
    """One or more names that behave alike."""

    names: tuple[str, ...]
    what: str
    cuda: str
    cpu: str
    xla: str
    tpu: str


class Group(NamedTuple):
    """The names of one module of the shim."""

    module: str
    title: str
    rows: tuple[Row, ...]


def _row(names: str, what: str, cpu: str = "same", xla: str = "same", tpu: str = "", cuda: str = "same") -> Row:
    return Row(tuple(names.split()), what, cuda, cpu, xla, tpu or xla)


TENSORS = ("BFloat16", "Bool", "Byte", "Char", "Double", "Float", "Half", "Int", "Long", "Short")
GROUPS = (
    Group(
        "devices",
        "Devices",
        (
            _row("device", "the `torch.device` to use; starts no runtime", xla="emulated: one device a process"),
            _row(
                "device_string",
                "the name of the device for one that a user typed",
                xla="emulated: a CUDA name becomes that of this back end",
                cpu="emulated: a CUDA name becomes `cpu`",
            ),
            _row("accelerator_type", "the device type to compare with", "same: `cuda`, so never true", "emulated"),
            _row("is_available", "whether an accelerator is there", "same: False", "emulated: True"),
            _row("device_count", "accelerators of this host", "same: 0", "emulated: starts no runtime"),
            _row("current_device", "the index of the device in use", "emulated: 0", "emulated"),
            _row("is_initialized init", "whether the runtime runs; start it", "same: False", "emulated"),
            _row(
                "set_device device_context device_of",
                "choose the current device",
                "same: there is none to choose",
                "emulated: a process has one device",
            ),
            _row("synchronize", "wait for the device", "same", "emulated: runs what is pending, and waits"),
            _row(
                "get_device_name get_device_properties", "the model and its memory", "emulated: of the host", "emulated"
            ),
            _row("get_device_capability", "the compute capability", "dropped: (0, 0)", "dropped: (0, 0)"),
            _row("is_bf16_supported", "whether bfloat16 is computed natively", "same: False", "emulated"),
            _row("is_tf32_supported", "whether TF32 is", "same: False", "same: False"),
            _row("get_arch_list get_gencode_flags", "the GPUs that torch was built for", "same: empty", "same: empty"),
            _row("can_device_access_peer", "whether devices read each other's memory", "same: False", "same: False"),
            _row("get_sync_debug_mode", "whether torch tells of waits", "same: 0", "same: 0"),
            _row("set_sync_debug_mode", "have torch tell of waits", "dropped", "dropped"),
        ),
    ),
    Group("selection", "Back end", (_row("backend", "the back end of this process"),)),
    Group(
        "boundaries",
        "Steps",
        (
            _row("steps", "the iterable, with a step boundary after each turn", xla="emulated", tpu="same: itself"),
            _row("sync", "a step boundary", xla="emulated", tpu="same: nothing to do"),
        ),
    ),
    Group(
        "amp",
        "Mixed precision",
        (
            _row(
                "autocast",
                "torch.cuda.amp.autocast; torch.autocast with `device_type=`",
                "same: off, as without a GPU",
                "emulated: bfloat16 for every 16-bit dtype",
                "emulated: bfloat16, and layer_norm in float32",
            ),
            _row("custom_fwd custom_bwd", "decorators of autograd functions", "same", "emulated"),
            _row(
                "GradScaler",
                "loss scaling; a state saved anywhere loads everywhere",
                "same: disabled",
                "emulated: disabled, as bfloat16 needs none",
            ),
            _row("amp_definitely_not_available", "whether there is no accelerator", "same: True", "emulated: False"),
        ),
    ),
    Group(
        "random",
        "Random numbers",
        (
            _row("torch_manual_seed", "torch.manual_seed, on every device", "same", "emulated", "same"),
            _row("manual_seed manual_seed_all seed seed_all", "seed the device", "same: there is none", "emulated"),
            _row("initial_seed", "the last seed of the device", "emulated: of the CPU", "emulated"),
            _row(
                "get_rng_state set_rng_state",
                "the state of the device's generator",
                "emulated: of the CPU",
                "emulated: 8 bytes",
                "emulated: 16 bytes",
            ),
            _row("get_rng_state_all set_rng_state_all", "the states of all devices", "same: none", "emulated: of one"),
            _row(
                "Generator",
                "a generator for tensors on the device",
                "emulated: of the CPU",
                "emulated: of the CPU",
                "emulated",
            ),
            _row("fork_rng", "draw numbers without moving the generators on", "same", "emulated"),
        ),
    ),
    Group(
        "memory",
        "Memory",
        (
            _row(
                "memory_allocated max_memory_allocated memory_reserved max_memory_reserved memory_cached"
                " max_memory_cached memory_stats memory_stats_as_nested_dict memory_summary mem_get_info",
                "figures of the allocator",
                "dropped: 0, or empty",
                "emulated: real on a TPU, `*_reserved` is `*_allocated`; dropped where the runtime keeps none",
                "emulated: real on a TPU; dropped where the runtime keeps none",
            ),
            _row(
                "reset_peak_memory_stats reset_max_memory_allocated reset_max_memory_cached"
                " reset_accumulated_memory_stats",
                "start the maxima or totals afresh",
                "dropped",
                "dropped",
                "emulated: real where there are figures, else dropped",
            ),
            _row(
                "empty_cache", "give unused memory back", "same: nothing to do", "dropped", "emulated: as the figures"
            ),
            _row("ipc_collect", "free what other processes closed", "same: nothing to do", "dropped"),
            _row(
                "memory_snapshot host_memory_stats host_memory_stats_as_nested_dict",
                "more figures",
                "dropped: empty",
                "dropped: empty",
            ),
            _row(
                "reset_peak_host_memory_stats reset_accumulated_host_memory_stats",
                "start those afresh",
                "dropped",
                "dropped",
            ),
            _row("set_per_process_memory_fraction", "limit the memory", "dropped", "dropped"),
            _row("get_per_process_memory_fraction", "the limit", "same: 1.0", "same: 1.0"),
        ),
    ),
    Group(
        "monitoring",
        "Monitoring",
        (
            _row(
                "utilization memory_usage temperature power_draw clock_rate device_memory_used list_gpu_processes",
                "what NVIDIA's management library tells",
                "dropped: 0, or empty",
                "dropped: 0, or empty",
            ),
        ),
    ),
    Group(
        "streams",
        "Streams and events",
        (
            _row(
                "Stream stream StreamContext current_stream default_stream set_stream record_stream",
                "queues of work",
                "emulated: one queue, in the order of the program",
                "emulated: one queue, in the order of the program",
            ),
            _row(
                "Event",
                "points in a queue; with `enable_timing` milliseconds",
                "emulated: the time of the host",
                "emulated: record() waits for the device and takes the time of the host",
            ),
        ),
    ),
    Group(
        "graphs",
        "Graphs",
        (
            _row("make_graphed_callables", "record functions", "emulated: handed back", "dropped: handed back"),
            _row("CUDAGraph graph", "record and replay", "raises", "raises"),
            _row("graph_pool_handle is_current_stream_capturing", "state of recording", "emulated", "emulated"),
        ),
    ),
    Group(
        "nvtx",
        "Profiling",
        (_row("nvtx", "named ranges", "emulated: for torch.profiler", "emulated: for torch.profiler"),),
    ),
    Group(
        "profiler", "NVIDIA's profiler", (_row("profiler", "start and stop NVIDIA's profiler", "dropped", "dropped"),)
    ),
    Group(
        "serialization",
        "Files",
        (
            _row("save", "torch.save; tensors that share memory still do", "same", "emulated: CPU tensors in the file"),
            _row(
                "load",
                "torch.load of a file that any back end wrote",
                "emulated: names of accelerators mean the CPU",
                "emulated: names of accelerators mean the device",
                cuda="emulated: names of accelerators mean CUDA",
            ),
        ),
    ),
    Group(
        "distributed",
        "Several devices",
        (
            _row(
                "init_process_group",
                "the process group",
                "emulated: nccl becomes gloo",
                "emulated: `xla`, with gloo beside it where gloo was asked",
                "emulated: `cpu:gloo,tpu:tpu_dist`",
            ),
            _row(
                "new_group",
                "torch.distributed.new_group",
                "emulated: nccl becomes gloo",
                "emulated: nccl becomes `xla`",
                "emulated: nccl becomes `cpu:gloo,tpu:tpu_dist`",
            ),
            _row(
                "accelerator_backend",
                "the process group's backend to compare with",
                "same: `nccl`, so never true",
                "emulated",
            ),
            _row("device_ids", "for DistributedDataParallel", "same: None", "emulated: None"),
            _row(
                "DataParallel", "torch.nn.DataParallel", "same: passes calls through", "dropped: passes calls through"
            ),
            _row(
                "launch",
                "torch.multiprocessing.spawn",
                "emulated: `nprocs=0` runs one",
                "emulated: torch_xla.launch over all devices",
                "emulated: sets the environment of a launch, and spawns; one TPU runs in place",
            ),
        ),
    ),
    Group(
        "loading",
        "DataLoader",
        (
            _row(
                "is_pin_memory_supported",
                "whether memory can be page-locked",
                "same: False",
                "emulated: False",
                "emulated: as the runtime answers",
            ),
            _row(
                "pin_memory",
                "page-lock a tensor",
                "same: the tensor itself",
                "dropped: the tensor itself",
                "emulated: as the runtime answers",
            ),
            _row("pin_memory_device", "for `DataLoader`", "same: empty", "emulated: empty"),
        ),
    ),
    Group(
        "optimizing",
        "Optimizers and gradients",
        (
            _row(
                "is_fused_optimizer_supported", "whether `fused=True` works", "same: True", "same: False", "same: True"
            ),
            _row(
                "is_foreach_optimizer_supported",
                "whether `foreach=True` works",
                "same: True",
                "same: False",
                "same: True",
            ),
            _row("is_capturable_optimizer_supported", "whether `capturable=True` works", "same: False", "same: True"),
            _row("clip_grad_norm_ clip_grad_value_", "clip gradients", "same", "emulated: without foreach", "same"),
        ),
    ),
    Group(
        "compiling",
        "Compiling",
        (
            _row(
                "compile",
                "torch.compile",
                "same",
                "emulated: openxla; `mode`, `options`, `dynamic` dropped",
                "emulated: TorchTPU's; `mode`, `options`, `dynamic=True` and inductor dropped",
            ),
        ),
    ),
    Group(
        "recompute",
        "Activation checkpointing",
        (
            _row("checkpoint", "recompute in the backward pass", "same", "emulated: torch_xla's, reentrant", "same"),
            _row("checkpoint_sequential", "the same for layers in a row", "same", "emulated: as checkpoint", "same"),
        ),
    ),
    Group(
        "attention",
        "Attention",
        (
            _row(
                "sdpa_kernel sdp_kernel",
                "choose the kernel of attention",
                "emulated: FLASH_ATTENTION and MATH; dropped where neither is allowed",
                "dropped: there is one way",
                "emulated: FLASH_ATTENTION and MATH; dropped where neither is allowed",
            ),
        ),
    ),
    Group(
        "masking",
        "Masks",
        (
            _row(
                "masked_assign",
                "`target[index] = value`",
                xla="emulated: a mask fetches and recompiles nothing",
                tpu="same",
            ),
        ),
    ),
    Group(
        "defaults",
        "Settings",
        (
            _row(
                "set_default_tensor_type",
                "torch.set_default_tensor_type",
                "emulated: default dtype and device",
                "emulated: default dtype and device",
                cuda="emulated: default dtype and device",
            ),
            _row("set_float32_matmul_precision", "the precision of products", "same", "emulated", "same"),
            _row("inference_mode", "torch.inference_mode", "same", "emulated: no_grad", "same"),
        ),
    ),
    Group(
        "tensor_types",
        "Tensor types",
        (
            _row(
                " ".join(f"{kind}Tensor" for kind in TENSORS),
                "torch.cuda.FloatTensor and its like, for a type that is kept in a name",
                "emulated: makes tensors; none is an instance",
                "emulated: makes tensors on the device",
            ),
            _row("as_type", "`tensor.type(kept)`", "same", "emulated: moves to the device"),
        ),
    ),
    Group(
        "patching",
        "Programs that cannot be edited",
        (
            _row(
                "install uninstall",
                "map CUDA calls of the program at run time, and put them back",
                "emulated: as on a TPU, to the CPU",
                "emulated",
            ),
        ),
    ),
    Group(
        "errors",
        "Errors",
        (
            _row(
                "OutOfMemoryError",
                "for `except shim.OutOfMemoryError`",
                "same",
                "emulated: also the RuntimeError that says so",
            ),
            _row("AcceleratorError DeferredCudaCallError", "errors of CUDA", "same", "same"),
            _row("CudaOnlyError", "what the calls of the list below raise", "same", "same"),
        ),
    ),
)

_RUNTIME = "it is about the runtime of CUDA, so take it out"
_ALLOCATOR = "it is about CUDA's allocator; a TPU's memory is the runtime's, so take it out"
_KERNELS = "it is about kernels of CUDA; write them with PyTorch's operators"
CUDA_ONLY = {
    "cudart": _RUNTIME,
    "check_error": _RUNTIME,
    "cudaStatus": _RUNTIME,
    "current_blas_handle": _RUNTIME,
    "current_solver_handle": _RUNTIME,
    "default_generators": "use shim.Generator, shim.get_rng_state and shim.manual_seed",
    "ExternalStream": "it wraps a stream of CUDA, so take it out",
    "get_stream_from_external": "it wraps a stream of CUDA, so take it out",
    "GreenContext": _RUNTIME,
    "caching_allocator_alloc": _ALLOCATOR,
    "caching_allocator_delete": _ALLOCATOR,
    "caching_allocator_enable": _ALLOCATOR,
    "caching_allocator_disabled": _ALLOCATOR,
    "change_current_allocator": _ALLOCATOR,
    "get_allocator_backend": _ALLOCATOR,
    "CUDAPluggableAllocator": _ALLOCATOR,
    "MemPool": _ALLOCATOR,
    "use_mem_pool": _ALLOCATOR,
    "comm": "a process has one device there; use the collectives of torch.distributed",
    "nccl": "use the collectives of torch.distributed",
    "jiterator": _KERNELS,
    "tunable": "it tunes products for GPUs, so take it out",
    "gds": "it reads files into the memory of a GPU; use shim.load",
}
"""Names of torch.cuda that mean nothing elsewhere: they may be named, and raise a CudaOnlyError when called."""

HOMES = {name: group.module for group in GROUPS for row in group.rows for name in row.names}
"""Name to the module of torchport.shim that holds it."""
