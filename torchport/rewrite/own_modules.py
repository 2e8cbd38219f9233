"""Whether a module that a file imports is one of the project, whatever library has the same name."""

from __future__ import annotations

import os
from functools import lru_cache

from torchport.project.paths import with_parents


def is_own_module(path: str, module: str) -> bool:
    """Whether ``module`` stands beside the file at ``path`` or above it, as a folder or a file.

    A folder without ``__init__.py`` counts for what is imported out of it: ``triton.runner``, not ``triton``.
    """
    return bool(path) and _stands_above(os.path.dirname(os.path.abspath(path)), module.replace(".", "/"))


@lru_cache(maxsize=1024)
def _stands_above(folder: str, name: str) -> bool:
    for place in with_parents(folder):
        if os.path.basename(place) == "site-packages":
            return False
        if "/" not in name and os.path.isfile(f"{place}/__init__.py"):
            continue  # what stands in a package is not imported by its bare name
        whole = f"{place}/{name}"
        if os.path.isfile(f"{whole}.py") or os.path.isfile(f"{whole}/__init__.py"):
            return True
        if "/" in name and os.path.isdir(whole):
            return True
    return False
