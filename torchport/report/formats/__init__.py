"""The formats of ``torchport lint``: each is a module with ``render(report)``, imported when it is asked for."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

from torchport.report.findings import Report
from torchport.report.text import Style

FORMATS = {
    "text": "text",
    "concise": "concise",
    "json": "as_json",
    "sarif": "sarif",
    "github": "github",
    "gitlab": "gitlab",
    "markdown": "markdown",
}
STATISTICS = ("text", "concise", "json", "markdown")
"""The formats in which ``--statistics`` can be had."""


def render(report: Report, name: str, style: Style) -> Iterator[str]:
    """The lines of the report in the format of that name."""
    module: Any = importlib.import_module(f"torchport.report.formats.{FORMATS[name]}")
    lines: Iterator[str] = module.render(report, style)
    return lines
