"""The group of commands: each is a module that is imported when it is asked for."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence

import click

from torchport.cli.options import VERSION, Group, by_click, option, show_version
from torchport.cli.output import FAILED
from torchport.cli.plain import PlainCommand
from torchport.cli.start import COMMANDS, COMPLETION


class LazyGroup(Group):
    """Looks commands up by name in COMMANDS."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in order."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of one command."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command | PlainCommand = importlib.import_module(COMMANDS[cmd_name]).command
        return by_click(command) if isinstance(command, PlainCommand) else command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As in click, with the nearest name where there is no such command."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            import difflib

            near = difflib.get_close_matches(name, COMMANDS, 1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; expected one of {', '.join(COMMANDS)}"
            raise click.UsageError(f"no such command {name!r}{hint}", ctx)
        return super().resolve_command(ctx, args)


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@option("--version", "-V", is_flag=True, is_eager=True, expose_value=False, callback=show_version, help=VERSION)
def group() -> None:
    """Train PyTorch code written for NVIDIA GPUs on Google TPUs, without forking it.

    \b
    Exit status: 0 nothing left to do, 1 something is left for a person,
    2 the run itself failed.
    """


def run(arguments: Sequence[str]) -> int:
    """The exit status of one command line; what is wrong with it is shown."""
    if not arguments and COMPLETION not in os.environ:
        return _no_command()
    if COMPLETION in os.environ:
        group.main(list(arguments), prog_name="torchport", complete_var=COMPLETION)
    try:
        return _invoke(arguments)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        raise KeyboardInterrupt from None


def show_wrong_usage(name: str, message: str) -> int:
    """Show how a command is used, and what is wrong with how it was, and return the exit status."""
    with click.Context(group, info_name="torchport") as context:
        command = group.get_command(context, name)
        assert command is not None
        error = click.UsageError(message, click.Context(command, info_name=name, parent=context))
    error.show()
    return error.exit_code


def _no_command() -> int:
    """Show the help and fail; releases of click differ in what they do here."""
    with click.Context(group, info_name="torchport") as context:
        click.echo(context.get_help(), err=True)
    return FAILED


def _invoke(arguments: Sequence[str]) -> int:
    """The exit status of a command."""
    try:
        with group.make_context("torchport", list(arguments)) as context:
            group.invoke(context)
    except click.exceptions.Exit as wanted:
        return wanted.exit_code
    return 0
