"""TorchTPU: eager PyTorch on TPUs, device type "tpu"."""

from __future__ import annotations

import functools
import importlib.util
import os
import pathlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import torch

from torchport.shim.backends.base import (
    COMPILERS_OF_CUDA,
    Backend,
    plain_gloo,
    run_in_place,
    without,
    world_size_from_environment,
)
from torchport.shim.batch_norm import right_running_statistics
from torchport.shim.notices import notice
from torchport.shim.parameters import keep_parameter_objects
from torchport.shim.sharding import move_to_one_device

_LAUNCH_VARIABLES = {
    "LOCAL_RANK": "0",
    "TORCH_TPU_SLICEBUILDER_ADDRESSES": "localhost:8471",
    "TORCH_TPU_TOPOLOGY": "1,1,1",
}
_DISTRIBUTED = "cpu:gloo,tpu:tpu_dist"
_STATE_BYTES = 16
_OLDEST_TORCH, _NEWEST_TORCH = (2, 11), (2, 15)


class TpuBackend(Backend):
    """One device a process."""

    name = "tpu"
    order = 20
    device_type = "tpu"
    autocast_type = "tpu"
    collectives = _DISTRIBUTED

    @classmethod
    def why_unusable(cls) -> str:
        spec = importlib.util.find_spec("torch_tpu")
        if spec is None:
            return "torch-tpu is not installed: pip install torchport[tpu]"
        if not any(pathlib.Path(folder, "_loader.py").is_file() for folder in spec.submodule_search_locations or ()):
            return (
                f"the installed package torch_tpu ({spec.origin}) is not that of Google's TorchTPU, but another "
                "vendor's of the same name: uninstall it, and pip install torchport[tpu]"
            )
        if torch._C._get_privateuse1_backend_name() == "tpu":
            return ""
        if not _OLDEST_TORCH <= _torch_version() <= _NEWEST_TORCH:
            return (
                f"torch-tpu works with torch 2.11 to 2.15, and torch {torch.__version__} is installed: "
                "pip install torchport[tpu]"
            )
        return "torch-tpu found no TPU on this machine: run it on a TPU host, or choose another back end"

    def __init__(self) -> None:
        self._pending_seed: int | None = None

    def start(self) -> None:
        keep_parameter_objects(self._seed_if_pending)
        _layer_norm_in_float32()
        right_running_statistics("PrivateUse1")
        _record_nothing()
        move_to_one_device(torch.device("tpu", 0), lambda: self.init_process_group(None, {}))

    def device_count(self) -> int:
        from torch_tpu._internal.utils import hardware

        return int(hardware.get_tpu_device_count()) or 1

    def is_initialized(self) -> bool:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the name is marked experimental
            return bool(torch.tpu.is_initialized())

    def init(self) -> None:
        self.synchronize()

    def synchronize(self, device: Any = None) -> None:
        torch.accelerator.synchronize()
        self._seed_if_pending()

    def device_name(self, device: Any = None) -> str:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the name is marked experimental
            return str(torch.tpu.get_device_name())

    def total_memory(self) -> int:
        return int(torch.accelerator.get_memory_info()[1])

    # Random numbers

    def seed_everything(self, seed: int) -> None:
        torch.default_generator.manual_seed(seed)
        self.seed_accelerator(seed)

    def seed_accelerator(self, seed: int) -> None:
        """Seed now where that cannot spoil a later launch, else when a module is moved to the device."""
        self._pending_seed = seed % 2**64  # what torch makes of a negative seed; TorchTPU refuses one
        launched = any(key in os.environ for key in _LAUNCH_VARIABLES)
        if launched or self.is_initialized() or self.device_count() == 1:
            self._seed_if_pending()

    def _seed_if_pending(self) -> None:
        if self._pending_seed is not None:
            seed, self._pending_seed = self._pending_seed, None
            for generator in self._generators():
                generator.manual_seed(seed)

    def initial_seed(self) -> int:
        # Generator.initial_seed() raises for the seed of a process, which may not fit into 63 bits
        return int.from_bytes(bytes(self.get_rng_state()[:8].tolist()), "little")

    def get_rng_state(self) -> torch.Tensor:
        self._seed_if_pending()
        state: torch.Tensor = self._generators()[0].get_state()
        return state

    def set_rng_state(self, state: torch.Tensor) -> None:
        if state.dtype != torch.uint8 or state.numel() != _STATE_BYTES:
            raise ValueError(f"expected {_STATE_BYTES} bytes, not {state.numel()} elements of {state.dtype}")
        self._generators()[0].set_state(state.cpu())

    @staticmethod
    def _generators() -> tuple[torch.Generator, ...]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the name is marked experimental
            return tuple(torch.tpu.default_generators)

    # Memory

    @functools.cached_property
    def _has_memory_statistics(self) -> bool:
        return self.total_memory() > 0

    def memory(self, what: str, device: Any = None) -> Any:
        if not self._has_memory_statistics or what == "memory_summary":
            return None
        if what == "mem_get_info":
            return torch.accelerator.get_memory_info()
        return getattr(torch.accelerator, what)()

    def memory_action(self, what: str, device: Any = None) -> bool:
        function = getattr(torch.accelerator, what, None)
        # A PJRT client without statistics dies in reset_peak_memory_stats instead of raising
        if function is None or not self._has_memory_statistics:
            return False
        function()
        return True

    # Processes

    def init_process_group(self, backend: str | None, arguments: Mapping[str, Any]) -> None:
        given = arguments.get("world_size", -1)
        size = given if given > 0 else world_size_from_environment()
        for key, value in _LAUNCH_VARIABLES.items():
            if size == 1:
                os.environ.setdefault(key, value)
            elif key not in os.environ and backend == "gloo":
                plain_gloo(arguments, f"{key} is not set")
                return
            elif key not in os.environ:
                raise RuntimeError(
                    f"init_process_group: {size} processes, but {key} is not set; in the shell that starts them run "
                    """eval "$(python -m torch.tpu.distributed | sed 's/^/export /')", then torchrun"""
                )
        kept = without(arguments, ["device_id"], "a process has one TPU")
        torch.distributed.init_process_group(_DISTRIBUTED, **kept)
        from torchport.shim.tpu_group import emulate_reduce

        emulate_reduce()

    def launch(self, fn: Callable[..., Any], args: tuple[Any, ...], nprocs: int, options: Mapping[str, Any]) -> Any:
        if nprocs <= 1 or self.device_count() == 1:
            if nprocs > 1:
                notice(f"launch: nprocs={nprocs}, but there is one TPU; one process is run")
            return run_in_place(fn, args, options)
        if self.is_initialized():
            raise RuntimeError(
                "launch: the TPU runtime was started before (by a tensor or module moved to the device), so this"
                " process holds a TPU that another one needs; do that inside the launched function"
            )
        torch.tpu.distributed.set_tpu_launch_env(nnodes=1, nproc_per_node=nprocs)
        return super().launch(fn, args, nprocs, {**options, "start_method": "spawn"})

    # Kernels

    def attention_kernels(self, asked: list[Any]) -> list[Any] | None:
        return [kernel for kernel in asked if kernel.name in ("FLASH_ATTENTION", "OVERRIDEABLE", "MATH")] or None

    # Loading, compiling

    def supports_pinned_memory(self) -> bool:
        return _can_pin()

    def compile_arguments(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        dropped = ["mode", "options"]
        if arguments.get("dynamic"):
            dropped.append("dynamic")
        kept = without(arguments, dropped, "the compiler is that of TorchTPU")
        if kept.get("backend") in COMPILERS_OF_CUDA:
            kept = without(kept, ["backend"], "the compiler is that of TorchTPU")
        return kept


def _torch_version() -> tuple[int, ...]:
    return tuple(int(part) for part in torch.__version__.split(".")[:2])


@functools.cache
def _can_pin() -> bool:
    """Ask the runtime once: not every PJRT client has a host allocator."""
    try:
        return bool(torch.empty(1).pin_memory().is_pinned())
    except (RuntimeError, NotImplementedError):
        return False


@functools.cache
def _record_nothing() -> Any:
    """Make ``Tensor.record_stream``, which FSDP calls, do nothing: there is one stream, and TorchTPU has no kernel."""
    key = "PrivateUse1"
    if torch._C._dispatch_has_kernel_for_dispatch_key("aten::record_stream", key):
        return None
    library = torch.library.Library("aten", "IMPL")
    library.impl("record_stream", lambda tensor, stream: None, key)
    return library  # the rule lasts as long as this object


@functools.cache
def _layer_norm_in_float32() -> Any:
    """Make autocast run layer_norm in float32, as on CUDA.

    TorchTPU's autocast leaves it out, and its lowering rejects a bfloat16 input with float32 weights: a transformer
    would not train. The rule is put where autocast keeps its own, so it also holds while a checkpoint is recomputed.
    """
    key = "AutocastPrivateUse1"
    if torch._C._dispatch_has_kernel_for_dispatch_key("aten::layer_norm", key):
        return None
    autocast_key = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastPrivateUse1)

    def raised(tensor: torch.Tensor | None) -> torch.Tensor | None:
        return tensor.float() if tensor is not None and tensor.dtype in (torch.bfloat16, torch.float16) else tensor

    def layer_norm(
        tensor: torch.Tensor,
        normalized_shape: list[int],
        weight: torch.Tensor | None = None,
        bias: torch.Tensor | None = None,
        eps: float = 1e-5,
        cudnn_enable: bool = True,
    ) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(autocast_key):
            return torch.ops.aten.layer_norm(
                raised(tensor), normalized_shape, raised(weight), raised(bias), eps, cudnn_enable
            )

    library = torch.library.Library("aten", "IMPL")
    library.impl("layer_norm", layer_norm, key)
    return library  # the rule lasts as long as this object
