"""What flows through the house: rules, edits, findings and the result for one file. Plain data, no behaviour."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

from torchport.lazy import NamedTuple

Effect = Literal["silent", "error", "slow", "none"]
Support = Literal["same", "emulated", "dropped", "manual"]
Safety = Literal["safe", "unsafe", "manual"]
Review = Literal["merge", "glance", "read"]
Target = Literal["portable", "xla", "tpu"]

TARGETS: tuple[Target, ...] = ("portable", "xla", "tpu")
EMPTY: Mapping[str, Any] = MappingProxyType({})


class UserError(Exception):
    """Something that the user can mend; the message is one line that says what, where, and what was expected."""


class Rule(NamedTuple):
    """One entry of the catalogue, as validated on load (``torchport.catalog``)."""

    code: str
    name: str
    summary: str
    why: str
    effect: Effect
    safety: Safety
    review: Review
    support: Mapping[str, Support]
    triggers: tuple[str, ...]
    """A file that holds none of these texts does not concern the rule."""
    match: tuple[str, ...] = ()
    """Fully qualified names; ``torch.cuda.nvtx.*`` covers a whole module, ``torch._C._cuda*`` all that begin so."""
    rename: Mapping[str, Mapping[str, str]] = EMPTY
    """Per target: qualified name to what is written in its place; ``torchport.rewrite.rename`` says in which forms."""
    drop: Mapping[str, tuple[str, ...]] = EMPTY
    """Per target: functions whose calls are taken out where they stand as statements of their own."""
    transformer: str = ""
    """The function in ``torchport.rewrite`` for what a rename cannot say."""
    reason: str = ""
    """Why a match is left for a person where no rewrite is given."""
    reasons: Mapping[str, str] = EMPTY
    """Per target: the same, where it differs from ``reason``."""
    example: Mapping[str, str] = EMPTY
    since: str = ""
    references: tuple[str, ...] = ()
    cuda_only: Literal["", "branch", "choice"] = ""
    """A test stays as long as a site of this rule that it guards: in any branch, or only in ``a if test else b``."""
    measured: str = ""
    """What was counted where nothing is done and where it is: compilations, reads by the host."""
    instead: str = ""
    """What to write in its place, where the example does not say it."""
    within: tuple[str, ...] = ()
    """A file that holds none of these texts as well does not concern the rule; none: a trigger is enough."""
    lint_only: bool = False
    """``torchport lint`` runs it, ``torchport migrate`` does not."""
    settings: tuple[Mapping[str, Any], ...] = ()
    """What it finds in files of settings and in launchers, by the keys of ``torchport.catalog.load.SETTINGS``."""
    source: str = ""
    """Where the rule is written, ``devices.toml:12``."""

    @property
    def reads_settings_alone(self) -> bool:
        """Whether it finds nothing in Python."""
        return bool(self.settings) and not (self.transformer or self.match or self.rename or self.drop)


class Edit(NamedTuple):
    """Replace bytes ``start`` to ``end`` (UTF-8 offsets in the decoded source) by ``text``."""

    start: int
    end: int
    text: str


class Finding(NamedTuple):
    """One site. ``edits`` is empty where it is left for a person, and ``reason`` then says why."""

    code: str
    name: str
    line: int
    column: int
    end_line: int
    end_column: int
    message: str
    effect: Effect
    support: Support
    safety: Safety
    review: Review
    old: str = ""
    new: str = ""
    edits: tuple[Edit, ...] = ()
    reason: str = ""
    group: str = ""
    """Findings of one group are applied together or not at all."""
    needs: tuple[str, ...] = ()
    """Modules that the new text uses by name, and that have to be imported for it."""
    now: tuple[int, int] = (0, 0)
    """Line and column in the rewritten file, where one was made."""
    reason_now: str = ""
    """The reason with the line numbers of the rewritten file."""
    cell: int = 0
    """The cell of a notebook, counted from 1 over all cells; ``line`` is then a line of the cell."""
    perhaps: bool = False
    """The file does not show it for certain: reported only with ``--pedantic``."""
    start: int = 0
    end: int = 0
    """UTF-8 offsets in the text that was looked at; of no meaning outside the worker."""

    @property
    def left_for_a_person(self) -> bool:
        """A note (effect ``none``) and an applied edit leave nothing to do."""
        return bool(self.reason) and self.effect != "none"


class Problem(NamedTuple):
    """A file that could not be read, parsed, checked or written: never silent. ``fatal`` makes the run exit with 2."""

    message: str
    line: int = 0
    fatal: bool = False


class FileResult:
    """What became of one file. Lines and columns are those of the file before the run."""

    __slots__ = ("after", "applied", "before", "left", "path", "problems", "silenced")

    def __init__(
        self,
        path: str,
        applied: list[Finding] | None = None,
        left: list[Finding] | None = None,
        problems: list[Problem] | None = None,
        before: bytes = b"",
        after: bytes | None = None,
        silenced: int = 0,
    ) -> None:
        """``after``: the new content, or None where nothing changes.

        ``silenced``: findings that a comment or the configuration takes out.
        """
        self.path = path
        self.applied = [] if applied is None else applied
        self.left = [] if left is None else left
        self.problems = [] if problems is None else problems
        self.before = before
        self.after = after
        self.silenced = silenced

    def plain(self) -> tuple[Any, ...]:
        """The same made of plain values; ``before`` is left out."""
        applied, left = ([_values_of(finding) for finding in findings] for findings in (self.applied, self.left))
        return self.path, applied, left, [tuple(p) for p in self.problems], self.after, self.silenced

    @staticmethod
    def restored(values: tuple[Any, ...]) -> FileResult:
        """The inverse of ``plain``."""
        path, applied, left, problems, after, silenced = values
        found, others = ([_finding_of(row) for row in rows] for rows in (applied, left))
        return FileResult(path, found, others, [Problem(*row) for row in problems], b"", after, silenced)


def _values_of(finding: Finding) -> tuple[Any, ...]:
    return tuple(finding._replace(edits=tuple(tuple(edit) for edit in finding.edits)) if finding.edits else finding)  # type: ignore[misc]


def _finding_of(values: tuple[Any, ...]) -> Finding:
    finding = Finding(*values)
    return finding._replace(edits=tuple(Edit(*edit) for edit in finding.edits)) if finding.edits else finding
