"""click's side of the command line: options and commands that start without ``inspect`` and ``locale``.

click takes indents out of help texts and looks for translations; those of torchport have neither.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import IO, Any

import click

from torchport import __version__
from torchport.cli.output import FAILED, RunFailed, WrongUsage, print_error
from torchport.cli.plain import PlainCommand, PlainOption

HELP = "Show this message and exit."
VERSION = "Show the version and exit."


class Option(click.Option):
    """An option whose help is kept as it is written."""

    def __init__(self, *names: Any, help: str | None = None, **attributes: Any) -> None:
        super().__init__(*names, **attributes)
        self.help = help


class _WithHelp(click.Command):
    """Makes the option for help as click does, but of ``Option``."""

    _help: Option | None = None

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """One and the same object each time, for click compares options by identity."""
        if self._help is None and (names := self.get_help_option_names(ctx)):
            self._help = Option(names, is_flag=True, is_eager=True, expose_value=False, callback=_show_help, help=HELP)
        return self._help


class Command(_WithHelp):
    """A command, whose failures are shown as those of click are."""

    def invoke(self, ctx: click.Context) -> Any:
        """As in click."""
        try:
            return super().invoke(ctx)
        except RunFailed as error:
            raise _Failed(str(error)) from None
        except WrongUsage as error:
            raise click.UsageError(str(error), ctx) from None


class _Failed(click.ClickException):
    exit_code = FAILED

    def show(self, file: IO[Any] | None = None) -> None:
        """Print one line to stderr."""
        print_error(self.message)


class Group(_WithHelp, click.Group):
    """A group of commands."""


def _show_help(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


def show_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    """What ``--version`` does among other options."""
    if wanted and not ctx.resilient_parsing:
        click.echo(f"torchport {__version__}", color=ctx.color)
        ctx.exit()


def command_of(name: str, **attributes: Any) -> Callable[[Callable[..., Any]], Command]:
    """As ``click.command``."""
    return click.command(name, cls=Command, **attributes)


def by_click(command: PlainCommand) -> Command:
    """A command that is described without click, as a command of click."""

    def callback(paths: tuple[str, ...], **options: Any) -> None:
        click.get_current_context().exit(command.run(paths, options))

    return Command(
        command.name,
        params=[
            click.Argument(["paths"], metavar="PATH...", nargs=-1, required=command.needs_path),
            *map(_option, command.options),
        ],
        callback=callback,
        help=command.run.__doc__,
        short_help=command.summary,
    )


def _option(given: PlainOption) -> Option:
    attributes: dict[str, Any] = {"help": given.help, "metavar": given.metavar, "envvar": given.envvar}
    if given.kind == "flag":
        return Option(given.names, is_flag=True, **attributes)
    if given.default is not None:
        attributes |= {"default": given.default, "show_default": True}
    return Option(given.names, type=_type(given), multiple=given.multiple, **attributes)


def _type(given: PlainOption) -> click.ParamType[Any]:
    match given.kind:
        case "choice":
            return click.Choice(given.choices)
        case "number":
            return click.IntRange(min=1)
        case "file":
            return click.Path()
        case _:
            return click.STRING


def option(*names: str, **attributes: Any) -> Callable[..., Any]:
    """As ``click.option``."""
    return click.option(*names, cls=Option, **attributes)
