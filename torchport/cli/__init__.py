"""The command line. ``main`` is the entry point; what a command needs is imported when that command runs."""

from __future__ import annotations

import gc
import sys

MANY = 100_000
"""New objects between two searches for cycles: Python's 700 makes it search some fifty times while modules load."""


def main() -> int:
    """Run the command in ``sys.argv`` and return its exit status."""
    gc.set_threshold(MANY, 20, 50)
    arguments = sys.argv[1:]
    if arguments in (["--version"], ["-V"]):
        from torchport import __version__

        print(f"torchport {__version__}")
        return 0
    from torchport.cli.group import run

    return run(arguments)
