"""The command line. ``console`` is the entry point; what a command needs is imported when that command runs."""

from __future__ import annotations

import gc
import os
import sys

NOT_NEEDED = ("inspect", "ipaddress", "pathlib")
"""What click, pathlib and torchport import, though a run over one file without an error uses nothing of it."""
MANY = 100_000
"""New objects between two searches for cycles: Python's 700 makes it search some fifty times while modules load."""


def main() -> int:
    """Run the command in ``sys.argv`` and return its exit status."""
    gc.set_threshold(MANY, 20, 50)
    arguments = sys.argv[1:]
    if arguments in (["--version"], ["-V"]):
        return _print_version()
    from torchport.lazy import load_when_used

    for name in NOT_NEEDED:
        load_when_used(name)
    from torchport.cli.start import run

    return run(arguments)


def console() -> None:
    """Run the command in ``sys.argv`` and end the process with its exit status.

    Nothing is open any more that Python would have to close, and taking down a hundred modules takes longer than
    reading a small file. A debugger or a profiler has to see the end, so with one Python takes them down.
    """
    status = main()
    if sys.gettrace() is None and sys.getprofile() is None and _flushed():
        os._exit(status)
    sys.exit(status)


def _print_version() -> int:
    """What most calls of ``--version`` want: in a hundredth of a second, without click."""
    from torchport import __version__

    try:
        print(f"torchport {__version__}", flush=True)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print(f"error: cannot go on: {error}", file=sys.stderr)
        return 2
    return 0


def _flushed() -> bool:
    """Whether all that was printed has arrived; where it has not, Python says so when it ends by itself."""
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except OSError:
        return False
    return True
