"""``torchport lint`` without a new interpreter, and what the tests of it share."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from click.testing import CliRunner, Result

CUDA = "import torch\n\nx = torch.ones(2).cuda()\n"
DRIVER = 'import os\n\nos.system("nvidia-smi")\n'
OWN_RULES = """
[[rule]]
code = "OWN001"
name = "own-call"
summary = "a call that our team has replaced"
why = "The new one is faster."
effect = "slow"
safety = "safe"
review = "glance"
support = { portable = "same", xla = "same", tpu = "same" }
triggers = ["own.old"]
rename.portable = { "own.old" = "own.new" }
lint_only = true
example.before = "import own\\nown.old()\\n"
example.portable = "import own\\nown.new()\\n"
"""
OWN = "import own\n\na = own.old(1)\n"
Lint = Callable[..., Result]


def runner() -> CliRunner:
    """One that keeps standard output and standard error apart, which older releases of click do only when asked."""
    try:
        return CliRunner(mix_stderr=False)
    except TypeError:
        return CliRunner()


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


def commit(folder: Path, message: str = "one") -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", message)


def concise(result: Result) -> list[str]:
    return [line.partition(" ")[0].rstrip(":") for line in result.stdout.splitlines()]
