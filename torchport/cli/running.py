"""What ``migrate`` and ``lint`` share: their common options, the number of processes and the progress bar."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from torchport.cli.plain import PlainOption
from torchport.model import TARGETS

BAR_FROM = 20
"""A progress bar is shown from this many files on."""

COMMON = (
    PlainOption(("--target",), "What to write for.  [default: portable]", "choice", choices=TARGETS),
    PlainOption(("--unsafe",), "Also rewrite what rests on a heuristic."),
    PlainOption(
        ("--select",), "Only these rules: codes, prefixes (TP1) or names.", "text", metavar="CODES", multiple=True
    ),
    PlainOption(("--ignore",), "All rules but these.", "text", metavar="CODES", multiple=True),
    PlainOption(("--exclude",), "Leave out files and folders of such a path.", "text", metavar="GLOB", multiple=True),
    PlainOption(("--force-exclude",), "Let the configuration exclude named files, too."),
    PlainOption(("--config",), "Default: the nearest pyproject.toml.", "file", metavar="FILE"),
    PlainOption(("-j", "--jobs"), "Processes; default: one per CPU.", "number", metavar="N"),
    PlainOption(("--allow-dirty",), "Rewrite although there are uncommitted changes."),
)


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
    import click

    with click.progressbar(length=length, label="Examining", file=sys.stderr, show_pos=True) as bar:
        yield lambda: bar.update(1)
