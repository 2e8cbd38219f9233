"""One installation: what it knows, and putting it up and taking it down."""

from __future__ import annotations

import sys

from torch.jit._builtins import _get_builtin_table

from torchport.shim.patching.boundaries import Boundaries
from torchport.shim.patching.log import Log, logger
from torchport.shim.patching.registry import Patches
from torchport.shim.selection import backend


class Session:
    """Replaces names of torch until it is closed. On CUDA it replaces nothing."""

    def __init__(self) -> None:
        self.log = Log()
        self.pretend_cuda = False
        self.active = True
        self.moved = False
        """Whether a mapped call has put anything on the accelerator."""
        self.boundaries = Boundaries()
        self._patches = Patches(_get_builtin_table())
        if backend().name != "cuda":
            self._put_all()

    def _put_all(self) -> None:
        from torchport.shim.patching import by_table, constructors, methods, processes

        for part in (by_table, methods, constructors, processes):
            part.put(self, self._patches)
        if backend().lazy:
            self.boundaries.put(self._patches)

    def close(self) -> None:
        """Put everything back."""
        self.active = False
        self.boundaries.close()
        forget_traced_functions()
        for name in self._patches.undo():
            logger.warning("uninstall: %s was replaced by somebody else meanwhile, and stays as it is", name)


def forget_traced_functions() -> None:
    """Let torch.compile look again at which functions are torch's: it may have kept replacements for originals."""
    rules = sys.modules.get("torch._dynamo.trace_rules")
    if rules is not None:
        rules.clear_lru_cache()
