"""One way through the house: find files, read, migrate in worker processes, then write here, or only tell."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from torchport.analysis.elsewhere import turning
from torchport.analysis.project import Collector, ProjectFacts
from torchport.catalog.load import for_target
from torchport.catalog.prefilter import Prefilter, SettingsFilter
from torchport.lazy import NamedTuple
from torchport.model import FileResult, Finding, Problem, Rule, Target
from torchport.project.config import Config, FileRules
from torchport.project.files import PLAIN, FoundFile, find_files
from torchport.project.settings import read_settings, text_of
from torchport.project.source import UTF16_BOMS, decode, encoded, is_generated, read_bytes
from torchport.report.run import Mode, Run

if TYPE_CHECKING:
    from torchport.pool import Failure, StartMethod
    from torchport.report.findings import Report
    from torchport.rewrite import Migrator

TIME_LIMIT = 60.0
"""Seconds for one file."""
FILES_PER_JOB = 10
"""Starting a process for fewer matching files than this takes longer than it saves."""


class Options(NamedTuple):
    """What the user asked of one run."""

    target: Target = "portable"
    mode: Mode = "write"
    unsafe: bool = False
    exclude: tuple[str, ...] = ()
    jobs: int = 1
    allow_dirty: bool = False
    config: Config = Config()
    force_exclude: bool = False
    """The configuration's ``exclude`` also holds for files that are named."""
    off: FileRules = FileRules()
    """The codes of rules that do not concern a path."""
    every: tuple[Rule, ...] = ()
    """All rules, whether or not the user asked for them."""


class Task(NamedTuple):
    """A file whose bytes matched the prefilter."""

    file: FoundFile
    data: bytes


class Trigger(Protocol):
    """Whether a file is worth reading any further; a compiled pattern is one."""

    def search(self, data: bytes, /) -> object:
        """Something true where one of the words is in ``data``."""


T = TypeVar("T")
R = TypeVar("R")
P = TypeVar("P")
Work = Callable[[Task], FileResult]
Progress = Callable[[int], AbstractContextManager[Callable[[], None]]]
"""Given the number of files, a context whose value is called after each of them."""


class Migration:
    """The work of one process: picklable, so that it can be sent to a worker once."""

    def __init__(self, migrator: Migrator) -> None:
        self.migrator = migrator

    def __call__(self, task: Task) -> FileResult:
        """Migrate one file in memory."""
        result = FileResult(task.file.path)
        if task.file.kind in PLAIN:
            found = self.migrator.read(task.file.path, text_of(task.data))
            result.left, result.silenced = [*found.left], found.silenced
            return result
        source = decode(task.file.path, task.data)
        if isinstance(source, Problem):
            result.problems.append(source)
            return result
        outcome = self.migrator(source)
        result.applied, result.left, result.problems = [*outcome.applied], [*outcome.left], [*outcome.problems]
        result.silenced = outcome.silenced
        if outcome.text is not None and outcome.text != source.text:
            after = encoded(source, outcome.text)
            if isinstance(after, Problem):
                result.problems.append(after)
            else:
                result.after = after
        return result


def no_progress(length: int) -> AbstractContextManager[Callable[[], None]]:
    """Show nothing."""
    return nullcontext(lambda: None)


def migrate(
    paths: Sequence[str], rules: tuple[Rule, ...], options: Options, *, progress: Progress = no_progress
) -> Run:
    """Migrate the files under ``paths``; with mode ``write`` the files themselves, otherwise only in the result."""
    rules = tuple(rule for rule in rules if not rule.lint_only)

    def work_for(facts: ProjectFacts) -> Work:
        from torchport.rewrite import Migrator

        every = tuple(rule for rule in options.every if not rule.lint_only)
        return Migration(
            Migrator(
                rules,
                options.target,
                unsafe=options.unsafe,
                project=facts,
                off=options.off,
                every=every,
                triggers=triggers,
            )
        )

    ours = for_target(rules, options.target)
    triggers = Prefilter(ours)
    return run(paths, work_for, triggers, options, progress=progress, plain=SettingsFilter(ours))


