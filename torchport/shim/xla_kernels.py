"""Operators that PyTorch/XLA 2.9 computes wrongly and without a word, made what they are on the CPU and on CUDA.

Each kernel here stands in front of that of PyTorch/XLA, for XLA tensors alone, and calls it for what it does right.
What was wrong (measured with torch_xla 2.9.0):

- sums and products of booleans and small integers along a dimension kept their dtype, so ``mask.cumsum(0)`` was a mask;
- ``count_nonzero`` of a mask was True, ``amax()`` and ``amin()`` without a dimension did nothing;
- NaN was lost in maxima, minima and clamps, so that a check for NaN passed; a clamp made infinity finite;
- a clamp of integers cut its bounds to integers;
- ``norm(inf)`` along a dimension was 1;
- the backward pass of a BatchNorm in eval mode raised.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch

_SMALL = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32)


@functools.cache
def right_kernels() -> Any:
    """Put the kernels up. Returns what keeps them in place for as long as it lives; it is kept here."""
    library = torch.library.Library("aten", "IMPL")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch says that kernels are replaced
        for name, make in _KERNELS.items():
            if torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", "XLA"):
                kernel = make(_original(name))
                library.impl(name, kernel, "XLA", with_keyset=True)
    return library


def _original(name: str) -> Callable[..., Any]:
    kernel: Callable[..., Any] = torch.library.get_kernel(f"aten::{name}", "XLA").call_boxed
    return kernel


def _accumulated(original: Any) -> Any:
    def kernel(keys: Any, x: Any, dim: int, *, dtype: Any = None) -> Any:
        if dtype is None and x.dtype in _SMALL:
            x = x.to(torch.int64)
        return original(keys, x, dim, dtype=dtype)

    return kernel


def _count_nonzero(original: Any) -> Any:
    def kernel(keys: Any, x: Any, dim: Any = None) -> Any:
        dims = [] if dim is None else [dim] if isinstance(dim, int) else list(dim)
        return (x != 0).to(torch.int64).sum(dims or list(range(x.dim())))

    return kernel


def _extremum_of_all(original: Any) -> Any:
    def kernel(keys: Any, x: Any) -> Any:
        return _with_nan(original(keys, x), x, list(range(x.dim())), False)

    return kernel


def _extremum_along(original: Any) -> Any:
    def kernel(keys: Any, x: Any, dim: Sequence[int] = (), keepdim: bool = False) -> Any:
        dims = list(dim) or list(range(x.dim()))
        return _with_nan(original(keys, x, dims, keepdim), x, dims, keepdim)

    return kernel


def _extremum_and_index(original: Any) -> Any:
    def kernel(keys: Any, x: Any, dim: int, keepdim: bool = False) -> Any:
        values, indices = original(keys, x, dim, keepdim)
        if not x.is_floating_point() or not x.dim():
            return values, indices
        is_nan = x.isnan()
        found = is_nan.any(dim, keepdim)
        return torch.where(found, torch.nan, values), torch.where(found, _first(is_nan, dim, keepdim), indices)

    return kernel


def _index(original: Any) -> Any:
    def kernel(keys: Any, x: Any, dim: int | None = None, keepdim: bool = False) -> Any:
        index = original(keys, x, dim, keepdim)
        if not x.is_floating_point() or not x.dim():
            return index
        is_nan = x.isnan()
        if dim is None:
            first = _first(is_nan.reshape(-1), 0, False).reshape(index.shape)
            return torch.where(is_nan.any(), first, index)
        return torch.where(is_nan.any(dim, keepdim), _first(is_nan, dim, keepdim), index)

    return kernel


def _first(flags: Any, dim: int, keepdim: bool) -> Any:
    """The index of the first true element."""
    return flags.to(torch.int32).argmax(dim, keepdim)


def _with_nan(result: Any, x: Any, dims: list[int], keepdim: bool) -> Any:
    if not x.is_floating_point() or not dims:
        return result
    return torch.where(
        x.isnan().any(dims, keepdim) if len(dims) > 1 else x.isnan().any(dims[0], keepdim), torch.nan, result
    )


def _extremum_of_two(original: Any) -> Any:
    def kernel(keys: Any, x: Any, y: Any) -> Any:
        result = original(keys, x, y)
        if not result.is_floating_point():
            return result
        return torch.where((x != x) | (y != y), torch.nan, result)

    return kernel


def _clamp(original: Any) -> Any:
    def kernel(keys: Any, x: Any, min: Any = None, max: Any = None) -> Any:
        return _clamped(x, min, max)

    return kernel


def _clamp_min(original: Any) -> Any:
    def kernel(keys: Any, x: Any, min: Any) -> Any:
        return _clamped(x, min, None)

    return kernel


def _clamp_max(original: Any) -> Any:
    def kernel(keys: Any, x: Any, max: Any) -> Any:
        return _clamped(x, None, max)

    return kernel


def _clamped(x: Any, low: Any, high: Any) -> Any:
    """By comparisons, which keep NaN and infinity; in the dtype that both the values and the bounds promote to."""
    if low is not None and high is not None and (low != low or high != high) and not isinstance(low, torch.Tensor):
        return torch.full_like(x, torch.nan)
    dtype = x.dtype
    for bound in (low, high):
        if bound is not None:
            dtype = torch.promote_types(dtype, torch.result_type(x, bound))
    x = x.to(dtype)
    for bound, beyond in ((low, torch.lt), (high, torch.gt)):
        if bound is None:
            continue
        if isinstance(bound, torch.Tensor):
            bound = bound.to(dtype)
            x = torch.where(beyond(x, bound) | (bound != bound), bound, x)
        else:
            x = torch.where(beyond(x, bound), torch.full_like(x, bound), x)
    return x


def _norm(original: Any) -> Any:
    def kernel(keys: Any, x: Any, *given: Any, dtype: Any = None) -> Any:
        order, dim, keepdim = (*given, *(2, None, False)[len(given) :])[:3]
        if order is None or not math.isinf(order):
            return original(keys, x, *given, **({} if dtype is None else {"dtype": dtype}))
        size = x.abs() if dtype is None else x.to(dtype).abs()
        dims = [dim] if isinstance(dim, int) else list(dim or range(x.dim()))
        return size.amax(dims, keepdim) if order > 0 else size.amin(dims, keepdim)

    return kernel


def _batch_norm_backward(original: Any) -> Any:
    def kernel(
        keys: Any,
        gradient: Any,
        x: Any,
        weight: Any,
        running_mean: Any,
        running_var: Any,
        mean: Any,
        inverse: Any,
        train: bool,
        eps: float,
        mask: Sequence[bool],
    ) -> Any:
        if train or running_mean is None or running_var is None:
            return original(keys, gradient, x, weight, running_mean, running_var, mean, inverse, train, eps, list(mask))
        shape = [1, -1] + [1] * (x.dim() - 2)
        others = [dimension for dimension in range(x.dim()) if dimension != 1]
        scale = (running_var + eps).rsqrt()
        normal = (x - running_mean.reshape(shape)) * scale.reshape(shape)
        factor = scale if weight is None else scale * weight
        return (
            (gradient * factor.reshape(shape)).to(x.dtype) if mask[0] else None,
            (gradient * normal).sum(others) if mask[1] else None,
            gradient.sum(others) if mask[2] else None,
        )

    return kernel


_KERNELS: dict[str, Callable[[Any], Any]] = {
    "cumsum": _accumulated,
    "cumprod": _accumulated,
    "count_nonzero": _count_nonzero,
    "count_nonzero.dim_IntList": _count_nonzero,
    "max": _extremum_of_all,
    "min": _extremum_of_all,
    "amax": _extremum_along,
    "amin": _extremum_along,
    "max.dim": _extremum_and_index,
    "min.dim": _extremum_and_index,
    "argmax": _index,
    "argmin": _index,
    "maximum": _extremum_of_two,
    "minimum": _extremum_of_two,
    "clamp": _clamp,
    "clamp.Tensor": _clamp,
    "clamp_min": _clamp_min,
    "clamp_min.Tensor": _clamp_min,
    "clamp_max": _clamp_max,
    "clamp_max.Tensor": _clamp_max,
    "norm.ScalarOpt_dim": _norm,
    "norm.ScalarOpt_dim_dtype": _norm,
    "linalg_vector_norm": _norm,
    "native_batch_norm_backward": _batch_norm_backward,
}
