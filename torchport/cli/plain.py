"""Commands that are described without click, which takes longer to import than a file of a thousand lines to read.

A command line is read here where it is written in the usual way and nothing is wrong with it. All others are left to
click, which is given the same description, and knows how to help.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Literal

from torchport.lazy import NamedTuple


class PlainOption(NamedTuple):
    """An option; the last name is the one that its value goes by."""

    names: tuple[str, ...]
    help: str
    kind: Literal["flag", "text", "file", "choice", "number"] = "flag"
    """A ``number`` is a whole one, from 1 on."""
    choices: tuple[str, ...] = ()
    metavar: str | None = None
    default: str | None = None
    multiple: bool = False
    envvar: str | None = None
    """The environment variable that gives the value where the command line does not."""

    @property
    def key(self) -> str:
        """The name of the value."""
        return self.names[-1].lstrip("-").replace("-", "_")

    @property
    def unset(self) -> Any:
        """The value where the option is not given."""
        return False if self.kind == "flag" else () if self.multiple else self.default

    def value(self, text: str) -> Any:
        """What click makes of ``text``, or None for what only click knows."""
        if not text or text.startswith("-"):
            return None
        match self.kind:
            case "choice":
                return text if text in self.choices else None
            case "number":
                return int(text) if text.isascii() and text.isdigit() and int(text) > 0 else None
            case "file":
                return text if os.access(text, os.R_OK) or not os.path.lexists(text) else None
            case _:
                return text


Run = Callable[[tuple[str, ...], dict[str, Any]], int]
"""Given the paths and the values of the options, it returns an exit status. Its docstring is the help."""


class PlainCommand(NamedTuple):
    """A command with options and any number of paths."""

    name: str
    summary: str
    options: tuple[PlainOption, ...]
    run: Run
    needs_path: bool

    def read(self, words: Sequence[str]) -> tuple[tuple[str, ...], dict[str, Any]] | None:
        """The paths and the values of all options, or None for a command line that click has to look at."""
        known = {name: option for option in self.options for name in option.names}
        values: dict[str, Any] = {}
        paths: list[str] = []
        left = iter(words)
        for word in left:
            if word and not word.startswith("-"):
                paths.append(word)
                continue
            name, equals, text = word.partition("=")
            option = known.get(name)
            if option is None or (equals and (option.kind == "flag" or not name.startswith("--"))):
                return None
            value = True if option.kind == "flag" else option.value(text if equals else next(left, ""))
            if value is None:
                return None
            values[option.key] = (*values.get(option.key, ()), value) if option.multiple else value
        rest = [option for option in self.options if option.key not in values]
        if (self.needs_path and not paths) or any(option.envvar in os.environ for option in rest if option.envvar):
            return None
        return tuple(paths), values | {option.key: option.unset for option in rest}
