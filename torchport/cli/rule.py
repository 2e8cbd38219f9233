"""``torchport rule CODE``: explain one rule."""

from __future__ import annotations

import sys

import click

from torchport.cli.choose import all_rules
from torchport.cli.options import command_of, option
from torchport.cli.output import WrongUsage, print_lines, style_for


@command_of("rule", short_help="Explain one rule.")
@click.argument("code")
@option("--output-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(code: str, output_format: str) -> None:
    """Explain the rule CODE (such as TP101, or its name): why it matters on a TPU, and what becomes of such code."""
    from torchport.catalog import find_rule, suggest
    from torchport.report.rules import as_data, explanation

    rules = all_rules()
    rule = find_rule(rules, code)
    if rule is None:
        near = suggest(rules, code)
        hint = f"; did you mean {near}?" if near else ": `torchport rules` lists all"
        raise WrongUsage(f"no rule is called {code!r}{hint}")
    if output_format == "json":
        import json

        print_lines([json.dumps(as_data(rule), indent=2)])
    else:
        print_lines(explanation(rule, style_for(sys.stdout)))
