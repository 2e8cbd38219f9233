"""Paths as texts: to import pathlib takes as long as to parse a thousand lines, and its objects are slow for a tree."""

from __future__ import annotations

import os
from collections.abc import Iterator


def with_parents(folder: str) -> Iterator[str]:
    """An absolute path, and those of the folders above it, the nearest first."""
    yield folder
    while (above := os.path.dirname(folder)) != folder:
        yield above
        folder = above


def top_of(folder: str) -> str | None:
    """The top of the git work tree that holds ``folder``, an absolute path, or None."""
    return next((above for above in with_parents(folder) if os.path.exists(os.path.join(above, ".git"))), None)


def shown(path: str | os.PathLike[str]) -> str:
    """A path as messages show it: relative to the current folder where it lies under it, with forward slashes."""
    name = os.fspath(path).replace(os.sep, "/")
    start = "/" if name.startswith("/") else ""
    name = start + "/".join(part for part in name.split("/") if part not in ("", "."))
    here = os.getcwd().replace(os.sep, "/").rstrip("/") + "/"
    return (name[len(here) :] if f"{name}/".startswith(here) else name) or "."


def suffix_of(name: str) -> str:
    """The end of a file's name from its last dot on, as pathlib has it."""
    last = name.rpartition("/")[2]
    stem, dot, rest = last.rpartition(".")
    return dot + rest if stem and rest else ""


def stem_of(path: str) -> str:
    """The name of a file without its suffix."""
    last = path.rpartition("/")[2]
    return last[: len(last) - len(suffix_of(last))]


def folders_of(path: str) -> tuple[str, ...]:
    """The names of the folders in a path to a file, the root as well."""
    root = ("/",) if path.startswith("/") else ()
    return (*root, *(part for part in path.split("/")[:-1] if part not in ("", ".")))


def folder_of(path: str) -> str:
    """The name of the folder that a file is in; empty where the path does not say it."""
    return next((folder for folder in folders_of(path)[::-1] if folder != "/"), "")
