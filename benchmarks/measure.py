"""CPU seconds of a command with all its child processes. Wall time says more about the machine's other work."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

NOT_OURS = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PYTHONPROFILEIMPORTTIME", "PYTHONDEVMODE")
"""Variables that slow Python down and that no user of a tool has set."""


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
    walls: list[float] = field(default_factory=list)
    peaks: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """CPU seconds, user and system."""
        return statistics.median(self.seconds)

    @property
    def wall(self) -> float:
        """Seconds from start to end: the shortest run, for other work on the machine can only make it longer."""
        return min(self.walls)

    @property
    def peak(self) -> float:
        """MiB of the largest of its processes."""
        return max(self.peaks)

    def run(self, folder: Path) -> None:
        """Run once and keep what it took. Raises MeasureError for an exit status that is not expected."""
        usage = use(self.command, folder, self.statuses)
        self.seconds.append(usage.cpu)
        self.walls.append(usage.wall)
        self.peaks.append(usage.peak)


class Usage(NamedTuple):
    """What a command took, with all the processes that it started and waited for."""

    cpu: float
    """Seconds, user and system."""
    wall: float
    """Seconds."""
    peak: float
    """MiB of the largest process."""


def use(command: Sequence[str], folder: Path, statuses: Collection[int]) -> Usage:
    """Run ``command`` in ``folder``. Raises MeasureError for an exit status that is not expected."""
    environment = {key: value for key, value in os.environ.items() if key not in NOT_OURS}
    start = time.monotonic()
    try:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
    except OSError as error:
        raise MeasureError(f"{command[0]}: {error.strerror}") from error
    assert process.stderr is not None
    said = process.stderr.read().decode(errors="replace")
    _, wait_status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(wait_status)
    if process.returncode not in statuses:
        raise MeasureError(f"{' '.join(command)}: exit status {process.returncode}\n{said[-2000:]}")
    return Usage(usage.ru_utime + usage.ru_stime, time.monotonic() - start, usage.ru_maxrss / 1024)


def measure_in_turn(timings: Sequence[Timing], folder: Path, runs: int) -> None:
    """Run each command ``runs`` times, in turn, so that a busy spell of the machine hits them alike.

    A first run of each, which fills the caches of the disk and of Python, does not count where there is more than one.
    """
    if runs > 1:
        for timing in timings:
            use(timing.command, folder, timing.statuses)
    for _ in range(runs):
        for timing in timings:
            timing.run(folder)
