"""Run one command line, by click where it has to be; every way that it can end gives an exit status."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

from torchport.cli.output import FAILED, RunFailed, WrongUsage, prepare_streams, print_error, silence_stdout

COMMANDS = {
    "migrate": "torchport.cli.migrate",
    "lint": "torchport.cli.lint",
    "rule": "torchport.cli.rule",
    "rules": "torchport.cli.rules",
    "run": "torchport.cli.run",
}
PLAIN = ("migrate", "lint")
"""Those that are described without click."""
COMPLETION = "_TORCHPORT_COMPLETE"
"""The variable by which a shell asks how a command line may go on."""


def run(arguments: Sequence[str]) -> int:
    """Run one command line; a failure says why."""
    prepare_streams()
    try:
        status = _plainly(arguments)
        if status is None:
            status = _by_click(arguments)
        sys.stdout.flush()
        return status
    except RunFailed as error:
        print_error(str(error))
    except KeyboardInterrupt:
        print_error("interrupted; no file is half written")
    except OSError as error:
        silence_stdout()
        if not isinstance(error, BrokenPipeError):
            print_error(f"cannot go on: {error}")
    except Exception:
        import traceback

        traceback.print_exc()
        print_error("this is a mistake in torchport; please report it with the lines above")
    return FAILED


def _plainly(arguments: Sequence[str]) -> int | None:
    """The exit status of a command line that can do without click, or None."""
    if not arguments or arguments[0] not in PLAIN or COMPLETION in os.environ:
        return None
    command = importlib.import_module(COMMANDS[arguments[0]]).command
    given = command.read(arguments[1:])
    if given is None:
        return None
    try:
        status: int = command.run(*given)
    except WrongUsage as error:
        from torchport.cli.group import show_wrong_usage

        return show_wrong_usage(command.name, str(error))
    return status


def _by_click(arguments: Sequence[str]) -> int:
    from torchport.cli.group import run

    return run(arguments)
