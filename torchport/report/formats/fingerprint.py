"""What names a finding although lines move: its path, its rule, its line's text, and which of several such it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from hashlib import sha256

from torchport.model import Finding
from torchport.report.findings import Report


def fingerprints(report: Report) -> Iterator[tuple[str, Finding, str]]:
    """Path, finding and a hexadecimal name that no other finding of the run has."""
    seen: Counter[str] = Counter()
    for path, finding in report.findings():
        key = "\0".join((path, finding.code, " ".join(report.line(path, finding).split())))
        seen[key] += 1
        name = f"{key}\0{seen[key]}".encode("utf-8", "surrogateescape")
        yield path, finding, sha256(name).hexdigest()[:32]
