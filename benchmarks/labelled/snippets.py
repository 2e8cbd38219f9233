"""The snippets of the labelled set: short programs, several in one file, with what was measured of each beside them."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
LABELS = FOLDER / "labels.tsv"
START = re.compile(r"^### ([\w.-]+)$", re.MULTILINE)
MARK = re.compile(r"#!((?: TP\d\d\d)+)\s*$")
PRELUDE = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"
COLUMNS = ("name", "steps", "compiles", "late", "reads", "fallbacks", "operators", "fault", "harm")


@dataclass(frozen=True)
class Snippet:
    """One program. A line that ends in ``#! TP711`` is what should be found, by that rule."""

    name: str
    source: str

    @property
    def marks(self) -> dict[int, frozenset[str]]:
        """Line to the codes that its author expects there."""
        found = {}
        for number, line in enumerate(self.source.splitlines(), 1):
            if match := MARK.search(line):
                found[number] = frozenset(match[1].split())
        return found


@dataclass(frozen=True)
class Label:
    """What was measured in ``steps`` steps after a first pass over other data.

    ``compiles``: programs compiled anew in them; ``late``: in the last step of the first pass. ``reads``: transfers
    from the device, and ``fallbacks``: operators that ran on the host, both per step; ``operators``: which. ``fault``:
    an error, or how the result differs from that of the CPU.
    """

    name: str
    steps: int
    compiles: int
    late: int
    reads: float
    fallbacks: float
    operators: str = ""
    fault: str = ""

    @property
    def harm(self) -> tuple[str, ...]:
        """The kinds of harm that the figures show."""
        kinds = {
            "recompiles": self.compiles >= 2 or self.late >= 1,
            "reads": self.reads >= 0.5,
            "host-operator": self.fallbacks >= 0.5,
            "fails": bool(self.fault) and not self.fault.startswith("differs"),
            "wrong": self.fault.startswith("differs"),
        }
        return tuple(kind for kind, true in kinds.items() if true)

    def row(self) -> list[str]:
        """The line of the table."""
        figures = [self.steps, self.compiles, self.late, f"{self.reads:.2f}", f"{self.fallbacks:.2f}"]
        return [self.name, *map(str, figures), self.operators, self.fault, ",".join(self.harm) or "none"]


def load_snippets() -> list[Snippet]:
    """All snippets, in order of the files and of their places in them."""
    found: list[Snippet] = []
    for path in sorted(FOLDER.glob("*.txt")):
        pieces = START.split(path.read_text(encoding="utf-8"))[1:]
        for name, body in zip(pieces[::2], pieces[1::2], strict=True):
            found.append(Snippet(name, PRELUDE + body.rstrip() + "\n"))
    names = [snippet.name for snippet in found]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"{FOLDER}: snippets of the same name: {', '.join(sorted(twice))}")
    return found


def load_labels() -> dict[str, Label]:
    """What was measured, by the name of the snippet."""
    with LABELS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    return {
        row["name"]: Label(
            row["name"],
            int(row["steps"]),
            int(row["compiles"]),
            int(row["late"]),
            float(row["reads"]),
            float(row["fallbacks"]),
            row["operators"],
            row["fault"],
        )
        for row in rows
    }


def save_labels(labels: list[Label]) -> None:
    """Write the table anew."""
    with LABELS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(label.row() for label in labels)
