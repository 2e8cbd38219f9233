"""Results of earlier runs, by the content of the files: what was looked at once is not looked at again.

The folder ignores itself and may be deleted at any time. Nothing in it is executed; what is damaged counts as missing.
"""

from __future__ import annotations

import io
import os
from collections.abc import Container, Mapping
from contextlib import suppress
from typing import Any

from torchport.lint.work import Found

FOLDER = ".torchport_cache"
KEPT = 8
"""Sets of results, one for each combination of settings, that are kept."""
LARGEST = 4096
"""Entries in one shard; the oldest go first."""
TAG = "Signature: 8a477f597d28d172789f06886806bc55\n# This folder holds results of torchport lint; it may be deleted.\n"


class Cache:
    """One set of results. Shards are read when they are asked for and written when something was added."""

    def __init__(self, folder: str, settings: str) -> None:
        self.top, self.folder = folder, os.path.join(folder, settings)
        self.shards: dict[str, dict[str, Any]] = {}
        self.used: set[str] = set()
        self.changed: set[str] = set()

    def get(self, key: str) -> Any:
        """What is kept under ``key``, or None."""
        entry = self._shard(key[0]).get(key)
        if entry is not None:
            self.used.add(key)
        return entry

    def put(self, key: str, entry: Any) -> None:
        """Keep ``entry``, which JSON must be able to hold."""
        self._shard(key[0])[key] = entry
        self.used.add(key)
        self.changed.add(key[0])

    def _shard(self, name: str) -> dict[str, Any]:
        if name not in self.shards:
            self.shards[name] = _load(os.path.join(self.folder, f"{name}.json"))
        return self.shards[name]

    def save(self) -> None:
        """Write what is new. A folder that cannot be written to is no reason to fail."""
        if not self.changed:
            return
        with suppress(OSError):
            os.makedirs(self.folder, exist_ok=True)
            _mark(self.top)
            for name in sorted(self.changed):
                shard = self.shards[name]
                if len(shard) > LARGEST:
                    old = [key for key in shard if key not in self.used]
                    for key in old[: len(shard) - LARGEST]:
                        del shard[key]
                _store(os.path.join(self.folder, f"{name}.json"), shard)
            _forget(self.top, self.folder)


def _digest(data: bytes) -> str:
    from hashlib import blake2b  # it loads OpenSSL: a run without a cache does without

    return blake2b(data, digest_size=16).hexdigest()


def key_of(*parts: str) -> str:
    """A name for what depends on all of ``parts``."""
    return _digest("\0".join(parts).encode("utf-8", "surrogateescape"))


def found_of(entry: Any, codes: Container[str]) -> Found | None:
    """The result of an entry, or None where it is none. ``codes`` are those of the rules that were run."""
    try:
        findings, problems, silenced = entry
        if all(len(row) == 14 and row[0] in codes for row in findings) and all(len(row) == 2 for row in problems):
            return Found(findings, problems, int(silenced))
    except (TypeError, ValueError):
        pass
    return None


def _load(path: str) -> dict[str, Any]:
    """The entries of a shard; none where it is missing, damaged, or not written by this program."""
    import json

    try:
        with io.FileIO(path) as file:
            head, _, body = file.readall().partition(b"\n")
        if _digest(body).encode() == head:
            entries = json.loads(body)
            if isinstance(entries, dict):
                return entries
    except (OSError, ValueError, RecursionError):
        pass
    return {}


def _store(path: str, entries: Mapping[str, Any]) -> None:
    """Whole or not at all, for another run may be reading it."""
    import json

    body = json.dumps(entries, separators=(",", ":")).encode()
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with open(temporary, "wb") as file:
            file.write(_digest(body).encode() + b"\n" + body)
        os.replace(temporary, path)
    finally:
        with suppress(OSError):
            os.unlink(temporary)


def _mark(top: str) -> None:
    """Git and backups leave the folder out."""
    for name, text in ((".gitignore", "*\n"), ("CACHEDIR.TAG", TAG)):
        path = os.path.join(top, name)
        if not os.path.exists(path):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)


def _forget(top: str, mine: str) -> None:
    """Sets of results of settings, or releases, that nobody has asked for in a long time."""
    os.utime(mine)
    sets = sorted((entry for entry in os.scandir(top) if entry.is_dir()), key=lambda entry: entry.stat().st_mtime)
    for old in sets[:-KEPT]:
        import shutil

        shutil.rmtree(old.path, ignore_errors=True)
