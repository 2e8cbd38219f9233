"""torchport as a reader of the docs runs it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def torchport(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run ``torchport ARGUMENTS`` in ``folder``."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
    command = [sys.executable, "-m", "torchport", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def blocks(page: str, language: str) -> list[str]:
    """The fenced blocks of one language in a Markdown page of this repository."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
