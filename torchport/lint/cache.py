"""Results of earlier runs, by the content of the files: what was looked at once is not looked at again.

The folder ignores itself and may be deleted at any time. Nothing in it is executed; what is damaged counts as missing.
"""

from __future__ import annotations

import os
from collections.abc import Container, Mapping
from contextlib import suppress
from pathlib import Path
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

    def __init__(self, folder: Path, settings: str) -> None:
        self.top, self.folder = folder, folder / settings
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
            self.shards[name] = _load(self.folder / f"{name}.json")
        return self.shards[name]

    def save(self) -> None:
        """Write what is new. A folder that cannot be written to is no reason to fail."""
        if not self.changed:
            return
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            _mark(self.top)
            for name in sorted(self.changed):
                shard = self.shards[name]
                if len(shard) > LARGEST:
                    old = [key for key in shard if key not in self.used]
                    for key in old[: len(shard) - LARGEST]:
                        del shard[key]
                _store(self.folder / f"{name}.json", shard)
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


def _load(path: Path) -> dict[str, Any]:
    """The entries of a shard; none where it is missing, damaged, or not written by this program."""
    import json

    try:
        head, _, body = path.read_bytes().partition(b"\n")
        if _digest(body).encode() == head:
            entries = json.loads(body)
            if isinstance(entries, dict):
                return entries
    except (OSError, ValueError, RecursionError):
        pass
    return {}


def _store(path: Path, entries: Mapping[str, Any]) -> None:
    """Whole or not at all, for another run may be reading it."""
    import json

    body = json.dumps(entries, separators=(",", ":")).encode()
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(_digest(body).encode() + b"\n" + body)
        temporary.replace(path)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _mark(top: Path) -> None:
    """Git and backups leave the folder out."""
    for name, text in ((".gitignore", "*\n"), ("CACHEDIR.TAG", TAG)):
        if not (top / name).exists():
            (top / name).write_text(text, encoding="utf-8")


def _forget(top: Path, mine: Path) -> None:
    """Sets of results of settings, or releases, that nobody has asked for in a long time."""
    import shutil

    mine.touch()
    sets = sorted((entry for entry in top.iterdir() if entry.is_dir()), key=lambda entry: entry.stat().st_mtime)
    for old in sets[:-KEPT]:
        shutil.rmtree(old, ignore_errors=True)