def run(
    paths: Sequence[str],
    work_for: Callable[[ProjectFacts], Work],
    trigger: Trigger,
    options: Options,
    *,
    progress: Progress = no_progress,
    method: StartMethod | None = None,
    plain: Trigger | None = None,
) -> Run:
    """The walk around any work: which files it gets, in which processes, and what becomes of its results.

    ``plain`` is the trigger for files of settings and launchers. ``work_for`` is given what all Python files say
    together, matching or not; it is not called where no file matched.
    """
    result = Run(options.mode, options.target)
    selection = find_files(paths, options.exclude, wanted(options.config, force=options.force_exclude))
    result.files += selection.refused
    result.notes += selection.notes
    tasks, facts = _tasks(selection.files, trigger, result, plain)
    if tasks:
        result.files += _in_processes(work_for(facts), tasks, options, progress, method)
    result.files.sort(key=lambda file: file.path.split("/"))
    if options.mode == "write":
        write_changed(result, paths, allow_dirty=options.allow_dirty)
    return result


def wanted(config: Config, *, force: bool) -> Callable[[FoundFile], bool] | None:
    """Which files the configuration leaves in; those that the user names always are, unless ``force`` is given."""
    if not config.exclude:
        return None
    return lambda file: (file.explicit and not force) or not config.excludes(file.path)


def _tasks(
    files: Sequence[FoundFile], trigger: Trigger, result: Run, plain: Trigger | None
) -> tuple[list[Task], ProjectFacts]:
    """Read every file; keep those with a trigger word, and note what cannot be read."""
    tasks: list[Task] = []
    project = Collector()
    for file in files:
        result.examined += 1
        is_plain = file.kind in PLAIN
        data = read_settings(file.path) if is_plain else read_bytes(file.path)
        if isinstance(data, Problem):
            result.files.append(FileResult(file.path, problems=[data]))
            continue
        if not is_plain:
            project.add(data, file.path)
        wanted = plain is not None and plain.search(data) if is_plain else trigger.search(data)
        if not (wanted or (data.startswith(UTF16_BOMS) and not is_plain)):
            continue
        elif file.kind == "notebook":
            message = "is a notebook: notebooks are not rewritten by this version; export its code to a .py file"
            result.files.append(FileResult(file.path, problems=[Problem(message)]))
        elif not file.explicit and is_generated(data):
            result.notes.append(f"{file.path}: is marked as generated: not rewritten; change what generates it")
        else:
            tasks.append(Task(file, data))
    facts = project.facts()
    callers, turned = calling(files if facts.stepping else (), facts.stepping)
    known = {task.file.path for task in tasks}
    tasks += [Task(file, data) for file, data in callers if file.path not in known]
    return tasks, facts._replace(turning=turned)


def calling(files: Iterable[FoundFile], names: frozenset[str]) -> tuple[list[tuple[FoundFile, bytes]], frozenset[str]]:
    """The Python files that call a function which takes a step in another, read once more, and which they turn over."""
    found, turned = [], set[str]()
    for file in files:
        data = read_bytes(file.path) if file.kind == "source" else b""
        if isinstance(data, Problem) or not any(f"{name}(".encode() in data for name in names):
            continue
        turned |= turning(data, names)
        if file.explicit or not is_generated(data):
            found.append((file, data))
    return found, frozenset(turned)


def _in_processes(
    work: Work, tasks: list[Task], options: Options, progress: Progress, method: StartMethod | None
) -> list[FileResult]:
    """One result for each task, whatever happens to the process that works on it."""
    results = in_processes(work, tasks, options.jobs, (FileResult.plain, FileResult.restored), progress, method)
    return [_settled(task, result) for task, result in zip(tasks, results, strict=True)]


class _Plain(Generic[T, R, P]):
    """Work whose results are made of plain values."""

    def __init__(self, work: Callable[[T], R], plain: Callable[[R], P]) -> None:
        self.work, self.plain = work, plain

    def __call__(self, task: T) -> P:
        return self.plain(self.work(task))


