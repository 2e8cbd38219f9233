"""Launching: torch.multiprocessing.spawn, whose processes have to be patched as well."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from torchport import shim
from torchport.shim.patching.mapping import Wrappers, called_by_torch
from torchport.shim.patching.registry import Patches

if TYPE_CHECKING:
    from torchport.shim.patching.session import Session


@dataclass(frozen=True)
class Installed:
    """``function``, in a new process where the same is installed."""

    function: Callable[..., Any]
    pretend_cuda: bool

    def __call__(self, *args: Any) -> Any:
        shim.install(pretend_cuda=self.pretend_cuda)
        return self.function(*args)


def put(session: Session, patches: Patches) -> None:
    """Replace torch.multiprocessing.spawn by shim.launch."""
    make = Wrappers(session)

    def spawn(original: Any) -> Any:
        @functools.wraps(original)
        def launch(fn: Any, args: Any = (), *others: Any, **kwargs: Any) -> Any:
            if not session.active or called_by_torch():
                return original(fn, args, *others, **kwargs)
            make.same("torch.multiprocessing.spawn", "shim.launch")
            return shim.launch(Installed(fn, session.pretend_cuda), args, *others, **kwargs)

        return launch

    patches.put(torch.multiprocessing, "spawn", spawn)
