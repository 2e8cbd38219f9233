"""Puts up what the tables name."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._device import _device_constructors

from torchport import shim
from torchport.shim.patching import tables
from torchport.shim.patching.mapping import Make, Wrappers
from torchport.shim.patching.registry import Patches
from torchport.shim.support import CUDA_ONLY

if TYPE_CHECKING:
    from torchport.shim.patching.session import Session


def put(session: Session, patches: Patches) -> None:
    """Replace every function of the tables."""
    _device_constructors()  # a cache of torch: it has to hold the functions that are here before they are replaced
    make = Wrappers(session)
    _put_shim_functions(make, patches)
    _put_cuda_only(make, patches)
    for place, names in tables.DROPPED.items():
        _put_each(patches, place, names, lambda what, method: make.by_nothing(what, None if method else 0))
    for place, names in tables.DEVICE_FUNCTIONS.items():
        _put_each(patches, place, names, lambda what, method: make.by_keyword(what))
    for place, names in tables.FIRST_ARGUMENT.items():
        _put_each(patches, place, names, lambda what, method: make.by_position(what, int(method)))
    for place, names in {**tables.DEVICE_TYPES, **(tables.AUTOCAST if shim.is_available() else {})}.items():
        _put_each(patches, place, names, lambda what, method: make.by_type(what, int(method)))
    for place, answers in tables.QUESTIONS.items():
        _put_each(patches, place, answers, lambda what, method: make.question(what))
    if shim.is_available() and not torch.accelerator.is_available():
        _put_accelerator(make, patches)


def _put_shim_functions(make: Wrappers, patches: Patches) -> None:
    for place, names in tables.SHIM_FUNCTIONS.items():
        of_cuda = place.startswith("torch.cuda")
        _put_mapped(patches, place, names, partial(make.by_shim, hidden=of_cuda))
    for place, names in tables.OF_THE_PROGRAM.items():
        _put_mapped(patches, place, names, partial(make.by_shim, hidden=True))
    patches.put(torch, "Generator", make.generator)
    shared = {name: name for name in shim.__all__ if hasattr(torch.cuda, name) and name not in tables.NOT_SHARED}
    originals = {name: getattr(torch.cuda, name) for name in shared}
    by_shim = partial(make.by_shim, hidden=True)
    _put_mapped(patches, "torch.cuda", shared, by_shim)
    for place in tables.SUBMODULES:
        same = {name: name for name in shared if vars(_owner(place)).get(name) is originals[name]}
        _put_mapped(patches, place, same, by_shim)


def _put_cuda_only(make: Wrappers, patches: Patches) -> None:
    """What works without CUDA (a version, an empty list) goes on working; the rest says what to do."""
    for name, advice in CUDA_ONLY.items():
        value = getattr(torch.cuda, name, None)
        if isinstance(value, ModuleType):
            own = [key for key, part in vars(value).items() if getattr(part, "__module__", "") == value.__name__]
            for part in (key for key in own if not key.startswith("_")):
                patches.put(value, part, make.cuda_only(f"{name}.{part}", advice))
        elif callable(value):
            patches.put(torch.cuda, name, make.cuda_only(name, advice))


def _put_accelerator(make: Wrappers, patches: Patches) -> None:
    _put_mapped(patches, "torch.accelerator", tables.ACCELERATOR, partial(make.by_shim, hidden=True))
    patches.put(torch.accelerator, "current_accelerator", make.current_accelerator)


def _put_mapped(patches: Patches, place: str, names: Mapping[str, str], wrapper: Callable[[str, str], Make]) -> None:
    for name, ours in names.items():
        patches.put(_owner(place), name, wrapper(f"{place}.{name}", ours))


def _put_each(patches: Patches, place: str, names: Any, wrapper: Callable[[str, bool], Make]) -> None:
    owner = _owner(place)
    is_method = isinstance(owner, type)
    for name in names:
        what = place.rpartition(".")[2] if name == "__init__" else f"{place}.{name}"
        patches.put(owner, name, wrapper(what.removeprefix("torch.nn.").replace("torch.Tensor", "Tensor"), is_method))


def _owner(place: str) -> Any:
    """A module or a class by its full name."""
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError:
        module, _, name = place.rpartition(".")
        return getattr(importlib.import_module(module), name)
