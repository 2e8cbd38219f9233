"""``torchport migrate``: rewrite CUDA-specific code, or show or only tell what would be rewritten."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import click

from torchport.cli.choose import chosen_rules, words
from torchport.cli.output import print_bytes, print_error, print_lines, print_note, style_for
from torchport.model import TARGETS, Rule, Target
from torchport.report.run import Mode, Run

BAR_FROM = 20
"""A progress bar is shown from this many files on."""


@click.command("migrate", short_help="Rewrite CUDA-specific code so that it trains on TPUs.")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option("--target", type=click.Choice(TARGETS), default="portable", show_default=True, help="What to write for.")
@click.option("--diff", is_flag=True, help="Print the changes as a unified diff; write nothing.")
@click.option("--check", is_flag=True, help="Only tell what would be rewritten; write nothing.")
@click.option("--unsafe", is_flag=True, help="Also rewrite what rests on a heuristic.")
@click.option("--select", metavar="CODES", multiple=True, help="Only these rules: codes, prefixes (TP1) or names.")
@click.option("--ignore", metavar="CODES", multiple=True, help="All rules but these.")
@click.option("--exclude", metavar="GLOB", multiple=True, help="Leave out files and folders of such a name or path.")
@click.option("-j", "--jobs", type=click.IntRange(min=1), metavar="N", help="Processes to use; default: one per CPU.")
@click.option("--allow-dirty", is_flag=True, help="Rewrite although there are uncommitted changes.")
@click.option("-v", "--verbose", is_flag=True, help="List every edit and every note.")
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.pass_context
def command(
    ctx: click.Context,
    paths: tuple[str, ...],
    target: Target,
    diff: bool,
    check: bool,
    unsafe: bool,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    exclude: tuple[str, ...],
    jobs: int | None,
    allow_dirty: bool,
    verbose: bool,
    output_format: str,
) -> None:
    """Rewrite CUDA-specific code in PATH...: files, or folders with all the Python files in them.

    What cannot be proved is not changed but reported, with the reason. In a git work tree, ignored files are left
    out, and nothing is rewritten over uncommitted changes.

    \b
    Exit status: 0 nothing left to do, 1 something is left for a person (with --diff and
    --check also: something would be rewritten), 2 the run itself failed.
    """
    from torchport.pipeline import Options, migrate

    rules = chosen_rules(words(select), words(ignore))
    _require_target(rules, target)
    mode: Mode = "diff" if diff else "check" if check else "write"
    options = Options(target, mode, unsafe, tuple(exclude), jobs or _cpus(), allow_dirty)
    run = migrate(paths, rules, options, progress=_progress)
    _print(run, verbose=verbose, as_json=output_format == "json")
    ctx.exit(run.exit_status)


def _require_target(rules: tuple[Rule, ...], target: Target) -> None:
    if target != "portable" and not any(target in rule.rename or target in rule.example for rule in rules):
        raise click.UsageError(f"--target {target} is not in this version: expected portable")


def _cpus() -> int:
    """The processors that this process may use, which in a container are fewer than there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _progress(length: int) -> AbstractContextManager[Callable[[], None]]:
    if length < BAR_FROM or not sys.stderr.isatty():
        return nullcontext(lambda: None)
    return _bar(length)


@contextmanager
def _bar(length: int) -> Iterator[Callable[[], None]]:
    with click.progressbar(length=length, label="Examining", file=sys.stderr, show_pos=True) as bar:
        yield lambda: bar.update(1)


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
