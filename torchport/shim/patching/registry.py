"""Replace attributes of torch, and put them back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_ABSENT = object()


class Patches:
    """What was replaced, in order.

    Args:
        script_names: TorchScript's names of torch's functions, by their identity; a replacement is known by the same.
    """

    def __init__(self, script_names: dict[int, str]) -> None:
        self._script_names = script_names
        self._done: list[tuple[Any, str, Any, Any]] = []

    def put(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Set ``owner.name`` to ``make(what is there)``; nothing where this version of torch has no such name."""
        current = getattr(owner, name, _ABSENT)
        if current is _ABSENT:
            return
        replacement = make(current)
        if id(current) in self._script_names:
            self._script_names[id(replacement)] = self._script_names[id(current)]
        self._done.append((owner, name, replacement, vars(owner).get(name, _ABSENT)))
        setattr(owner, name, replacement)

    def undo(self) -> list[str]:
        """Put all back, and return the names that somebody else has replaced since: those stay as they are."""
        kept = []
        while self._done:
            owner, name, replacement, before = self._done.pop()
            self._script_names.pop(id(replacement), None)
            if vars(owner).get(name) is not replacement:
                kept.append(f"{owner.__name__}.{name}")
            elif before is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, before)
        return kept
