"""Bytes of a file of settings or of a launcher to text: small files, which do not say how they are encoded."""

from __future__ import annotations

import os

from torchport.model import Problem
from torchport.project.source import UTF8_BOM, read_bytes

LARGEST = 256_000
"""Bytes; what is larger is data, whatever its name ends in."""


def read_settings(path: str) -> bytes | Problem:
    """The content of a file; of one that is too large to be of interest nothing."""
    try:
        if os.stat(path).st_size > LARGEST:  # noqa: PTH116 - thousands of files, and pathlib is slow
            return b""
    except OSError:
        pass  # reading it says what is wrong
    return read_bytes(path)


def text_of(data: bytes) -> str:
    """The text, with a replacement for each byte that is no UTF-8: what is looked for is ASCII."""
    return data.removeprefix(UTF8_BOM).decode("utf-8", "replace")