def in_processes(
    work: Callable[[T], R],
    tasks: Sequence[T],
    jobs: int,
    travel: tuple[Callable[[R], P], Callable[[P], R]],
    progress: Progress = no_progress,
    method: StartMethod | None = None,
) -> list[R | Problem]:
    """What ``work`` makes of each task, or why it made nothing of it.

    ``travel`` makes plain values of a result, for its way between processes, and a result of them again.
    """
    from torchport.pool import Failure, PoolError, run_tasks

    jobs = max(1, min(jobs, len(tasks) // FILES_PER_JOB))
    with progress(len(tasks)) as done:
        try:
            results = run_tasks(_Plain(work, travel[0]), tasks, jobs=jobs, limit=TIME_LIMIT, done=done, method=method)
        except (PoolError, OSError) as error:
            return [Problem(f"not examined: {error}", fatal=True) for _ in tasks]
    return [_problem_of(result) if isinstance(result, Failure) else travel[1](result) for result in results]


def _settled(task: Task, result: FileResult | Problem) -> FileResult:
    """The result as it is reported: nothing counts as applied in a file that stays as it is."""
    if isinstance(result, Problem):
        return FileResult(task.file.path, problems=[result])
    result.before = task.data
    if result.after is None:
        _keep_whole(result)
    result.left.sort(key=_position)
    result.applied.sort(key=_position)
    return result


def _position(finding: Finding) -> tuple[int, int, str]:
    return finding.line, finding.column, finding.code


def _keep_whole(result: FileResult) -> None:
    """Nothing counts as applied in a file that is not written. A problem, where there is one, already says why."""
    if not result.problems:
        reason = "this file was left alone as a whole"
        result.left += [finding._replace(edits=(), reason=finding.reason or reason) for finding in result.applied]
    result.applied, result.after = [], None


def _problem_of(failure: Failure) -> Problem:
    match failure.kind:
        case "died":
            return Problem(f"stopped the process that read it ({failure.detail}): left as it was; look at it by hand")
        case "timeout":
            return Problem(f"takes too long ({failure.detail}): left as it was; look at it by hand")
        case "memory" | "recursion":
            return Problem(f"is too deeply nested or too large to examine ({failure.detail}): left as it was")
        case _:
            return Problem(f"internal error: {failure.detail}: left as it was; please report this", fatal=True)


def write_changed(result: Run | Report, paths: Sequence[str], *, allow_dirty: bool) -> None:
    """Write every changed file, unless git could not give the old text back."""
    changed = result.changed()
    if not changed:
        return
    if not allow_dirty:
        result.refusal = _guard(result, [path for path in paths if path and os.path.exists(path)])
    if result.refusal:
        return
    from torchport.project.write import write_file

    for file in changed:
        assert file.after is not None
        problem = write_file(file.path, file.before, file.after)
        if problem is not None:
            file.problems.append(problem)
            _keep_whole(file)


def _guard(result: Run | Report, paths: Sequence[str]) -> str:
    """Why the files may not be rewritten now, or nothing."""
    from torchport.project import git

    way_round = "commit or stash first, look at --diff, or give --allow-dirty"
    try:
        dirty = git.find_dirty(paths, [file.path for file in result.changed()])
    except git.GitError as error:
        return f"git cannot tell whether there are uncommitted changes: {error}; give --allow-dirty to rewrite anyway"
    if dirty.paths:
        first = ", ".join(dirty.paths[:5])
        more = f" and {len(dirty.paths) - 5} more" if len(dirty.paths) > 5 else ""
        return f"uncommitted changes in {first}{more}: nothing was rewritten; {way_round}"
    if dirty.unversioned:
        count = len(dirty.unversioned)
        what = dirty.unversioned[0] if count == 1 else f"{count} rewritten files"
        result.notes.append(f"{what}: not under version control, so git cannot give the old text back")
    return ""
