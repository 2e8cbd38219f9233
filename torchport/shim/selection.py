"""Which back end this process uses: chosen at first use, never at import."""

from __future__ import annotations

import importlib
import os
import pkgutil
import threading

from torchport.shim import backends
from torchport.shim.backends.base import Backend
from torchport.shim.notices import notice

ENVIRONMENT_VARIABLE = "TORCHPORT_BACKEND"

_chosen: Backend | None = None
_lock = threading.RLock()


def backend() -> Backend:
    """Return the back end of this process, choosing it on the first call.

    Raises:
        RuntimeError: ``TORCHPORT_BACKEND`` names a back end that does not exist or cannot be used here.
    """
    global _chosen
    if _chosen is None:
        with _lock:
            if _chosen is None:
                candidate = _choose()
                candidate.start()
                _chosen = candidate
    return _chosen


def is_chosen() -> bool:
    """Whether the back end has been chosen."""
    return _chosen is not None


def available_backends() -> list[type[Backend]]:
    """The back end classes, one a module of ``torchport.shim.backends``, in the order in which they are tried."""
    found: list[type[Backend]] = []
    for module_info in pkgutil.iter_modules(backends.__path__):
        module = importlib.import_module(f"{backends.__name__}.{module_info.name}")
        found += [
            value
            for value in vars(module).values()
            if isinstance(value, type)
            and issubclass(value, Backend)
            and value.name
            and value.__module__ == module.__name__
        ]
    return sorted(found, key=lambda cls: cls.order)


def _choose() -> Backend:
    classes = available_backends()
    wanted = os.environ.get(ENVIRONMENT_VARIABLE, "").strip().lower()
    if not wanted:
        present = [cls for cls in classes if cls.is_present()]
        if len([cls for cls in present if cls.accelerator]) > 1:
            names = " and ".join(cls.name for cls in present if cls.accelerator)
            notice(f"{names} can be used here; {present[0].name} is, unless {ENVIRONMENT_VARIABLE} names another")
        return present[0]()
    for cls in classes:
        if cls.name == wanted:
            problem = cls.why_unusable()
            if problem:
                raise RuntimeError(f"{ENVIRONMENT_VARIABLE}={wanted}, but {problem}")
            return cls()
    names = ", ".join(sorted(cls.name for cls in classes))
    raise RuntimeError(
        f"{ENVIRONMENT_VARIABLE}={wanted} names no back end; set it to one of {names}, or unset it to choose by itself"
    )
