"""Step boundaries for programs that mark none, on a lazy back end.

A step ends when its last optimizer has stepped. Which one is the last is learnt: with several optimizers a new step has
begun when one of them steps again. Where no optimizer steps (evaluation, the first micro-batches of an accumulation) a
step ends when a DataLoader is asked for the next batch. So a loop has one boundary a turn, whether or not it has a
DataLoader; what neither has (a loop that only generates) runs when a value is read.
"""

from __future__ import annotations

import functools
import sys
import threading
from typing import Any

from torchport.shim.patching.registry import Patches
from torchport.shim.selection import backend


class _State(threading.local):
    """What one thread (a device of its own, on PyTorch/XLA's CPU) knows of its current step."""

    def __init__(self) -> None:
        self.stepped: set[int] = set()
        self.latest: int | None = None
        self.closing: int | None = None
        """The optimizer after which a boundary comes; unknown at first, and then each one is followed by one."""
        self.clean = True
        """Nothing was asked of an optimizer since the last boundary."""
        self.cut_in_turn = False
        self.depth = 0


class Boundaries:
    """Watches optimizers and DataLoaders."""

    def __init__(self) -> None:
        self.count = 0
        self._state = _State()
        self._hooks: list[Any] = []

    def put(self, patches: Patches) -> None:
        """Begin to watch."""
        from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
        from torch.utils.data.dataloader import _BaseDataLoaderIter

        self._hooks = [
            register_optimizer_step_pre_hook(self._before_step),
            register_optimizer_step_post_hook(self._after_step),
        ]
        patches.put(_BaseDataLoaderIter, "__next__", self._next_batch)

    def close(self) -> None:
        """Watch no more."""
        for hook in self._hooks:
            hook.remove()
        self._hooks = []

    def _cut(self) -> None:
        state = self._state
        state.clean = state.cut_in_turn = True
        if backend().is_initialized():  # else the program has put nothing on the device
            self.count += 1
            backend().sync()

    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        state = self._state
        state.depth += 1
        if state.depth > 1 or id(optimizer) not in state.stepped:
            return
        state.closing = state.latest
        state.stepped.clear()
        if not state.clean:
            self._cut()

    def _after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        state = self._state
        state.depth = max(state.depth - 1, 0)
        if state.depth:  # step() of a base class, called by that of the class
            return
        state.stepped.add(id(optimizer))
        state.latest = id(optimizer)
        state.clean = False
        if state.closing in (None, id(optimizer)):
            self._cut()

    def _next_batch(self, original: Any) -> Any:
        @functools.wraps(original)
        def next_batch(iterator: Any) -> Any:
            caller = str(sys._getframe(1).f_globals.get("__name__", ""))
            if self._hooks and not caller.startswith("torch_xla"):  # its own loaders mark steps
                state = self._state
                state.depth = 0  # a step() that raised never came to its end
                if getattr(iterator, "_torchport_turn", False) and not state.cut_in_turn:
                    self._cut()
                state.cut_in_turn = False
                iterator._torchport_turn = True
            return original(iterator)

        return next_batch
