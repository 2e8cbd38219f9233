"""The result of a whole run: what the reports are made from, and the exit status that it gives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from torchport.model import FileResult, Finding, Problem, Target

Mode = Literal["write", "diff", "check"]

DONE = 0
LEFT = 1
FAILED = 2


class Run:
    """``files`` holds only those with something to say, in the order of their paths; ``examined`` counts all."""

    __slots__ = ("examined", "files", "mode", "notes", "refusal", "target")

    def __init__(
        self,
        mode: Mode,
        target: Target,
        examined: int = 0,
        files: list[FileResult] | None = None,
        notes: list[str] | None = None,
        refusal: str = "",
    ) -> None:
        """``refusal``: why nothing was written at all."""
        self.mode: Mode = mode
        self.target: Target = target
        self.examined = examined
        self.files = [] if files is None else files
        self.notes = [] if notes is None else notes
        self.refusal = refusal

    def add(self, other: Run) -> None:
        """Take in the run over other files."""
        self.examined += other.examined
        self.files = sorted([*self.files, *other.files], key=lambda file: file.path.split("/"))
        self.notes += other.notes
        self.refusal = self.refusal or other.refusal

    def silenced(self) -> int:
        """How many findings comments and the configuration take out."""
        return sum(file.silenced for file in self.files)

    def changed(self) -> list[FileResult]:
        """The files that were rewritten, or would be."""
        return [file for file in self.files if file.after is not None]

    def edits(self) -> Iterator[tuple[str, Finding]]:
        """Path and finding of each edit."""
        return ((file.path, finding) for file in self.files for finding in file.applied)

    def left(self) -> Iterator[tuple[str, Finding]]:
        """Path and finding of what needs a person."""
        return ((file.path, finding) for file in self.files for finding in file.left if finding.left_for_a_person)

    def remarks(self) -> Iterator[tuple[str, Finding]]:
        """Path and finding of what is worth knowing and needs nobody."""
        return ((file.path, finding) for file in self.files for finding in file.left if not finding.left_for_a_person)

    def problems(self) -> Iterator[tuple[str, Problem]]:
        """Path and problem of each file that could not be done."""
        return ((file.path, problem) for file in self.files for problem in file.problems)

    @property
    def exit_status(self) -> int:
        """0: nothing left to do, 1: something is left for a person, 2: the run itself failed."""
        problems = [problem for _, problem in self.problems()]
        if self.refusal or any(problem.fatal for problem in problems):
            return FAILED
        pending = self.mode != "write" and bool(self.changed())
        return LEFT if problems or pending or any(True for _ in self.left()) else DONE
