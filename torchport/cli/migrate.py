"""``torchport migrate``: rewrite CUDA-specific code, or show or only tell what would be rewritten."""

from __future__ import annotations

import sys
from typing import Any

from torchport.cli.choose import words
from torchport.cli.output import RunFailed, print_bytes, print_error, print_lines, print_note, style_for
from torchport.cli.plain import PlainCommand, PlainOption
from torchport.cli.running import COMMON, cpus, show_progress
from torchport.cli.settings import Given, Settings, all_settings
from torchport.pipeline import Options
from torchport.report.run import Mode, Run

OPTIONS = (
    PlainOption(("--diff",), "Print the changes as a unified diff; write nothing."),
    PlainOption(("--check",), "Only tell what would be rewritten; write nothing."),
    PlainOption(("-v", "--verbose"), "List every edit and every note."),
    PlainOption(("--output-format",), "", "choice", choices=("text", "json"), default="text"),
)


def _run(paths: tuple[str, ...], given: dict[str, Any]) -> int:
    """Rewrite CUDA-specific code in PATH...: files, or folders with all the Python files in them.

    What cannot be proved is not changed but reported, with the reason; so is what files of settings and launchers ask
    for, which are never rewritten. In a git work tree, ignored files are left out, and nothing is rewritten over
    uncommitted changes.

    \b
    Exit status: 0 nothing left to do, 1 something is left for a person (with --diff and
    --check also: something would be rewritten), 2 the run itself failed.
    """
    mode: Mode = "diff" if given["diff"] else "check" if given["check"] else "write"
    asked = Given(given["config"], given["target"], words(given["select"]), words(given["ignore"]), given["unsafe"])
    runs = []
    for settings in all_settings(paths, asked):
        options = Options(
            target=settings.target,
            mode=mode,
            unsafe=settings.unsafe,
            exclude=given["exclude"],
            jobs=given["jobs"] or cpus(),
            allow_dirty=given["allow_dirty"],
            config=settings.config,
            force_exclude=given["force_exclude"],
            off=settings.off,
            every=settings.every,
        )
        runs.append(_migrate(settings, options))
    run = runs[0]
    for other in runs[1:]:
        run.add(other)
    _print(run, verbose=given["verbose"], as_json=given["output_format"] == "json")
    return run.exit_status


command = PlainCommand(
    "migrate", "Rewrite CUDA-specific code so that it trains on TPUs.", (*OPTIONS, *COMMON), _run, needs_path=True
)


def _migrate(settings: Settings, options: Options) -> Run:
    from torchport.catalog import CatalogError
    from torchport.pipeline import migrate

    try:
        return migrate(settings.paths, settings.rules, options, progress=show_progress)
    except CatalogError as error:
        raise RunFailed(str(error)) from None


def _print(run: Run, *, verbose: bool, as_json: bool) -> None:
    from torchport.report import text

    for note in run.notes:
        print_note(note)
    for error in text.errors(run):
        print_error(error)
    if as_json:
        from torchport.report import as_json as report

        print_lines([report.render(run)])
        return
    if run.mode == "diff":
        _print_diff(run)
    if run.refusal or not (run.examined or any(not problem.fatal for _, problem in run.problems())):
        return
    to_stderr = run.mode == "diff"
    style = style_for(sys.stderr if to_stderr else sys.stdout)
    print_lines(text.render(run, verbose=verbose, style=style), err=to_stderr)


def _print_diff(run: Run) -> None:
    from torchport.report.diff import unified

    for file in run.changed():
        assert file.after is not None
        print_bytes(unified(file.path, file.before, file.after))
