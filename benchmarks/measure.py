"""CPU seconds of a command with all its child processes. Wall time says more about the machine's other work."""

from __future__ import annotations

import os
import statistics
import subprocess
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path


class MeasureError(Exception):
    """A command did not do the work that was to be measured."""


@dataclass(slots=True)
class Timing:
    """One command and what its runs took."""

    name: str
    command: Sequence[str]
    statuses: Collection[int] = (0,)
    """Exit statuses that mean that the work was done."""
    seconds: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """CPU seconds, user and system."""
        return statistics.median(self.seconds)

    def run(self, folder: Path) -> None:
        """Run once and keep the time. Raises MeasureError for an exit status that is not expected."""
        self.seconds.append(cpu_seconds(self.command, folder, self.statuses))


def cpu_seconds(command: Sequence[str], folder: Path, statuses: Collection[int]) -> float:
    """User and system time of ``command``, run in ``folder``, and of the processes that it started and waited for."""
    try:
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    except OSError as error:
        raise MeasureError(f"{command[0]}: {error.strerror}") from error
    assert process.stderr is not None
    said = process.stderr.read().decode(errors="replace")
    _, wait_status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(wait_status)
    if process.returncode not in statuses:
        raise MeasureError(f"{' '.join(command)}: exit status {process.returncode}\n{said[-2000:]}")
    return usage.ru_utime + usage.ru_stime


def measure_in_turn(timings: Sequence[Timing], folder: Path, runs: int) -> None:
    """Run each command ``runs`` times, in turn, so that a busy spell of the machine hits them alike.

    A first run of each, which fills the caches of the disk and of Python, does not count where there is more than one.
    """
    if runs > 1:
        for timing in timings:
            cpu_seconds(timing.command, folder, timing.statuses)
    for _ in range(runs):
        for timing in timings:
            timing.run(folder)
