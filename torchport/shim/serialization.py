"""Files: what any back end wrote, any other reads."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any

import torch

from torchport.shim.devices import device
from torchport.shim.moving import move_tensors
from torchport.shim.selection import backend
from torchport.shim.storing import portable_pickle_module

_ACCELERATORS = ("cuda", "tpu", "xla", "privateuseone")


def save(
    obj: object,
    f: Any,
    pickle_module: Any = pickle,
    pickle_protocol: int = torch.serialization.DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """torch.save that writes CPU tensors from a TPU, so that every machine can read the file.

    The live objects stay where they are, and tensors that share memory share it in the file. On CUDA and on the CPU it
    is torch.save.
    """
    chosen = backend()
    if not chosen.saves_own_tensors:
        chosen.synchronize()  # run what is pending once, not once a tensor
        pickle_module = portable_pickle_module(pickle_module, chosen.tensor_key)
    torch.save(
        obj,
        f,
        pickle_module=pickle_module,
        pickle_protocol=pickle_protocol,
        _use_new_zipfile_serialization=_use_new_zipfile_serialization,
        _disable_byteorder_record=_disable_byteorder_record,
    )


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """torch.load for files of every back end.

    A CUDA, XLA or TPU name in ``map_location`` (also as value of a dict) stands for the device of this back end.
    Without ``map_location``, tensors that were saved on an accelerator come back on this one, and others on the CPU.
    Callables go to torch as they are.
    """
    arguments: dict[str, Any] = {"weights_only": weights_only, "mmap": mmap, **pickle_load_args}
    if pickle_module is not None:
        arguments["pickle_module"] = pickle_module
    if callable(map_location):
        return torch.load(f, map_location=map_location, **arguments)
    if map_location is not None and not isinstance(map_location, Mapping):
        return _load_to(f, map_location, arguments)
    return _load_by_tag(f, dict(map_location or {}), arguments)


def _load_to(f: Any, location: Any, arguments: dict[str, Any]) -> Any:
    """Everything to one place."""
    target = _own_device(location)
    if target.type == "cpu" or target.type not in _ACCELERATORS or backend().restores_storages:
        return torch.load(f, map_location=target, **arguments)
    loaded = torch.load(f, map_location="cpu", **arguments)
    return move_tensors(loaded, target)


def _load_by_tag(f: Any, mapping: dict[str, Any], arguments: dict[str, Any]) -> Any:
    """Each storage to what its tag in the file says, tags of accelerators standing for this one."""
    moved: set[int] = set()
    kept: list[Any] = []

    def place(storage: Any, tag: str) -> Any:
        wanted = mapping.get(tag, tag)
        if not _is_accelerator(wanted):
            return None if wanted == tag else torch.serialization.default_restore_location(storage, str(wanted))
        target = _own_device(wanted)
        if target.type == "cpu" or backend().restores_storages:
            return torch.serialization.default_restore_location(storage, str(target))
        moved.add(storage._cdata)
        kept.append(storage)
        return storage

    position = f.tell() if hasattr(f, "seek") and hasattr(f, "tell") else None
    try:
        loaded = torch.load(f, map_location=place, **arguments)
    except RuntimeError as error:
        if "Callable map_location not supported" not in str(error):
            raise
        # torch.save writes XLA tensors as arrays with a device name, which a callable cannot place
        if position is not None:
            f.seek(position)
        loaded = torch.load(f, map_location=_PlaceByTag(mapping), **arguments)
    return move_tensors(loaded, device(), lambda t: t.untyped_storage()._cdata in moved) if moved else loaded


class _PlaceByTag(dict[str, str]):
    """The dict that torch.load asks for the place of each tag; where storages cannot be placed they stay on the CPU."""

    def get(self, key: Any, default: Any = None) -> Any:
        wanted = super().get(key, key)
        if not _is_accelerator(wanted):
            return wanted
        return str(_own_device(wanted)) if backend().restores_storages or str(key).startswith("xla") else "cpu"


def _is_accelerator(location: Any) -> bool:
    return str(location).partition(":")[0] in _ACCELERATORS


def _own_device(location: Any) -> torch.device:
    """A CUDA, XLA or TPU location is the device of this back end, with its number on CUDA."""
    if isinstance(location, int):
        return device(location)
    if not _is_accelerator(location):
        return torch.device(location)
    index = str(location).partition(":")[2]
    return device(int(index)) if index.isdecimal() and str(location).startswith("cuda") else device()
