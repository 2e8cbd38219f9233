"""Classes of torch whose constructors take CUDA settings. The classes stay, so that isinstance and subclasses do."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

import torch

from torchport import shim
from torchport.shim.patching.mapping import Wrappers
from torchport.shim.patching.registry import Patches
from torchport.shim.patching.tables import FUSED
from torchport.shim.selection import backend

if TYPE_CHECKING:
    from torchport.shim.patching.session import Session


def put(session: Session, patches: Patches) -> None:
    """Replace the constructors."""
    make = _Constructors(session)
    patches.put(torch.amp.autocast_mode.autocast, "__init__", make.autocast)
    patches.put(torch.amp.grad_scaler.GradScaler, "__init__", make.grad_scaler)
    patches.put(torch.utils.data.DataLoader, "__init__", make.data_loader)
    patches.put(torch.nn.parallel.DistributedDataParallel, "__init__", make.distributed_data_parallel)
    patches.put(torch.nn.DataParallel, "__init__", make.data_parallel)
    if not shim.is_fused_optimizer_supported():
        for name in FUSED:
            patches.put(getattr(torch.optim, name), "__init__", make.optimizer)


class _Constructors:
    """Wraps the constructors of one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._log = Wrappers(session)

    def _wrap(self, original: Any, change: Any) -> Any:
        """Call ``original`` with its arguments, by name, as ``change`` leaves them."""
        signature = inspect.signature(original)

        @functools.wraps(original)
        def construct(*args: Any, **kwargs: Any) -> None:
            if not self._session.active:
                return original(*args, **kwargs)
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            change(bound.arguments)
            return original(*bound.args, **bound.kwargs)

        return construct

    def autocast(self, original: Any) -> Any:
        """torch.autocast, torch.amp.autocast and torch.cuda.amp.autocast, for "cuda"."""

        def change(given: dict[str, Any]) -> None:
            if given["device_type"] != "cuda":
                return
            chosen = backend()
            if not chosen.accelerator:
                given["enabled"] = False
                self._log.dropped("autocast('cuda')")
                return
            given["device_type"] = chosen.autocast_type
            given["dtype"] = chosen.amp_dtype(given["dtype"]) if given["enabled"] else torch.bfloat16
            self._log.same("autocast('cuda')", f"autocast({chosen.autocast_type!r}, {given['dtype']})")

        return self._wrap(original, change)

    def grad_scaler(self, original: Any) -> Any:
        """Every GradScaler for "cuda": off where the back end needs no loss scaling."""

        def change(given: dict[str, Any]) -> None:
            if given["device"] == "cuda" and given["enabled"] and not backend().scales_gradients:
                given["enabled"] = False
                self._log.dropped("GradScaler(enabled=True)")

        return self._wrap(original, change)

    def data_loader(self, original: Any) -> Any:
        """DataLoader(pin_memory=True)."""

        @functools.wraps(original)
        def construct(loader: Any, *args: Any, **kwargs: Any) -> None:
            original(loader, *args, **kwargs)
            if self._session.active and loader.pin_memory and not shim.is_pin_memory_supported():
                object.__setattr__(loader, "pin_memory", False)
                self._log.dropped("DataLoader(pin_memory=True)")

        return construct

    def distributed_data_parallel(self, original: Any) -> Any:
        """DistributedDataParallel: a process has one device, which has no number."""

        def change(given: dict[str, Any]) -> None:
            if given["device_ids"] is not None or given["output_device"] is not None:
                given["device_ids"] = given["output_device"] = None
                self._log.dropped("DistributedDataParallel(device_ids=)")

        return self._wrap(original, change)

    def data_parallel(self, original: Any) -> Any:
        """torch.nn.DataParallel: the module itself, on one device."""

        @functools.wraps(original)
        def construct(wrapper: Any, *args: Any, **kwargs: Any) -> None:
            if not self._session.active or backend().data_parallel():
                original(wrapper, *args, **kwargs)
                return
            self._log.same("torch.nn.DataParallel", "shim.DataParallel")
            shim.DataParallel.__init__(wrapper, *args, **kwargs)

        return construct

    def optimizer(self, original: Any) -> Any:
        """Optimizers with ``fused=True``."""

        @functools.wraps(original)
        def construct(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            if self._session.active and kwargs.get("fused"):
                kwargs["fused"] = None
                self._log.dropped(f"{type(optimizer).__name__}(fused=True)")
            original(optimizer, *args, **kwargs)

        return construct
