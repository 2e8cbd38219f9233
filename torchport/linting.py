"""``torchport lint``: the way through the house that ends in a report. What was seen before comes from the cache."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from torchport import __version__
from torchport.analysis.own_classes import OwnClasses
from torchport.analysis.project import Collector, ProjectFacts
from torchport.catalog.load import for_target
from torchport.catalog.prefilter import Prefilter, SettingsFilter
from torchport.lazy import NamedTuple
from torchport.lint.cache import Cache, found_of, key_of
from torchport.lint.told import told_by, told_of
from torchport.lint.work import Found, Linted, Row, Task, Work, digest_of, finding_of, problem_of
from torchport.model import FileResult, Problem, Rule, Target
from torchport.pipeline import Progress, calling, in_processes, no_progress, wanted, write_changed
from torchport.project.config import Config, FileRules
from torchport.project.files import PLAIN, FoundFile, find_files, kind_of
from torchport.project.settings import read_settings
from torchport.project.source import UTF16_BOMS, is_generated, read_bytes
from torchport.report.findings import Report
from torchport.report.text import count

if TYPE_CHECKING:
    from torchport.lint.baseline import Baseline
    from torchport.project.changes import ChangedLines

FEW = 20
"""Files up to which it is found out here that one concerns no rule: nothing has to be started for it."""
DEPENDS_ON = ("analysis", "catalog", "lint", "rewrite", "lazy.py", "model.py")
"""The parts of torchport that a result depends on."""


class LintOptions(NamedTuple):
    """What the user asked of one run."""

    target: Target = "portable"
    fix: bool = False
    write: bool = True
    """Write the fixes; otherwise only show them."""
    unsafe: bool = False
    pedantic: bool = False
    notes: bool = False
    exclude: tuple[str, ...] = ()
    jobs: int = 1
    allow_dirty: bool = False
    config: Config = Config()
    force_exclude: bool = False
    off: FileRules = FileRules()
    """The codes of rules that do not concern a path."""
    every: tuple[Rule, ...] = ()
    """All rules, whether or not the user asked for them."""
    cache: str | None = None
    """The folder for results of earlier runs."""
    stdin: bytes | None = None
    """The content of the one file that is named, where it comes from standard input."""
    since: str = ""
    """Report only lines that differ from where this branch left that git revision."""
    baseline: Baseline | None = None
    update_baseline: bool = False
    """Accept everything that is found now."""


def lint(
    paths: Sequence[str], rules: tuple[Rule, ...], options: LintOptions, *, progress: Progress = no_progress
) -> Report:
    """Examine the files under ``paths`` and report; with ``fix`` and ``write`` the files are changed first.

    Raises GitError where ``since`` cannot be compared with.
    """
    report = Report({rule.code: rule for rule in rules}, options.target, written=options.write)
    changed = _changed(paths, options.since) if options.since else None
    files = _found_files(paths, options, report)
    for path, linted in _Walk(rules, options, changed, report).results(files, progress):
        result = _result(path, linted, report)
        if options.stdin is not None:
            result.before = result.before or options.stdin
        report.files.append(result)
    report.files.sort(key=lambda file: file.path.split("/"))
    if options.fix and options.write and options.stdin is None:
        write_changed(report, paths, allow_dirty=options.allow_dirty)
    _narrow(report, paths, options, changed)
    return report


def _changed(paths: Sequence[str], since: str) -> ChangedLines:
    from torchport.project.changes import changed_lines

    return changed_lines(paths, since)


def _found_files(paths: Sequence[str], options: LintOptions, report: Report) -> list[FoundFile]:
    keep = wanted(options.config, force=options.force_exclude)
    if options.stdin is not None:
        file = FoundFile(paths[0], kind_of(paths[0]) or "source", explicit=True)
        return [file] if keep is None or keep(file) else []
    selection = find_files(paths, options.exclude, keep)
    report.files += selection.refused
    report.notes += selection.notes
    return selection.files


class _Walk:
    """Every file is read; those that concern a rule are linted in worker processes, or come from the cache."""

    def __init__(
        self, rules: tuple[Rule, ...], options: LintOptions, changed: ChangedLines | None, report: Report
    ) -> None:
        self.rules, self.options, self.changed, self.report = rules, options, changed, report
        ours = for_target(rules, options.target)
        self.prefilter, self.plain = Prefilter(ours), SettingsFilter(ours)
        self.collector = Collector()
        self.own = OwnClasses()
        self.held: list[Row] = []
        self.kernels: set[tuple[str, str]] = set()
        self.scripted: set[tuple[str, str]] = set()
        self.loaded: set[str] = set()
        self.stepped: set[str] = set()
        self.stepping: set[str] = set()
        self.turning: frozenset[str] = frozenset()
        usable = options.cache is not None and not options.fix and options.stdin is None
        self.cache = Cache(options.cache, _settings(rules, options)) if usable and options.cache else None

    def results(self, files: Sequence[FoundFile], progress: Progress) -> Iterator[tuple[str, Linted | Problem]]:
        """Path and result of each file with something to say."""
        few = len(files) < FEW
        matching = [(file, digest) for file in files for digest in self.read(file, few)]
        matching += self.callers(files, {file.path for file, _ in matching})
        if self.changed is not None:
            matching = [(file, digest) for file, digest in matching if self.changed.has(file.path)]
        own = [(*item[:2], sorted(item.words), item.closed) for item in self.own.all()] if self.cache else []
        sets = (
            [sorted(names) for names in (self.kernels, self.scripted, self.loaded - self.stepped)] if self.cache else []
        )
        sets += [sorted(names) for names in (self.stepping, self.turning)] if self.cache else []
        facts = key_of(repr((own, self.held, sets))) if self.cache else ""
        left: list[tuple[FoundFile, str]] = []
        for file, digest in matching:
            key = self.key(file, digest, facts) if self.cache else ""
            known = found_of(self.cache.get(key), self.report.rules) if self.cache else None
            if known is None:
                left.append((file, key))
            else:
                yield file.path, Linted(known)
        yield from self.examine(left, facts, progress)
        if self.cache:
            self.cache.save()

    def read(self, file: FoundFile, few: bool) -> Iterator[str]:
        """The digest of a file that is to be looked at. What cannot be read is reported.

        Of ``few`` files those that concern no rule are left out here: otherwise workers find it out side by side.
        """
        self.report.looked_at.append(file.path)
        plain = file.kind in PLAIN
        read = read_settings if plain else read_bytes
        data = read(file.path) if self.options.stdin is None else self.options.stdin
        if isinstance(data, Problem):
            self.report.files.append(FileResult(file.path, problems=[data]))
            return
        if plain and not self.plain.search(data):
            return
        digest = digest_of(data) if self.cache else ""
        if not plain:
            self.note(file, data, digest)
        generated = not file.explicit and is_generated(data)
        if (few or generated) and file.kind != "notebook" and not (plain or self.concerns(data)):
            return
        if generated:
            self.report.notes.append(f"{file.path}: is marked as generated: not examined")
        else:
            yield digest

    def callers(self, files: Sequence[FoundFile], known: set[str]) -> Iterator[tuple[FoundFile, str]]:
        """Files that concern a rule only since they call what takes a step in another file."""
        if not self.stepping or self.options.stdin is not None:
            return
        found, self.turning = calling(files, frozenset(self.stepping))
        for file, data in found:
            if file.path not in known:
                yield file, digest_of(data) if self.cache else ""

    def concerns(self, data: bytes) -> bool:
        """Whether a rule may concern a file of this content."""
        return bool(self.prefilter.concerned(data)) or data.startswith(UTF16_BOMS)

    def note(self, file: FoundFile, data: bytes, digest: str) -> None:
        """What a file tells of the project. Which modules it imports matters only to a rewrite."""
        if self.options.fix:
            self.collector.add(data, file.path)
        self.own.add(data)
        key = key_of("told", digest, file.path) if self.cache else ""
        told = told_of(self.cache.get(key)) if self.cache else None
        if told is None:
            told = told_by(file.path, data)
            if self.cache:
                self.cache.put(key, list(told))
        self.kernels |= {(name, module) for name, module in told.kernels}
        self.scripted |= {(name, module) for name, module in told.scripted}
        self.stepping.update(told.stepping)
        self.loaded.update(told.loaded)
        self.stepped.update(told.stepped)
        self.held += told.held

    def facts(self) -> ProjectFacts:
        """What all files say together."""
        from torchport.analysis.held import Held

        held = tuple(Held(*row) for row in self.held)
        imported = self.collector.facts().imported if self.options.fix else frozenset[str]()
        kernels, scripted = frozenset(self.kernels), frozenset(self.scripted)
        loaded, steps = frozenset(self.loaded - self.stepped), frozenset(self.stepping)
        return ProjectFacts(self.own.all(), imported, held, kernels, scripted, loaded, steps, self.turning)

    def key(self, file: FoundFile, digest: str, facts: str) -> str:
        """What a result depends on, besides the settings of the run."""
        return key_of(digest, file.path, ",".join(sorted(self.options.off(file.path))), facts)

    def examine(
        self, files: Sequence[tuple[FoundFile, str]], facts: str, progress: Progress
    ) -> Iterator[tuple[str, Linted | Problem]]:
        """Lint what no earlier run has looked at."""
        if not files:
            return
        from torchport.lint.linter import Linter

        options = self.options
        linter = Linter(
            self.rules,
            options.target,
            fix=options.fix,
            unsafe=options.unsafe,
            project=self.facts(),
            off=options.off,
            every=options.every,
            triggers=self.prefilter,
        )
        tasks = [Task(file.path, options.stdin) for file, _ in files]
        results = in_processes(
            Work(linter, self.report.rules, named=self.cache is not None),
            tasks,
            options.jobs,
            (Linted.plain, Linted.restored),
            progress,
        )
        for (file, key), result in zip(files, results, strict=True):
            if self.cache and not isinstance(result, Problem) and self.key(file, result.digest, facts) == key:
                self.cache.put(key, list(result.found))
            yield file.path, result


def _settings(rules: tuple[Rule, ...], options: LintOptions) -> str:
    """A name for everything but the files that a result depends on."""
    code = [
        f"{os.path.basename(path)} {status.st_mtime_ns} {status.st_size}"
        for part in DEPENDS_ON
        for path in _modules(os.path.join(os.path.dirname(__file__), part))
        for status in [os.stat(path)]
    ]
    settings = (__version__, sys.version, options.target, str(options.unsafe))
    return key_of(*settings, repr(options.every or rules), *(rule.code for rule in rules), *code)


def _modules(part: str) -> list[str]:
    """The files of a module or a package."""
    if part.endswith(".py"):
        return [part]
    names = [os.path.join(folder, name) for folder, _, names in os.walk(part) for name in names]
    return sorted(name for name in names if name.endswith(".py"))


def _result(path: str, linted: Linted | Problem, report: Report) -> FileResult:
    if isinstance(linted, Problem):
        return FileResult(path, problems=[linted])
    found: Found = linted.found
    report.silenced += found.silenced
    return FileResult(
        path,
        applied=[finding_of(row, report.rules) for row in linted.fixed],
        left=[finding_of(row, report.rules) for row in found.findings],
        problems=[problem_of(row) for row in found.problems],
        before=linted.before,
        after=linted.after,
    )


def _narrow(report: Report, paths: Sequence[str], options: LintOptions, changed: ChangedLines | None) -> None:
    """Take out of the report what the user does not want to read, and count it."""
    for file in report.files:
        _accept(file, report, options)
        if changed is not None:
            path = file.path
            file.left = [f for f in file.left if f.cell or changed.meets(path, f.line, f.end_line)]
        if not options.pedantic:
            report.perhaps += sum(f.perhaps for f in file.left)
            file.left = [f for f in file.left if not f.perhaps]
        if not options.notes:
            report.remarks += sum(f.effect == "none" for f in file.left)
            file.left = [f for f in file.left if f.effect != "none"]
    if options.baseline is not None and not options.since and options.stdin is None:
        _keep_baseline(options.baseline, report, paths, options)
    report.files = [file for file in report.files if file.left or file.problems or file.applied]


def _accept(file: FileResult, report: Report, options: LintOptions) -> None:
    """Take out the findings that the baseline has."""
    if options.baseline is None or not file.left:
        return
    notes = [f for f in file.left if f.effect == "none"]
    others = [f for f in file.left if f.effect != "none"]
    new = options.baseline.new(file.path, [(f, report.line(file.path, f)) for f in others])
    report.accepted += len(others) - len(new)
    file.left = sorted([*notes, *new], key=lambda f: (f.cell, f.line, f.column, f.code))


def _keep_baseline(baseline: Baseline, report: Report, paths: Sequence[str], options: LintOptions) -> None:
    """Write the baseline where it is new, is to be renewed, or has findings that are gone."""
    unread = {path for path, _ in report.problems()}
    gone = baseline.shrink((path for path in report.looked_at if path not in unread), report.rules, paths)
    taken = _take(baseline, report) if options.update_baseline or not baseline.exists else 0
    if gone or taken or not baseline.exists:
        try:
            baseline.save()
        except OSError as error:
            report.notes.append(f"{baseline.path}: cannot be written ({error.strerror or error})")
            return
    if taken or not baseline.exists:
        report.notes.append(f"{baseline.path}: {count(taken, 'finding')} accepted; delete the file to see them again")
    if gone:
        report.notes.append(f"{baseline.path}: {count(gone, 'finding')} gone: the baseline is smaller by so much")


def _take(baseline: Baseline, report: Report) -> int:
    """Accept what is left to report; how much that was."""
    taken = 0
    for file in report.files:
        accepted = [f for f in file.left if f.effect != "none"]
        baseline.accept(file.path, [(f, report.line(file.path, f)) for f in accepted])
        file.left = [f for f in file.left if f.effect == "none"]
        taken += len(accepted)
    report.accepted += taken
    return taken
