"""What a back end is: everything in which CUDA, TorchTPU, PyTorch/XLA and the CPU differ, and nothing else.

The defaults are those of a single, eager device without CUDA's extras; a back end overrides what it has or lacks.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import SimpleNamespace
from typing import Any, ClassVar

import torch

from torchport.shim.notices import notice

COMPILERS_OF_CUDA = ("inductor", "cudagraphs")
"""Back ends of torch.compile in whose place a TPU has a compiler of its own."""


class Off:
    """A context manager and decorator that does nothing; plain methods, which torch.compile can trace."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exception: object) -> None:
        return None

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return function


class FinishedProcesses:
    """Stands for the ``ProcessContext`` of ``torch.multiprocessing.spawn`` where the work is done already."""

    processes: tuple[Any, ...] = ()

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Return True: nothing is left to wait for."""
        return True


class Backend:
    """One way to run PyTorch. An instance exists only in a process that uses this back end."""

    name: ClassVar[str] = ""
    order: ClassVar[int] = 100
    """Back ends that are present are tried from the lowest number."""
    accelerator: ClassVar[bool] = True
    device_type: ClassVar[str] = ""
    lazy: ClassVar[bool] = False
    """Work is recorded, and runs at a step boundary."""
    reported_type: ClassVar[str] = ""
    """What ``shim.accelerator_type()`` returns; the device type unless set."""
    autocast_type: ClassVar[str] = ""
    collectives: ClassVar[str] = "gloo"
    """What torch.distributed.get_backend() gives for a process group of this device's tensors."""
    restores_storages: ClassVar[bool] = True
    """``torch.load`` can place storages on the device itself."""
    saves_own_tensors: ClassVar[bool] = False
    """``torch.save`` of device tensors gives a file that every machine with this device can read."""
    scales_gradients: ClassVar[bool] = False
    native: ClassVar[Any] = None
    """torch.cuda, where streams, graphs and the like are really there."""
    supports_foreach: ClassVar[bool] = True
    """``foreach=True`` works in optimizers and in gradient clipping."""
    supports_capturable: ClassVar[bool] = True
    """``capturable=True`` works in optimizers."""
    recompiles_for_masks: ClassVar[bool] = False
    """``x[mask] = y`` compiles anew for each number of true elements, which it has to fetch."""

    # Selection

    @classmethod
    def is_present(cls) -> bool:
        """Whether the hardware or runtime is really there. Starts nothing."""
        return cls.why_unusable() == ""

    @classmethod
    def why_unusable(cls) -> str:
        """Why this back end cannot be used here, and what to do; empty where it can."""
        return ""

    def start(self) -> None:
        """Prepare torch for this back end. Called once, at selection; starts no device runtime."""

    # Devices

    def device(self, index: int | None = None) -> torch.device:
        """The device to use; back ends with one device a process ignore ``index``."""
        return torch.device(self.device_type)

    def device_count(self) -> int:
        """How many devices a launcher may start a process for on this host."""
        return 1

    def current_device(self) -> int:
        """The index of the device in use."""
        return 0

    def set_device(self, device: Any) -> None:
        """Choose the current device; a no-op where a process has only one."""

    def device_context(self, device: Any) -> AbstractContextManager[Any]:
        """Make ``device`` current within the context."""
        return contextlib.nullcontext()

    def device_of(self, tensor: Any) -> AbstractContextManager[Any]:
        """Make the device of ``tensor`` current within the context."""
        return contextlib.nullcontext()

    def synchronize(self, device: Any = None) -> None:
        """Wait until everything that was asked of the device is done."""

    def is_initialized(self) -> bool:
        """Whether the device runtime runs."""
        return True

    def init(self) -> None:
        """Start the device runtime."""

    def device_name(self, device: Any = None) -> str:
        """The name of the device model."""
        return self.name

    def device_properties(self, device: Any = None) -> Any:
        """An object with ``name``, ``total_memory`` (bytes), ``multi_processor_count``, ``major`` and ``minor``."""
        return SimpleNamespace(
            name=self.device_name(), total_memory=self.total_memory(), multi_processor_count=1, major=0, minor=0
        )

    def device_capability(self, device: Any = None) -> tuple[int, int]:
        """CUDA's compute capability, (0, 0) where there is none."""
        notice(f"get_device_capability: {self.name} has no CUDA compute capability; (0, 0) is returned")
        return (0, 0)

    def total_memory(self) -> int:
        """Bytes of device memory, 0 where unknown."""
        return 0

    def supports_bf16(self) -> bool:
        """Whether bfloat16 is computed natively."""
        return True

    # Steps

    def sync(self) -> None:
        """Mark a step boundary; a no-op on eager back ends."""

    def steps(self, iterable: Iterable[Any]) -> Any:
        """``iterable`` with a step boundary after each turn; the very object on eager back ends."""
        return iterable

    # Mixed precision

    def amp_dtype(self, dtype: torch.dtype | None) -> torch.dtype | None:
        """The dtype to compute in where ``dtype`` was asked; TPUs have bfloat16 only."""
        if dtype in (None, torch.float16):
            asked = "float16, the default of torch.cuda.amp," if dtype is None else "float16"
            notice(f"autocast: {asked} becomes bfloat16 on {self.name}")
            return torch.bfloat16
        return dtype

    def autocast(
        self, dtype: torch.dtype | None, enabled: bool, cache_enabled: bool | None, named: bool
    ) -> AbstractContextManager[Any]:
        """The autocast context. ``named`` says that the program named a device type, as torch.autocast wants it."""
        chosen = self.amp_dtype(dtype) if enabled else torch.bfloat16
        return torch.autocast(self.autocast_type, dtype=chosen, enabled=enabled, cache_enabled=cache_enabled)

    # Random numbers

    def seed_accelerator(self, seed: int) -> None:
        """Seed the device generator alone."""

    def seed_everything(self, seed: int) -> None:
        """Seed every generator of torch, that of the device included."""
        torch.manual_seed(seed)

    def initial_seed(self) -> int:
        """The seed that the device generator was last given."""
        return torch.initial_seed()

    def get_rng_state(self) -> torch.Tensor:
        """The state of the device generator: a uint8 CPU tensor."""
        return torch.get_rng_state()

    def set_rng_state(self, state: torch.Tensor) -> None:
        """Restore what ``get_rng_state`` gave. Raises RuntimeError or ValueError for the state of another back end."""
        torch.set_rng_state(state.cpu())

    def generator(self) -> torch.Generator:
        """A new generator for tensors on the device."""
        return torch.Generator(self.device_type)

    # Memory

    def memory(self, what: str, device: Any = None) -> Any:
        """The figure (bytes, or a dict for ``memory_stats``) that torch.cuda.``what`` would give, or None."""
        return None

    def memory_action(self, what: str, device: Any = None) -> bool:
        """Do what torch.cuda.``what`` does, such as ``empty_cache``; False where there is no such thing."""
        return False

    # Files

    def tensor_key(self, tensor: torch.Tensor) -> Any:
        """Equal for device tensors that share all of their memory."""
        return (tensor.untyped_storage()._cdata, tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype)

    # Processes

    def device_ids(self, ids: Sequence[Any]) -> list[Any] | None:
        """The ``device_ids`` of DistributedDataParallel: None for one device a process."""
        return None

    def data_parallel(self) -> bool:
        """Whether torch.nn.DataParallel can spread a batch over the devices of this process."""
        return False

    def init_process_group(self, backend: str | None, arguments: Mapping[str, Any]) -> None:
        """torch.distributed.init_process_group with what this back end needs; ``arguments`` are the others."""
        raise NotImplementedError

    def launch(self, fn: Callable[..., Any], args: tuple[Any, ...], nprocs: int, options: Mapping[str, Any]) -> Any:
        """torch.multiprocessing.spawn with what this back end needs; ``options``: join, daemon, start_method."""
        return torch.multiprocessing.spawn(fn, args=args, nprocs=nprocs, **options)

    # Kernels and settings

    def attention_kernels(self, asked: list[Any]) -> list[Any] | None:
        """Those of the ``SDPBackend`` kernels that may be asked for here; None where nothing can be chosen."""
        return asked

    def inference_mode(self, mode: Any) -> Any:
        """torch.inference_mode."""
        return torch.inference_mode(mode)

    def set_matmul_precision(self, precision: str) -> None:
        """torch.set_float32_matmul_precision, also for the device."""
        torch.set_float32_matmul_precision(precision)

    # Loading, compiling, recomputing

    def supports_pinned_memory(self) -> bool:
        """Whether host memory can be page-locked for this device."""
        return False

    def supports_fused_optimizers(self) -> bool:
        """Whether ``fused=True`` works for parameters on this device."""
        return True

    def compile_arguments(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The keyword arguments of torch.compile that this back end takes."""
        return dict(arguments)

    def checkpoint(self, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """torch.utils.checkpoint.checkpoint."""
        from torch.utils.checkpoint import checkpoint

        return checkpoint(function, *args, **options)


def world_size_from_environment() -> int:
    """WORLD_SIZE as torchrun sets it, 1 where unset."""
    return int(os.environ.get("WORLD_SIZE", "1") or "1")


def plain_gloo(arguments: Mapping[str, Any], why: str) -> None:
    """A group of gloo as it was asked for, between processes that share no devices: their tensors are on the CPU."""
    notice(f"init_process_group: gloo joins the processes on the CPU alone, as {why}; it takes no tensors of a device")
    kept = without(arguments, ["device_id"], "a CPU process group is bound to no device")
    torch.distributed.init_process_group("gloo", **kept)


def run_in_place(fn: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]) -> FinishedProcesses | None:
    """Run ``fn(0, *args)`` here, and return what torch.multiprocessing.spawn returns for ``join``."""
    fn(0, *args)
    return None if options.get("join", True) else FinishedProcesses()


def without(arguments: Mapping[str, Any], names: Iterable[str], reason: str) -> dict[str, Any]:
    """``arguments`` less ``names``; each one that was really given is said once per call site."""
    kept = dict(arguments)
    for key in names:
        if kept.pop(key, None) is not None:
            notice(f"{key}= is dropped: {reason}")
    return kept
