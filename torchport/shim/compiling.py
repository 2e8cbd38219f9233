"""Compiling with torch.compile."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from torchport.shim.selection import backend


def compile(model: Callable[..., Any] | None = None, **kwargs: Any) -> Any:
    """torch.compile, with the compiler and the options of this back end; also a decorator."""
    if model is None:
        return functools.partial(compile, **kwargs)
    return torch.compile(model, **backend().compile_arguments(kwargs))
