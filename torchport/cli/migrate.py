"""``torchport migrate``: rewrite CUDA-specific code, or show or only tell what would be rewritten."""

from __future__ import annotations

import sys

import click

from torchport.cli.choose import words
from torchport.cli.options import command_of, option
from torchport.cli.output import RunFailed, print_bytes, print_error, print_lines, print_note, style_for
from torchport.cli.running import common_options, cpus, show_progress
from torchport.cli.settings import Given, Settings, all_settings
from torchport.model import Target
from torchport.pipeline import Options
from torchport.report.run import Mode, Run


@command_of("migrate", short_help="Rewrite CUDA-specific code so that it trains on TPUs.")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@option("--diff", is_flag=True, help="Print the changes as a unified diff; write nothing.")
@option("--check", is_flag=True, help="Only tell what would be rewritten; write nothing.")
@option("-v", "--verbose", is_flag=True, help="List every edit and every note.")
@option("--output-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@common_options
@click.pass_context
def command(
    ctx: click.Context,
    paths: tuple[str, ...],
    target: Target | None,
    diff: bool,
    check: bool,
    unsafe: bool,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    exclude: tuple[str, ...],
    force_exclude: bool,
    config: str | None,
    jobs: int | None,
    allow_dirty: bool,
    verbose: bool,
    output_format: str,
) -> None:
    """Rewrite CUDA-specific code in PATH...: files, or folders with all the Python files in them.

    What cannot be proved is not changed but reported, with the reason; so is what files of settings and launchers ask
    for, which are never rewritten. In a git work tree, ignored files are left out, and nothing is rewritten over
    uncommitted changes.

    \b
    Exit status: 0 nothing left to do, 1 something is left for a person (with --diff and
    --check also: something would be rewritten), 2 the run itself failed.
    """
    mode: Mode = "diff" if diff else "check" if check else "write"
    runs = []
    for settings in all_settings(paths, Given(config, target, words(select), words(ignore), unsafe)):
        options = Options(
            target=settings.target,
            mode=mode,
            unsafe=settings.unsafe,
            exclude=tuple(exclude),
            jobs=jobs or cpus(),
            allow_dirty=allow_dirty,
            config=settings.config,
            force_exclude=force_exclude,
            off=settings.off,
            every=settings.every,
        )
        runs.append(_migrate(settings, options))
    run = runs[0]
    for other in runs[1:]:
        run.add(other)
    _print(run, verbose=verbose, as_json=output_format == "json")
    ctx.exit(run.exit_status)


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
