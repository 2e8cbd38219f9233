"""PyTorch/XLA: lazy tensors on TPUs, or on the CPU with ``PJRT_DEVICE=CPU``.

When the runtime starts. Starting it before ``torch_xla.launch`` breaks the launch; starting it after the first backward
pass on the CPU leaves autograd without a queue for the device (an INTERNAL ASSERT at the first backward pass there). So
selection only imports torch_xla, and the first backward pass of the process starts the runtime just before it runs.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import pathlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

from torchport.shim.backends.base import (
    COMPILERS_OF_CUDA,
    Backend,
    Off,
    without,
)
from torchport.shim.batch_norm import right_running_statistics
from torchport.shim.boundaries import mark_steps
from torchport.shim.parameters import keep_parameter_objects
from torchport.shim.sharding import refuse_on_xla
from torchport.shim.xla_kernels import right_kernels

# PCI identifiers of TPU chips; a Google network card has the same vendor
_VENDOR = "0x1ae0"
_CHIPS = frozenset({"0x0027", "0x005e", "0x0062", "0x0063", "0x006f", "0x0076"})
_MEMORY_KEYS = {
    "memory_allocated": "bytes_used",
    "memory_reserved": "bytes_used",
    "max_memory_allocated": "peak_bytes_used",
    "max_memory_reserved": "peak_bytes_used",
}
_STATE_BYTES = 8


def tpu_chips() -> int:
    """How many TPU chips the PCI bus of this host shows."""
    found = 0
    for vendor in pathlib.Path("/sys/bus/pci/devices").glob("*/vendor"):
        if vendor.read_text().strip() == _VENDOR:
            found += (vendor.parent / "device").read_text().strip() in _CHIPS
    return found


class XlaBackend(Backend):
    """One lazy device a process (on a CPU a thread)."""

    name = "xla"
    order = 30
    device_type = "xla"
    lazy = True
    autocast_type = "xla"
    collectives = "xla"
    restores_storages = False
    recompiles_for_masks = True
    supports_foreach = False

    def __init__(self) -> None:
        self._pending_seed: int | None = None
        self._last_seed: int | None = None

    @classmethod
    def why_unusable(cls) -> str:
        if importlib.util.find_spec("torch_xla") is None:
            return "torch_xla is not installed: pip install torchport[xla]"
        version = importlib.metadata.version("torch_xla")
        if version.split(".")[:2] != torch.__version__.split(".")[:2]:  # it would not even import
            return (
                f"torch_xla {version} works with the torch of the same number, and torch {torch.__version__} is "
                "installed: pip install torchport[xla], which brings both"
            )
        return ""

    @classmethod
    def is_present(cls) -> bool:
        return cls.why_unusable() == "" and bool(os.environ.get("PJRT_DEVICE") or tpu_chips())

    def start(self) -> None:
        import torch_xla  # noqa: F401  the device name works from here on

        keep_parameter_objects(self._seed_if_pending)
        _before_first_backward(self.init)
        right_running_statistics("XLA")
        right_kernels()
        _put_back_what_torch_xla_replaced()
        if torch.distributed.is_available():
            import torch_xla.runtime as xr

            from torchport.shim.xla_group import refuse_xla_tensors

            refuse_xla_tensors()
            refuse_on_xla(xr.is_spmd)

    # The runtime

    def is_initialized(self) -> bool:
        import torch_xla

        return bool(torch_xla._XLAC._xla_runtime_is_initialized())

    def init(self) -> None:
        import torch_xla

        if torch.distributed.is_torchelastic_launched() and not self.is_initialized():
            from torchport.shim.xla_processes import start_torchrun_process

            start_torchrun_process()
        torch_xla.device()
        self._seed_if_pending()

    def device_count(self) -> int:
        import torch_xla.runtime as xr

        if self.is_initialized():
            return int(xr.local_device_count())
        if xr.device_type() == "TPU":
            from torch_xla._internal import tpu

            return int(tpu.num_available_devices())
        return int(os.environ.get(f"{xr.device_type()}_NUM_DEVICES", "1"))

    def current_device(self) -> int:
        import torch_xla

        return int(torch_xla.device().index or 0) if self.is_initialized() else 0

    def device_name(self, device: Any = None) -> str:
        import torch_xla.core.xla_model as xm

        self.init()
        return str(xm.xla_device_kind())

    def total_memory(self) -> int:
        return int((self._memory_info() or {}).get("bytes_limit", 0))

    def synchronize(self, device: Any = None) -> None:
        import torch_xla
        import torch_xla.core.xla_model as xm

        self.init()
        state = xm.get_rng_state()
        torch_xla.sync(wait=True)
        xm.wait_device_ops()  # what earlier boundaries launched
        xm.set_rng_state(state)  # a boundary moves the generator on, waiting must not

    # Steps

    def sync(self) -> None:
        import torch_xla

        self.init()
        torch_xla.sync()

    def steps(self, iterable: Iterable[Any]) -> Any:
        return mark_steps(iterable, self.sync)

    # Random numbers

    def seed_accelerator(self, seed: int) -> None:
        """Seed now where that cannot spoil a later launch, else as soon as the runtime runs."""
        self._last_seed = seed
        self._pending_seed = seed % 2**64
        launched = "PJRT_LOCAL_PROCESS_RANK" in os.environ
        if launched or self.is_initialized() or self.device_count() == 1:
            self.init()

    def _seed_if_pending(self) -> None:
        import torch_xla.core.xla_model as xm

        if self._pending_seed is not None:
            seed, self._pending_seed = self._pending_seed, None
            xm.set_rng_state(seed)

    def seed_everything(self, seed: int) -> None:
        torch.manual_seed(seed)
        self.seed_accelerator(seed)

    def initial_seed(self) -> int:
        return self._last_seed if self._last_seed is not None else torch.initial_seed()

    def get_rng_state(self) -> torch.Tensor:
        import torch_xla.core.xla_model as xm

        self.init()
        return torch.tensor(list(int(xm.get_rng_state()).to_bytes(_STATE_BYTES, "little")), dtype=torch.uint8)

    def set_rng_state(self, state: torch.Tensor) -> None:
        import torch_xla.core.xla_model as xm

        if state.dtype != torch.uint8 or state.numel() != _STATE_BYTES:
            raise ValueError(f"expected {_STATE_BYTES} bytes, not {state.numel()} elements of {state.dtype}")
        self.init()
        xm.set_rng_state(int.from_bytes(bytes(state.tolist()), "little"))

    def generator(self) -> torch.Generator:
        return torch.Generator()  # a generator of the CPU also fills tensors on the device, with numbers of the CPU

    # Memory

    def _memory_info(self) -> dict[str, int] | None:
        import torch_xla
        import torch_xla.core.xla_model as xm

        self.init()
        try:
            return dict(xm.get_memory_info(torch_xla.device()))
        except RuntimeError as error:
            if "UNIMPLEMENTED" in str(error):  # the CPU client keeps no statistics
                return None
            raise

    def memory(self, what: str, device: Any = None) -> Any:
        info = self._memory_info()
        if info is None or what == "memory_summary":
            return None
        if what == "memory_stats":
            return info
        if what == "mem_get_info":
            return (info["bytes_limit"] - info["bytes_used"], info["bytes_limit"])
        return info[_MEMORY_KEYS[what]]

    # Files

    def tensor_key(self, tensor: torch.Tensor) -> Any:
        import torch_xla

        return (torch_xla._XLAC._xla_get_tensor_id(tensor), tensor.shape, tensor.dtype)

    # Processes

    def init_process_group(self, backend: str | None, arguments: Mapping[str, Any]) -> None:
        from torchport.shim import xla_processes

        self.init()
        xla_processes.init_process_group(backend, arguments)

    def launch(self, fn: Callable[..., Any], args: tuple[Any, ...], nprocs: int, options: Mapping[str, Any]) -> Any:
        from torchport.shim import xla_processes

        return xla_processes.launch(self, fn, args, nprocs, options)

    # Kernels and settings

    def attention_kernels(self, asked: list[Any]) -> list[Any] | None:
        return None

    def inference_mode(self, mode: Any) -> Any:
        if callable(mode):
            return torch.no_grad()(mode)
        return torch.no_grad() if mode else Off()

    def set_matmul_precision(self, precision: str) -> None:
        import torch_xla.backends

        torch.set_float32_matmul_precision(precision)
        torch_xla.backends.set_mat_mul_precision({"medium": "default"}.get(precision, precision))

    # Compiling, recomputing

    def supports_fused_optimizers(self) -> bool:
        return False

    def compile_arguments(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        kept = without(arguments, ["mode", "options", "dynamic"], "the compiler is openxla")
        if kept.get("backend", "inductor") in COMPILERS_OF_CUDA:
            kept["backend"] = "openxla"
        return kept

    def checkpoint(self, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        from torchport.shim.recompute import checkpoint_on_xla

        return checkpoint_on_xla(function, args, options)


def _put_back_what_torch_xla_replaced() -> None:
    """Its nn.GRU raises for CPU tensors, and its clip_grad_norm_ puts the norm of CPU gradients on the device."""
    for owner, name in ((torch.nn, "GRU"), (torch.nn.utils, "clip_grad_norm_")):
        replaced = getattr(owner, name)
        setattr(owner, name, getattr(replaced, "_orig", None) or replaced)


def _before_first_backward(start: Callable[[], None]) -> None:
    """Call ``start`` just before the first backward pass of this process; say it clearly where that is too late."""
    original = torch.autograd._engine_run_backward
    started = False

    def run(*args: Any, **kwargs: Any) -> Any:
        nonlocal started
        if not started:
            started = True
            start()
        try:
            return original(*args, **kwargs)
        except RuntimeError as error:
            if "device_ready_queues_" not in str(error):
                raise
            raise RuntimeError(
                "a backward pass on the CPU came before PyTorch/XLA was loaded, so the process has no queue for one on "
                "the device: use the shim, as in `device = shim.device()`, before the first backward pass"
            ) from error

    torch.autograd._engine_run_backward = run
