"""What one file tells of its project, as the cache keeps it: to find it out takes longer than to read the file."""

from __future__ import annotations

from typing import Any

from torchport.analysis.elsewhere import stepping
from torchport.analysis.project import called_in, kernels_in, may_hold, scripted_in
from torchport.lazy import NamedTuple
from torchport.lint.work import Row


class Told(NamedTuple):
    """Parts of ``ProjectFacts``, made of what JSON knows."""

    kernels: list[list[str]]
    scripted: list[list[str]]
    stepping: list[str]
    loaded: list[str]
    stepped: list[str]
    """What is called outside of data sets."""
    held: list[Row]


def told_by(path: str, data: bytes) -> Told:
    """What the content of a file tells."""
    kernels, scripted = (sorted(map(list, pairs)) for pairs in (kernels_in(data, path), scripted_in(data)))
    loaded, stepped = map(sorted, called_in(data))
    return Told(kernels, scripted, sorted(stepping(data)), loaded, stepped, _held(path, data))


def told_of(entry: Any) -> Told | None:
    """What an entry of the cache holds, or None where it is none."""
    if not (isinstance(entry, list) and len(entry) == len(Told._fields) and all(isinstance(p, list) for p in entry)):
        return None
    told = Told(*entry)
    rows = ((told.kernels, 2), (told.scripted, 2), (told.held, 4))
    if not all(isinstance(row, list) and len(row) == length for part, length in rows for row in part):
        return None
    return told if all(isinstance(name, str) for part in told[2:5] for name in part) else None


def _held(path: str, data: bytes) -> list[Row]:
    """The names that a file shares with others and whose value it cannot move."""
    if not may_hold(data):
        return []
    from torchport.analysis.held import held_names

    return [list(item) for item in held_names(data.decode(errors="replace"), path)]
