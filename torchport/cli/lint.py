"""``torchport lint``: report what runs badly or not at all on a TPU."""

from __future__ import annotations

import os
import pathlib
import sys
from collections.abc import Sequence
from typing import Any

from torchport.cli.choose import words
from torchport.cli.output import RunFailed, WrongUsage, print_bytes, print_error, print_lines, print_note, style_for
from torchport.cli.plain import PlainCommand, PlainOption
from torchport.cli.running import COMMON, cpus, show_progress
from torchport.cli.settings import Given, Settings, all_settings
from torchport.model import UserError
from torchport.report.findings import Report
from torchport.report.formats import FORMATS, STATISTICS

STDIN_NAME = "stdin.py"


OPTIONS = (
    PlainOption(("--fix",), "Apply the safe fixes of the rules that migrate does not run."),
    PlainOption(("--diff",), "Print what --fix would change as a unified diff; write nothing."),
    PlainOption(("--pedantic",), "Also report what the file does not show for certain."),
    PlainOption(("--output-format",), "", "choice", choices=tuple(FORMATS), default="text"),
    PlainOption(("--statistics",), "Only count the findings of each rule."),
    PlainOption(
        ("--diff-base",), "Report only lines that this branch changed since it left REF.", "text", metavar="REF"
    ),
    PlainOption(("--baseline",), "Report only what is not in FILE; made if missing.", "file", metavar="FILE"),
    PlainOption(("--update-baseline",), "Accept all that is found now."),
    PlainOption(("--stdin-filename",), "Read standard input; this is the name of the file.", "text", metavar="PATH"),
    PlainOption(("--no-cache",), "Look at every file anew."),
    PlainOption(("--cache-dir",), "Default: .torchport_cache.", "text", metavar="FOLDER", envvar="TORCHPORT_CACHE_DIR"),
    PlainOption(("-v", "--verbose"), "Also report notes, which need nobody."),
)


def _run(paths: tuple[str, ...], options: dict[str, Any]) -> int:
    """Report what runs badly, or not at all, on a TPU in PATH...: files, or folders with all the Python files in them.

    Files of settings and launchers there are read, too. What `torchport migrate` rewrites is reported as well, and left
    to it. PATH can be - for standard input.

    \b
    Exit status: 0 no findings, 1 findings (with --diff also: something would be
    fixed), 2 the run itself failed.
    """
    stdin = _stdin(paths, options["stdin_filename"])
    if stdin is not None:
        paths = (options["stdin_filename"] or STDIN_NAME,)
    _check(paths, stdin, options)
    given = Given(
        options["config"], options["target"], words(options["select"]), words(options["ignore"]), options["unsafe"]
    )
    reports = [_lint(settings, stdin, options) for settings in all_settings(paths, given)]
    report = _merged(reports)
    _print(report, stdin, options)
    return report.exit_status


command = PlainCommand(
    "lint", "Report what runs badly, or not at all, on a TPU.", (*OPTIONS, *COMMON), _run, needs_path=False
)


def _stdin(paths: Sequence[str], name: str | None) -> bytes | None:
    """What comes from standard input, where it is asked for."""
    if "-" not in paths and name is None:
        return None
    if any(path != "-" for path in paths):
        raise WrongUsage("standard input is one file: expected no other PATH beside it")
    return sys.stdin.buffer.read()


def _check(paths: Sequence[str], stdin: bytes | None, options: dict[str, Any]) -> None:
    """Refuse what cannot be meant."""
    if not paths:
        raise WrongUsage("Missing argument 'PATH...'.")
    if options["statistics"] and options["output_format"] not in STATISTICS:
        raise WrongUsage(f"--statistics needs one of the formats {', '.join(STATISTICS)}")
    if options["update_baseline"] and options["diff_base"]:
        raise WrongUsage("--update-baseline accepts all findings and --diff-base shows some: give one of them")
    if stdin is not None and (options["diff_base"] or options["baseline"] or options["update_baseline"]):
        raise WrongUsage("standard input has no baseline and no branch to compare with")


def _lint(settings: Settings, stdin: bytes | None, options: dict[str, Any]) -> Report:
    from torchport.linting import LintOptions, lint

    try:
        chosen = LintOptions(
            target=settings.target,
            fix=options["fix"] or options["diff"],
            write=not options["diff"],
            unsafe=settings.unsafe,
            pedantic=options["pedantic"] or settings.config.pedantic,
            notes=options["verbose"],
            exclude=options["exclude"],
            jobs=options["jobs"] or cpus(),
            allow_dirty=options["allow_dirty"],
            config=settings.config,
            force_exclude=options["force_exclude"],
            off=settings.off,
            every=settings.every,
            cache=None if options["no_cache"] or stdin is not None else _cache_folder(settings, options["cache_dir"]),
            stdin=stdin,
            since=options["diff_base"] or "",
            baseline=_baseline(settings, stdin, options),
            update_baseline=options["update_baseline"],
        )
        return lint(settings.paths, settings.rules, chosen, progress=show_progress)
    except UserError as error:
        raise RunFailed(str(error)) from None


def _baseline(settings: Settings, stdin: bytes | None, options: dict[str, Any]) -> Any:
    config = settings.config
    path = options["baseline"] or (config.resolve(config.baseline) if config.baseline and stdin is None else "")
    if path:
        from torchport.lint.baseline import Baseline

        return Baseline(pathlib.Path(path))
    if options["update_baseline"]:
        raise WrongUsage("--update-baseline needs --baseline FILE, or baseline in the configuration")
    return None


def _cache_folder(settings: Settings, given: str | None) -> str:
    """At the top of the project: beside the configuration, or at the top of the repository, or here."""
    from torchport.lint.cache import FOLDER
    from torchport.project.paths import top_of

    if given:
        return given
    if settings.config.root:
        return os.path.join(settings.config.root, FOLDER)
    return os.path.join(top_of(os.path.realpath(settings.paths[0])) or "", FOLDER)


def _merged(reports: Sequence[Report]) -> Report:
    """One report of several, for paths that have configurations of their own."""
    first = reports[0]
    for other in reports[1:]:
        first.add(other)
    return first


def _print(report: Report, stdin: bytes | None, options: dict[str, Any]) -> None:
    from torchport.report import text
    from torchport.report.formats import render

    for note in report.notes:
        print_note(note)
    for message in text.errors(report):
        print_error(message)
    name = options["output_format"]
    fixing_stdin = stdin is not None and options["fix"]
    to_stderr = options["diff"] or fixing_stdin
    style = style_for(sys.stderr if to_stderr else sys.stdout)
    if options["diff"]:
        _print_diff(report)
    elif fixing_stdin and stdin is not None:
        after = next((file.after for file in report.files if file.after is not None), None)
        print_bytes(stdin if after is None else after)
    if options["statistics"]:
        from torchport.report.formats import statistics

        print_lines(statistics.render(report, style, name), err=to_stderr)
    else:
        print_lines(render(report, name, style), err=to_stderr)
    if name == "concise" and not options["statistics"]:
        from torchport.report.formats import summary

        print_lines(summary.summary(report, style_for(sys.stderr)), err=True)


def _print_diff(report: Report) -> None:
    from torchport.report.diff import unified

    for file in report.changed():
        assert file.after is not None
        print_bytes(unified(file.path, file.before, file.after))
