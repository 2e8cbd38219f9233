"""The command line. ``main`` is the entry point; what a command needs is imported when that command runs."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command in ``sys.argv`` and return its exit status."""
    arguments = sys.argv[1:]
    if arguments in (["--version"], ["-V"]):
        from torchport import __version__

        print(f"torchport {__version__}")
        return 0
    from torchport.cli.group import run

    return run(arguments)
