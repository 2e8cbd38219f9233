"""Options and commands of click that start without ``inspect`` and ``locale``, which take their time to load.

click takes indents out of help texts and looks for translations; those of torchport have neither.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from torchport import __version__

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
    """A command."""


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


def option(*names: str, **attributes: Any) -> Callable[..., Any]:
    """As ``click.option``."""
    return click.option(*names, cls=Option, **attributes)
