"""What one file has to know of the others: found by a byte search, before any file is parsed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

OWN_CUDA = re.compile(rb"^class[ \t]+(\w+)[^\n]*:(?:(?!^class[ \t])[\s\S])*?^[ \t]+def[ \t]+cuda[ \t]*\(", re.MULTILINE)
OWN_TO = re.compile(rb"^[ \t]+def[ \t]+to[ \t]*\(", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ProjectFacts:
    """Classes of the project that have a ``cuda`` method and no ``to`` method beside it."""

    own_cuda: frozenset[str] = frozenset()


def project_facts(blobs: Iterable[bytes]) -> ProjectFacts:
    """Facts of all files of a run, given their bytes."""
    found: set[str] = set()
    for blob in blobs:
        if b"def cuda" not in blob:
            continue
        for match in OWN_CUDA.finditer(blob):
            line_end = blob.find(b"\n", match.start())
            header = blob[match.start() : line_end]
            following = blob.find(b"\nclass ", match.start() + 1)
            body = blob[match.start() : following if following != -1 else len(blob)]
            if not OWN_TO.search(body) and b"Module" not in header:
                found.add(match[1].decode(errors="replace"))
    return ProjectFacts(frozenset(found))
