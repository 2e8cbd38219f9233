"""``torchport run``: run a program that cannot be edited, with CUDA calls mapped at run time."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import click

from torchport.cli.options import command_of, option
from torchport.cli.output import RunFailed

RUNNER = "torchport.shim.patching.run"


@command_of(
    "run",
    short_help="Run an unmigrated script, with CUDA calls mapped at run time.",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("script")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@option("-m", "module", is_flag=True, help="SCRIPT is the name of a module, as for python -m.")
@option(
    "--backend",
    metavar="NAME",
    help="cuda, tpu, xla or cpu; default: TORCHPORT_BACKEND, else the first that is really there.",
)
@option(
    "--pretend-cuda",
    is_flag=True,
    help="Answer torch.cuda.is_available() with True. Code that then builds or calls CUDA kernels will fail.",
)
@option("--log", metavar="FILE", help="Write what was mapped to FILE instead of stderr.")
@option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(
    script: str,
    args: tuple[str, ...],
    module: bool,
    backend: str | None,
    pretend_cuda: bool,
    log: str | None,
    log_format: str,
) -> None:
    """Run SCRIPT with ARGS, unedited: torch.cuda's functions, .cuda(), device names, mixed precision, process groups
    and page-locked memory are mapped to the accelerator that is there. Options of torchport stand before SCRIPT.

    Each mapped call is logged once per line of the program, and a summary follows at the end. The exit status is that
    of the program; 2 also if it could not be started.
    """
    if not module and not Path(script).is_file():
        raise RunFailed(f"{script}: there is no such file; expected a Python script (or a module, with -m)")
    if importlib.util.find_spec("torch") is None:
        raise RunFailed(
            "`torchport run` needs torch in the environment of torchport:"
            " pip install 'torchport[xla]' or 'torchport[tpu]'"
        )
    if backend is not None:
        os.environ["TORCHPORT_BACKEND"] = backend
    options = {"pretend_cuda": pretend_cuda, "module": module, "log": log, "log_format": log_format}
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, *flags, "-m", RUNNER, json.dumps(options), script, *args])
