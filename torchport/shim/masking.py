"""Assignment through an index of which only the running program knows that it is a boolean mask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from torchport.shim.selection import backend


def masked_assign(target: Any, index: Any, value: Any) -> None:
    """``target[index] = value``, in place, without dynamic shapes where ``index`` is a boolean mask on PyTorch/XLA.

    There a plain assignment through a mask fetches the mask and compiles anew for each number of true elements. A mask
    may stand alone or among slices and numbers (``x[:, mask]``); any other index, and every index elsewhere, is plain
    indexing. Views, dtypes and gradients are those of plain indexing.

    How many elements a mask selects is not known without fetching it. So where ``value`` brings a row for each selected
    element and their number is wrong, floating point targets get NaN instead of an error.
    """
    place = _find_mask(target, index) if backend().recompiles_for_masks else None
    if place is None or not _assign(place, value):
        target[index] = _near(value, target)


class _Place(NamedTuple):
    """A boolean ``mask`` over the dimensions of ``view`` that begin with ``dimension``."""

    view: torch.Tensor
    mask: torch.Tensor
    dimension: int


def _find_mask(target: Any, index: Any) -> _Place | None:
    parts = index if isinstance(index, tuple) else (index,)
    masks = [number for number, part in enumerate(parts) if _is_mask(part)]
    if not isinstance(target, torch.Tensor) or target.device.type != backend().device_type or len(masks) != 1:
        return None
    mask: torch.Tensor = parts[masks[0]]
    before, after = parts[: masks[0]], parts[masks[0] + 1 :]
    if not all(_is_basic(part) for part in (*before, *after)):
        return None
    taken = sum(part is not None and part is not Ellipsis for part in (*before, *after)) + mask.dim()
    if taken > target.dim():
        return None
    # the dimensions of the mask stand as full slices in its place; the rest makes a view
    view = target[(*before, *[slice(None)] * mask.dim(), *after)]
    skipped = target.dim() - taken if Ellipsis in before else 0
    dimension = sum(not _is_number(part) and part is not Ellipsis for part in before) + skipped
    if tuple(view.shape[dimension : dimension + mask.dim()]) != tuple(mask.shape):
        return None
    return _Place(view, mask.to(view.device), dimension)


def _near(value: Any, target: Any) -> Any:
    """A number in a CPU tensor goes to the device first: CUDA takes it from the host by itself, TorchTPU does not."""
    if not (isinstance(value, torch.Tensor) and isinstance(target, torch.Tensor)):
        return value
    return value.to(target.device, target.dtype) if value.dim() == 0 and value.device != target.device else value


def _is_mask(part: Any) -> bool:
    return isinstance(part, torch.Tensor) and part.dtype == torch.bool


def _is_number(part: Any) -> bool:
    return isinstance(part, int) and not isinstance(part, bool)


def _is_basic(part: Any) -> bool:
    return part is None or part is Ellipsis or isinstance(part, slice) or _is_number(part)


def _assign(place: _Place, value: Any) -> bool:
    """Whether the assignment was done; if not it is left to plain indexing, which also knows the errors."""
    view, mask, first = place
    after = first + mask.dim()
    full = mask.reshape([1] * first + list(mask.shape) + [1] * (view.dim() - after))
    if isinstance(value, bool | int | float | complex):
        if not view.is_floating_point():
            torch.full((), value, dtype=view.dtype)  # raises for a number that does not fit
        view.masked_fill_(full, value)
        return True
    if not isinstance(value, torch.Tensor):
        return False
    if value.numel() == 1 and (value.dim() == 0 or value.device == view.device):
        view.masked_fill_(full, value.reshape(()).to(view.device, view.dtype))
        return True
    if value.dtype != view.dtype or value.device != view.device:
        return False
    # plain indexing broadcasts to the shape of view, with one dimension of rows in place of those of the mask
    rows = value.dim() - (view.dim() - after) - 1
    if rows < 0 or value.shape[rows] == 1:
        wide = value if rows < 0 else value.reshape(value.shape[:rows] + (1,) * mask.dim() + value.shape[rows + 1 :])
        if not _fits(wide.shape, view.shape):
            return False
        view.copy_(torch.where(full, wide, view))
        return True
    return view.is_floating_point() and _scatter(place, value, rows)


def _scatter(place: _Place, value: torch.Tensor, rows: int) -> bool:
    """Row after row of ``value`` to the selected elements; rows first on both sides, as masked_scatter_ reads them."""
    view, mask, first = place
    rest = (*view.shape[:first], *view.shape[first + mask.dim() :])
    value = value.movedim(rows, 0)
    if not _fits(value.shape[1:], rest):
        return False
    target = view.movedim(tuple(range(first, first + mask.dim())), tuple(range(mask.dim())))
    source = value.reshape(value.shape[:1] + (1,) * (len(rest) + 1 - value.dim()) + value.shape[1:])
    source = torch.where(mask.sum() == len(value), source, torch.nan).to(view.dtype).expand(-1, *rest)
    short = mask.numel() - len(value)
    if short > 0:  # masked_scatter_ must never run out of rows
        source = (
            torch.cat([source, source[:1].expand(short, *rest)])
            if len(value)
            else source.new_full((short, *rest), torch.nan)
        )
    target.masked_scatter_(mask.reshape(mask.shape + (1,) * len(rest)).expand(target.shape), source)
    return True


def _fits(shape: Sequence[int], into: Sequence[int]) -> bool:
    """Whether ``shape`` broadcasts to ``into``."""
    if len(shape) > len(into):
        return False
    return all(have in (1, want) for have, want in zip(reversed(shape), reversed(into), strict=False))
