"""``torchport rules``: list the catalogue."""

from __future__ import annotations

import sys

import click

from torchport.cli.choose import chosen_rules, words
from torchport.cli.options import command_of, option
from torchport.cli.output import print_lines, style_for


@command_of("rules", short_help="List all rules.")
@option("--select", metavar="CODES", multiple=True, help="Only these: codes, prefixes such as TP1, or names.")
@option("--output-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(select: tuple[str, ...], output_format: str) -> None:
    """List the rules: code, name, what happens on a TPU if nothing is done, whether it is rewritten, summary."""
    from torchport.report.rules import as_data, rule_list

    rules = chosen_rules(words(select), ())
    if output_format == "json":
        import json

        print_lines([json.dumps([as_data(rule) for rule in rules], indent=2)])
    else:
        print_lines(rule_list(rules, style_for(sys.stdout)))
