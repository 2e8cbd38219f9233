"""One file through the house: facts, findings, edits in passes to a fixed point, checks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import compress
from typing import TYPE_CHECKING

from torchport.analysis.project import ProjectFacts
from torchport.analysis.scopes import Tree
from torchport.analysis.suppressions import skips_file, suppressions
from torchport.catalog.load import CatalogError, for_target
from torchport.catalog.prefilter import Prefilter
from torchport.lazy import NamedTuple, pattern
from torchport.model import Edit, Finding, Problem, Rule, Target
from torchport.project.config import EVERYWHERE, FileRules
from torchport.project.paths import stem_of
from torchport.rewrite import leftovers, reports
from torchport.rewrite.checks import fault, parse
from torchport.rewrite.context import Context, shorten
from torchport.rewrite.hold import hold_back
from torchport.rewrite.imports import unused_imports
from torchport.rewrite.placement import kept_imports, new_imports, shim_name, written_here
from torchport.rewrite.rename import build_index, rename_imports, rename_uses
from torchport.rewrite.silence import Silence, about_comments, held, key
from torchport.rewrite.text import Origin, Text, overlap, splice
from torchport.rewrite.transformers import TRANSFORMERS, Transformers

if TYPE_CHECKING:
    from torchport.project.source import Source
    from torchport.rewrite.settings import Reader

PASSES = 25
LINE_MARK = pattern(r"@(\d+)@")
STUB = "a stub describes an API and does not run"
READ_ONLY = {
    reports.OTHER_BACKEND: "the file serves PyTorch/XLA or a TPU already",
    reports.OTHER_VENDOR: "the file is written for the accelerator of another vendor",
    reports.BUILDS_PACKAGE: "the file builds a package: what it asks of CUDA it asks of the tool chain",
}


class Outcome(NamedTuple):
    """What became of one source: the edits made, what is left, the new text if it changes, and what went wrong."""

    applied: Sequence[Finding] = ()
    left: Sequence[Finding] = ()
    text: str | None = None
    problems: Sequence[Problem] = ()
    silenced: int = 0
    """Findings that a person has silenced, by a comment or in the configuration."""


class Migrator:
    """Rewrites what can be proved and reports the rest, one source after the other. Nothing is written here.

    ``checks`` are transformers of the layers above, by the names that rules give them. ``off`` gives the codes of rules
    that do not concern a path. ``every`` holds the rules that nobody asked for as well: they are run all the same, for
    what they know must not be taken for something else, and their sites stay as they are without a word.
    ``triggers`` are those of ``rules`` for this target, where the caller has them: it takes a while to sort them.
    """

    def __init__(
        self,
        rules: tuple[Rule, ...],
        target: Target,
        *,
        unsafe: bool = False,
        project: ProjectFacts | None = None,
        checks: Mapping[str, str] | None = None,
        off: FileRules = EVERYWHERE,
        every: tuple[Rule, ...] = (),
        triggers: Prefilter | None = None,
    ) -> None:
        self.wanted = frozenset(rule.code for rule in rules)
        self.rules = for_target(every or rules, target)
        whole = len(every or rules) == len(rules)
        self.triggers = triggers if triggers is not None and whole else Prefilter(self.rules)
        self._latest: tuple[Text | None, tuple[Rule, ...]] = None, ()
        self.index = build_index(self.rules, target)
        self.target, self.unsafe, self.project = target, unsafe, project or ProjectFacts()
        self.transformers = Transformers(TRANSFORMERS | dict(checks or {}))
        for rule in self.rules:
            if rule.transformer and rule.transformer not in self.transformers.paths:
                raise CatalogError(f"{rule.source}: {rule.code}: no transformer is called {rule.transformer!r}")
        self.off = off
        self._reader: Reader | None = None

    def __call__(self, source: Source) -> Outcome:
        """What becomes of ``source``; a text that fails a check is not given back."""
        return self._guarded(_migrate, source)

    def inspect(self, source: Source) -> Outcome:
        """Every finding in ``source`` as it is; edits say that a rewrite would mend it and are not all written out."""
        return self._guarded(_inspect, source)

    def read(self, path: str, text: str) -> Outcome:
        """What a file of settings or a launcher asks of CUDA; nothing in it is rewritten."""
        from torchport.rewrite import settings  # most projects have no such file that matters

        if self._reader is None:
            self._reader = settings.Reader(self.rules, self.target)
        left, silenced = settings.read(self._reader, path, text, self.wanted, self.off(path))
        return Outcome(left=left, silenced=silenced)

    def concern(self, text: Text) -> bool:
        """Whether a rule that was asked for may concern a text."""
        return any(rule.code in self.wanted for rule in self.concerned(text))

    def concerned(self, text: Text) -> tuple[Rule, ...]:
        """The rules that may concern a text; the answer for the latest text is kept."""
        if self._latest[0] is not text:
            self._latest = text, self._with_steps(text, self.triggers.concerned(text.bytes))
        return self._latest[1]

    def _with_steps(self, text: Text, found: tuple[Rule, ...]) -> tuple[Rule, ...]:
        """``found``, and the rule about steps where a text calls what takes one in another file."""
        if not any(f"{name}(".encode() in text.bytes for name in self.project.stepping):
            return found
        return tuple(rule for rule in self.rules if rule in found or rule.transformer == "step-boundary")

    def _guarded(self, work: Callable[[Source, Migrator], Outcome], source: Source) -> Outcome:
        """The outcome of ``work``, or the problem of a source that cannot be parsed."""
        try:
            return work(source, self)
        except SyntaxError as error:
            if skips_file(source.text):
                return Outcome()
            return Outcome(problems=[Problem(_syntax(error), error.lineno or 0)])
        except (RecursionError, MemoryError, ValueError) as error:
            what = f"too deeply nested or not Python, left alone ({type(error).__name__}: {error})"
            return Outcome(problems=[Problem(what)])

    def context(
        self, tree: Tree, text: Text, original: Tree | None = None, *, path: str = "", draft: bool = False
    ) -> Context:
        """What transformers are given for one pass; ``original`` is the tree before the first one."""
        shim = shim_name(tree) if self.target == "portable" else "shim"
        return Context(tree, text, self.target, self.unsafe, shim, self.project, original or tree, path, draft)


def _syntax(error: SyntaxError) -> str:
    import sys

    version = ".".join(map(str, sys.version_info[:2]))
    return (
        f"not readable as Python {version}: {error.msg}; left alone (run torchport with the Python that runs the file)"
    )


def _migrate(source: Source, migrator: Migrator) -> Outcome:
    original, origin = Text(source.text), Origin()
    if not migrator.concern(original):
        return Outcome()
    first = parse(source.text, source.path)
    applied: list[Finding] = []
    passes: list[int] = []
    tree, text = first, original
    read_only = STUB if source.path.endswith(".pyi") else ""
    for _ in range(PASSES):
        context = migrator.context(tree, text, first, path=source.path)
        findings, silenced, _, why = _findings(migrator, context, source)
        if tree is first:
            read_only = read_only or why
        if read_only:
            ours = migrator.target == "xla" and read_only == READ_ONLY[reports.OTHER_BACKEND] and written_here(first)
            left = [f if ours and f.reason and not f.edits else _note(f, read_only) for f in findings]
            return Outcome(left=left, silenced=silenced)
        chosen, edits = _choose(findings)
        if not chosen:
            break
        edits += new_imports(tree, text, chosen, context.shim)
        applied += [_located(f, text, original, origin) for f in chosen]
        passes += [len(origin.passes)] * len(chosen)
        try:
            tree, text = _spliced(source, text, edits, origin)
        except SyntaxError as error:
            return _refused(applied, f"the result would not compile ({error.msg})")
    else:
        return _refused(applied, "the edits did not come to an end; please report this file")
    remaining = [f for f in findings if f.reason]
    left = [_located(f, text, original, origin) for f in remaining]
    if not applied:
        return Outcome(left=left, silenced=silenced)
    last, done = text, len(origin.passes)
    stem = stem_of(source.path)
    handed_on = stem == "__init__" or stem in migrator.project.imported
    dead = unused_imports(first, tree, text, handed_on)
    gone = [edit for edit in dead if "import" not in edit.text]
    stays = [not any(e.start <= f.start and f.end <= e.end for e in gone) for f in remaining]
    left, remaining = [*compress(left, stays)], [*compress(remaining, stays)]
    dead += kept_imports(tree, text)
    if dead:
        tree, text = _spliced(source, text, dead, origin)
    after = text.bytes.decode()
    why = fault(source.text, first, after, tree, source.path, origin.touched_comment)
    if (
        not why
        and dead
        and _choose(_findings(migrator, migrator.context(tree, text, first, path=source.path), source).findings)[0]
    ):
        why = "a second run would change it again"
    if why:
        return _refused(applied, why, left)
    applied = [f._replace(now=text.position(origin.forward(f.start, k))) for f, k in zip(applied, passes, strict=True)]
    left = [_now(f, raw, last, text, origin, done) for f, raw in zip(left, remaining, strict=True)]
    return Outcome(applied, left, after, silenced=silenced)


def _now(finding: Finding, raw: Finding, last: Text, text: Text, origin: Origin, done: int) -> Finding:
    """The finding with its place in the new text; ``raw`` was found in ``last``, the text after ``done`` passes."""

    def line(mark: re.Match[str]) -> str:
        return str(text.line(origin.forward(last.starts[int(mark[1]) - 1], done)))

    reason = LINE_MARK.sub(line, raw.reason)
    return finding._replace(now=text.position(origin.forward(raw.start, done)), reason_now=reason)


def _spliced(source: Source, text: Text, edits: list[Edit], origin: Origin) -> tuple[Tree, Text]:
    new = splice(text.bytes, edits).decode()
    origin.add(text.bytes, edits)
    return parse(new, source.path), Text(new)


def _inspect(source: Source, migrator: Migrator) -> Outcome:
    text = Text(source.text)
    if not migrator.concern(text):
        return Outcome()
    context = migrator.context(parse(source.text, source.path), text, path=source.path, draft=True)
    findings, silenced, comments, why = _findings(migrator, context, source)
    stub = STUB if source.path.endswith(".pyi") else ""
    if read_only := stub or why:
        run_all_the_same = frozenset() if stub else frozenset(r.code for r in migrator.rules if r.lint_only)
        findings = [f if f.code in run_all_the_same else _note(f, read_only) for f in findings]
    found = [f for f in (*findings, *comments) if f.reason or f.edits]
    return Outcome(left=[_located(f, text, text, Origin()) for f in found], silenced=silenced)


class Pass(NamedTuple):
    """What one pass finds, each place once for each rule."""

    findings: list[Finding]
    silenced: int
    comments: list[Finding]
    """What is wrong with the comments that silence."""
    read_only: str
    """Why the file is only read."""


def _findings(migrator: Migrator, context: Context, source: Source) -> Pass:
    every: dict[tuple[str, int, int], Finding] = {}
    for finding in _all_findings(migrator, context):
        every.setdefault(key(finding), finding)
    rules = migrator.rules
    found = list(every.values())
    read_only = next((READ_ONLY[f.name] for f in found if f.name in READ_ONLY), "")
    for rule in rules:
        if rule.name == leftovers.NAME:
            found += leftovers.passed_over(rule, found, context)
    comments = suppressions(context.text.bytes.decode()) if b"torchport:" in context.text.bytes else []
    hush = Silence(comments, migrator.off(source.path))
    unasked = {key(f) for f in found if f.code not in migrator.wanted}
    if not hush.comments and not hush.off and not unasked:
        return Pass(hold_back(found, rules, context), 0, [], read_only)
    quiet = hush.quiet(found)
    out = quiet | unasked
    kept = [
        f for f in hold_back(held(found, out, hush.halved(found, context.text)), rules, context) if key(f) not in out
    ]
    own = list(about_comments(hush, found, rules, migrator.wanted.difference(hush.off), context))
    return Pass(kept, len(quiet - unasked), own, read_only)


def _all_findings(migrator: Migrator, context: Context) -> Iterator[Finding]:
    """Transformers first, since they claim names that are renamed otherwise."""
    for rule in migrator.concerned(context.text):
        if rule.transformer:
            yield from migrator.transformers[rule.transformer](rule, context)
    yield from rename_imports(migrator.index, context)
    yield from rename_uses(migrator.index, context)


def _choose(findings: list[Finding]) -> tuple[list[Finding], list[Edit]]:
    """Findings whose edits do not meet; a group is taken whole or waits whole for the next pass."""
    groups: dict[object, list[Finding]] = {}
    for number, finding in enumerate(sorted(findings, key=lambda f: (f.start, -f.end))):
        if finding.edits:
            groups.setdefault(finding.group or number, []).append(finding)
    chosen: list[Finding] = []
    edits: list[Edit] = []
    for group in groups.values():
        new = [edit for finding in group for edit in finding.edits]
        if not any(overlap(edit, edits) for edit in new) and not any(overlap(e, new) for e in new):
            chosen += group
            edits += new
    return chosen, edits


def _located(finding: Finding, text: Text, original: Text, origin: Origin) -> Finding:
    """The finding with the lines and columns of the file before the run."""
    start = origin(finding.start)
    end = max(origin(finding.end), start)
    line, column = original.position(start)
    end_line, end_column = original.position(end)
    old = finding.old
    if old != shorten(original.bytes[start:end].decode(errors="replace")):
        old = shorten(original.line_text(line).decode())
    reason = LINE_MARK.sub(lambda m: str(original.line(origin(text.starts[int(m[1]) - 1]))), finding.reason)
    return finding._replace(line=line, column=column, end_line=end_line, end_column=end_column, old=old, reason=reason)


def _note(finding: Finding, reason: str) -> Finding:
    if finding.name == reports.OLD_ENVIRONMENT:
        return finding  # it speaks of PyTorch/XLA itself
    return finding._replace(edits=(), reason=reason, effect="none")


def _refused(applied: list[Finding], why: str, left: list[Finding] | None = None) -> Outcome:
    """A file that is left alone: every edit becomes a finding that is left for a person."""
    reason = f"not rewritten: {why}"
    return Outcome(
        left=[
            *{(f.code, f.line, f.column): f._replace(edits=(), reason=reason) for f in applied}.values(),
            *(left or []),
        ],
        problems=[Problem(f"left alone: {why}")],
    )
