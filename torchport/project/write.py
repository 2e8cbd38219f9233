"""Write a file whole or not at all."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from torchport.model import Problem

_ANY_WRITE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


def write_file(path: str, before: bytes, after: bytes) -> Problem | None:
    """Replace ``before`` by ``after`` in one step; mode bits and owner stay. None where that was done.

    The file is left as it was, and no temporary file stays, where it is read-only, has changed since it was read, or
    where anything fails on the way.
    """
    file = Path(path).resolve()
    try:
        status = file.stat()
        if not status.st_mode & _ANY_WRITE or not os.access(file, os.W_OK):
            return _left("is read-only", "make it writable and run again")
        temporary = _write_temporary(file, after, status)
        try:
            if file.read_bytes() != before:
                return _left("has changed since it was read", "run again")
            temporary.replace(file)
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
    except OSError as error:
        return _left(f"cannot be written ({error.strerror or error})", "solve that and run again")
    _sync_folder(file.parent)
    return None


def _left(what: str, hint: str) -> Problem:
    return Problem(f"{what}: left as it was; {hint}", fatal=True)


def _write_temporary(file: Path, data: bytes, status: os.stat_result) -> Path:
    """A synced copy of ``data`` beside ``file``, so that the replacement stays on one file system."""
    temporary = file.parent / f".torchport-{os.urandom(8).hex()}.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            _match_owner_and_mode(temporary, status)
            os.fsync(stream.fileno())
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    return temporary


def _match_owner_and_mode(temporary: Path, wanted: os.stat_result) -> None:
    made = temporary.stat()
    if hasattr(os, "chown") and (made.st_uid, made.st_gid) != (wanted.st_uid, wanted.st_gid):
        with suppress(PermissionError):
            os.chown(temporary, wanted.st_uid, wanted.st_gid)
    if stat.S_IMODE(made.st_mode) != stat.S_IMODE(wanted.st_mode):
        temporary.chmod(stat.S_IMODE(wanted.st_mode))


def _sync_folder(folder: Path) -> None:
    """Make the new name survive a power cut, on the systems where a folder can be synced."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
