"""Device meshes and FSDP of torch.distributed: what a back end lacks is put right, or refused, below torch's own names.

``torch.distributed.fsdp`` takes most of a second to import, so it is changed when the program imports it.
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NoReturn

import torch

from torchport.shim.moving import move_tensors

_MESHES = "torch.distributed.device_mesh"
_FSDP = "torch.distributed.fsdp"
_DEFAULT_MESHES = ("_init_default_fully_shard_mesh", "_init_default_mesh")  # the name depends on the version of torch


class _Watcher(importlib.abc.MetaPathFinder):
    """Calls ``action`` after the import of one module."""

    def __init__(self, module: str, action: Callable[[], None]) -> None:
        self._module = module
        self._action = action

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The module as the other finders find it."""
        if fullname != self._module:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_act(module: ModuleType) -> None:
                execute(module)
                self._action()

            spec.loader.exec_module = execute_and_act  # type: ignore[method-assign]
        return spec


def _when_imported(module: str, action: Callable[[], None]) -> None:
    if module in sys.modules:
        action()
    elif torch.distributed.is_available():
        sys.meta_path.insert(0, _Watcher(module, action))


def _wrap(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    """Replace ``owner.name``, where this version of torch has it."""
    original = getattr(owner, name, None)
    if original is not None:
        setattr(owner, name, functools.wraps(original)(make(original)))


def _modules() -> tuple[Any, Any, Any, Any]:
    """Those of FSDP2 (``fully_shard``), then those of FSDP1 (``FullyShardedDataParallel``)."""
    from torch.distributed.fsdp import _init_utils, fully_sharded_data_parallel
    from torch.distributed.fsdp._fully_shard import _fsdp_init, _fully_shard

    return _fully_shard, _fsdp_init, fully_sharded_data_parallel, _init_utils


def move_to_one_device(device: torch.device, init_process_group: Callable[[], None] | None = None) -> None:
    """Have FSDP use ``device`` whatever number is given, and move modules there.

    Args:
        device: the one device of this process.
        init_process_group: makes the process group that a mesh needs where the program has made none; None leaves that
            to torch, which takes the default of its build.
    """

    def with_group(original: Any) -> Any:
        def make_mesh(*args: Any, **kwargs: Any) -> Any:
            if init_process_group is not None and not torch.distributed.is_initialized():
                init_process_group()
            return original(*args, **kwargs)

        return make_mesh

    def with_own_move(original: Any) -> Any:
        def move(params: list[torch.Tensor], buffers: list[torch.Tensor], target: torch.device | None) -> None:
            if target is not None and target.type == device.type:
                move_tensors([*params, *buffers], device)  # torch sets ``.data``, which cannot do it
            original(params, buffers, target)

        return move

    def with_own_device(original: Any) -> Any:
        signature = inspect.signature(original)

        def construct(*args: Any, **kwargs: Any) -> None:
            bound = signature.bind(*args, **kwargs)
            if device.type == "cpu" or bound.arguments.get("device_id") is not None:
                bound.arguments["device_id"] = device
            original(*bound.args, **bound.kwargs)

        return construct

    def change_fsdp() -> None:
        fully_shard, fsdp_init, fsdp, init_utils = _modules()
        for name in _DEFAULT_MESHES:
            _wrap(fully_shard, name, with_group)
        _wrap(fsdp.FullyShardedDataParallel, "__init__", with_own_device)
        if device.type != "cpu":
            for module in (fully_shard, fsdp_init, init_utils):
                _wrap(module, "_move_states_to_device", with_own_move)

    if init_process_group is not None:
        _when_imported(
            _MESHES, lambda: _wrap(sys.modules[_MESHES].DeviceMesh, "_setup_world_group_and_device", with_group)
        )
    _when_imported(_FSDP, change_fsdp)


def refuse_on_xla(compiler_shards: Callable[[], bool]) -> None:
    """Have meshes and FSDP on PyTorch/XLA say what to do; ``compiler_shards`` tells whether SPMD is on."""

    def without_xla(original: Any) -> Any:
        def construct(self: Any, device_type: str, *args: Any, **kwargs: Any) -> None:
            if device_type == "xla" and not compiler_shards():
                _refuse("a device mesh")
            original(self, device_type, *args, **kwargs)

        return construct

    def without_xla_mesh(original: Any) -> Any:
        def device_of(mesh: Any) -> Any:
            if mesh.device_type == "xla":
                _refuse("fully_shard")
            return original(mesh)

        return device_of

    def refused(what: str) -> Callable[[Any], Any]:
        return lambda original: lambda *args, **kwargs: _refuse(what)

    def change_fsdp() -> None:
        fully_shard, _, fsdp, _ = _modules()
        for name in _DEFAULT_MESHES:
            _wrap(fully_shard, name, refused("fully_shard"))
        _wrap(fully_shard, "_get_device_from_mesh", without_xla_mesh)
        _wrap(fsdp.FullyShardedDataParallel, "__init__", refused("FullyShardedDataParallel"))

    _when_imported(_MESHES, lambda: _wrap(sys.modules[_MESHES].DeviceMesh, "__init__", without_xla))
    _when_imported(_FSDP, change_fsdp)


def _refuse(what: str) -> NoReturn:
    raise RuntimeError(
        f"PyTorch/XLA cannot run {what} of torch.distributed. Its compiler shards instead: call"
        " torch_xla.runtime.use_spmd() first; then, with one torch_xla.distributed.spmd.Mesh of all devices, wrap the"
        " model in torch_xla.experimental.spmd_fully_sharded_data_parallel.SpmdFullyShardedDataParallel and give each"
        " batch to torch_xla.distributed.spmd.mark_sharding"
    )
