"""What ``migrate`` and ``lint`` share: their common options, the number of processes and the progress bar."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import click

from torchport.cli.options import option
from torchport.model import TARGETS

BAR_FROM = 20
"""A progress bar is shown from this many files on."""

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
OPTIONS: tuple[Decorator, ...] = (
    option("--target", type=click.Choice(TARGETS), help="What to write for.  [default: portable]"),
    option("--unsafe", is_flag=True, help="Also rewrite what rests on a heuristic."),
    option("--select", metavar="CODES", multiple=True, help="Only these rules: codes, prefixes (TP1) or names."),
    option("--ignore", metavar="CODES", multiple=True, help="All rules but these."),
    option("--exclude", metavar="GLOB", multiple=True, help="Leave out files and folders of such a path."),
    option("--force-exclude", is_flag=True, help="Let the configuration exclude named files, too."),
    option("--config", metavar="FILE", type=click.Path(), help="Default: the nearest pyproject.toml."),
    option("-j", "--jobs", type=click.IntRange(min=1), metavar="N", help="Processes; default: one per CPU."),
    option("--allow-dirty", is_flag=True, help="Rewrite although there are uncommitted changes."),
)


def common_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that ``migrate`` and ``lint`` have in common."""
    for give in reversed(OPTIONS):
        command = give(command)
    return command


def cpus() -> int:
    """The processors that this process may use, which in a container are fewer than there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def show_progress(length: int) -> AbstractContextManager[Callable[[], None]]:
    """A bar on a terminal where there is something to wait for."""
    if length < BAR_FROM or not sys.stderr.isatty():
        return nullcontext(lambda: None)
    return _bar(length)


@contextmanager
def _bar(length: int) -> Iterator[Callable[[], None]]:
    with click.progressbar(length=length, label="Examining", file=sys.stderr, show_pos=True) as bar:
        yield lambda: bar.update(1)
