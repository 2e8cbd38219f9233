"""Step boundaries: where a lazy back end runs what was recorded."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from torchport.shim.selection import backend

T = TypeVar("T")


def sync() -> None:
    """Mark a step boundary. A no-op on eager back ends; use it at the end of the body of a ``while`` loop."""
    backend().sync()


def steps(iterable: Iterable[T]) -> Iterable[T]:
    """``iterable``, with one step boundary after each turn of the loop over it.

    The boundary comes whatever the body does: ``continue``, ``break``, an exception. On eager back ends the very object
    is returned. Elsewhere the result hands on the attributes of ``iterable`` (``len``, ``sampler``, ``dataset``), and
    what iterating raises is raised as it is.
    """
    result: Iterable[T] = backend().steps(iterable)
    return result


def mark_steps(iterable: Iterable[Any], boundary: Callable[[], None]) -> Any:
    """What ``steps`` returns on a lazy back end; ``boundary`` is called after each turn. Never marks twice."""
    if isinstance(iterable, _Steps | _StepIterator):
        return iterable
    return _StepIterator(iterable, boundary) if isinstance(iterable, Iterator) else _Steps(iterable, boundary)


class _HandsOn:
    """Attributes and operators of the wrapped object, as the loop's owner knew them."""

    _wrapped: Any
    _boundary: Callable[[], None]

    def __init__(self, wrapped: Any, boundary: Callable[[], None]) -> None:
        object.__setattr__(self, "_wrapped", wrapped)
        object.__setattr__(self, "_boundary", boundary)

    def __getattr__(self, name: str) -> Any:
        if name in ("_wrapped", "_boundary"):  # not there yet while unpickling or copying
            raise AttributeError(name)
        return getattr(self._wrapped, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._wrapped, name, value)

    def __len__(self) -> int:
        return len(self._wrapped)

    def __bool__(self) -> bool:
        return bool(self._wrapped)

    def __getitem__(self, index: Any) -> Any:
        return self._wrapped[index]

    def __contains__(self, item: Any) -> bool:
        return item in self._wrapped

    def __repr__(self) -> str:
        return f"steps({self._wrapped!r})"


class _Steps(_HandsOn):
    """A collection that can be looped over again and again."""

    def __iter__(self) -> Iterator[Any]:
        return _StepIterator(iter(self._wrapped), self._boundary)

    def __reversed__(self) -> Iterator[Any]:
        return _StepIterator(reversed(self._wrapped), self._boundary)


class _StepIterator(_HandsOn):
    """One pass. The turn in progress ends with the next call, or when the loop lets go of the iterator."""

    _turn_is_open: bool

    def __init__(self, wrapped: Any, boundary: Callable[[], None]) -> None:
        object.__setattr__(self, "_turn_is_open", False)
        super().__init__(wrapped, boundary)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        self._end_turn()
        item = next(self._wrapped)
        object.__setattr__(self, "_turn_is_open", True)
        return item

    def _end_turn(self) -> None:
        if self._turn_is_open:
            object.__setattr__(self, "_turn_is_open", False)
            self._boundary()

    def __del__(self) -> None:
        if not sys.is_finalizing():  # the runtime may be gone by then
            self._end_turn()
