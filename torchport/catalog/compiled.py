"""The shipped rules as Python keeps its modules: read from TOML once, and then from a file beside the byte code.

Such a file is used only for the very files that it was made from, and not where a byte of it is wrong.
"""

from __future__ import annotations

import io
import marshal
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from zlib import crc32

from torchport import __version__

HERE = os.path.dirname(__file__)
FOLDER = os.path.join(HERE, "__pycache__")
FILE = os.path.join(FOLDER, f"rules.{sys.implementation.cache_tag}.bin")
CODE = (__file__, os.path.join(HERE, "load.py"), os.path.join(os.path.dirname(HERE), "model.py"))
"""Other code may make other rules of the same text."""


def signature(files: Sequence[str]) -> str:
    """What the kept rules depend on. Raises OSError."""
    stats = [(path, os.stat(path)) for path in (*files, *CODE)]
    return "\n".join([__version__, *(f"{path} {stat.st_mtime_ns} {stat.st_size}" for path, stat in stats)])


def kept(wanted: str) -> list[tuple[Any, ...]] | None:
    """The fields of the rules that were kept for this signature, or None."""
    try:
        with io.FileIO(FILE) as file:
            data = file.readall()
        if crc32(data[4:]) != int.from_bytes(data[:4], "big"):
            return None
        found, rules = marshal.loads(data[4:])
    except (OSError, ValueError, EOFError, TypeError):
        return None
    return rules if found == wanted else None


def keep(wanted: str, rules: list[tuple[Any, ...]]) -> None:
    """Keep the fields of the rules, where Python may keep its byte code as well."""
    if sys.dont_write_bytecode:
        return
    body = marshal.dumps((wanted, rules))
    temporary = f"{FILE}.{os.getpid()}"
    with suppress(OSError):
        os.makedirs(FOLDER, exist_ok=True)
        with open(temporary, "wb") as file:
            file.write(crc32(body).to_bytes(4, "big") + body)
        os.replace(temporary, FILE)
