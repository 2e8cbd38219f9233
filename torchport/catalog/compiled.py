"""The shipped rules as Python keeps its modules: read from TOML once, and then from a file beside the byte code.

Such a file is used only for the very files that it was made from, and not where a byte of it is wrong.
"""

from __future__ import annotations

import marshal
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from zlib import crc32

from torchport import __version__

FOLDER = Path(__file__).parent / "__pycache__"
FILE = FOLDER / f"rules.{sys.implementation.cache_tag}.bin"
CODE = (Path(__file__), Path(__file__).with_name("load.py"), Path(__file__).parents[1] / "model.py")
"""Other code may make other rules of the same text."""


def signature(files: Sequence[Path]) -> str:
    """What the kept rules depend on. Raises OSError."""
    stats = [(str(path), path.stat()) for path in (*files, *CODE)]
    return "\n".join([__version__, *(f"{path} {stat.st_mtime_ns} {stat.st_size}" for path, stat in stats)])


def kept(wanted: str) -> list[dict[str, Any]] | None:
    """The fields of the rules that were kept for this signature, or None."""
    try:
        data = FILE.read_bytes()
        if crc32(data[4:]) != int.from_bytes(data[:4], "big"):
            return None
        found, rules = marshal.loads(data[4:])
    except (OSError, ValueError, EOFError, TypeError):
        return None
    return rules if found == wanted else None


def keep(wanted: str, rules: list[dict[str, Any]]) -> None:
    """Keep the fields of the rules, where Python may keep its byte code as well."""
    if sys.dont_write_bytecode:
        return
    body = marshal.dumps((wanted, rules))
    temporary = FILE.with_name(f"{FILE.name}.{os.getpid()}")
    with suppress(OSError):
        FOLDER.mkdir(exist_ok=True)
        temporary.write_bytes(crc32(body).to_bytes(4, "big") + body)
        temporary.replace(FILE)
