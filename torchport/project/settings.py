"""Bytes of a file of settings or of a launcher to text: small files, which do not say how they are encoded."""

from __future__ import annotations

import os

from torchport.model import Problem
from torchport.project.files import LARGEST
from torchport.project.source import UTF8_BOM, UTF16_BOMS, read_bytes


def read_settings(path: str) -> bytes | Problem:
    """The content of a file in UTF-8; of one that is too large to be of interest nothing."""
    try:
        if os.stat(path).st_size > LARGEST:
            return b""
    except OSError:
        pass  # reading it says what is wrong
    data = read_bytes(path)
    if isinstance(data, Problem) or not data.startswith(UTF16_BOMS):
        return data
    return text_of(data).encode()


def text_of(data: bytes) -> str:
    """The text, with a replacement for each byte that is no character: what is looked for is ASCII.

    Some shells write UTF-16 where a program's output is redirected into a file of requirements.
    """
    if data.startswith(UTF16_BOMS):
        return data.decode("utf-16", "replace")
    return data.removeprefix(UTF8_BOM).decode("utf-8", "replace")
