"""The other tools, each in an environment of its own: their pins exclude each other's libraries."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent / "environments"
PINS = {"torchfix": "torchfix==0.7.0", "fixit": "fixit==2.2.1", "ruff": "ruff==0.17.6"}


def python_of(tool: str, given: str | None) -> str:
    """The Python of the environment that has ``tool``: the one that was given, or one made here at first use."""
    if given:
        return str(Path(given).absolute())
    python = FOLDER / tool / "bin" / "python"
    if not python.exists():
        print(f"making an environment for {PINS[tool]}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", FOLDER / tool], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", PINS[tool]], check=True)
    return str(python.absolute())


def script_of(python: str, name: str) -> str:
    """The command ``name`` beside that Python."""
    return str(Path(python).with_name(name))


def version_of(python: str, distribution: str) -> str:
    """The installed version, or an empty text where the distribution is not installed (a checkout on the path)."""
    code = f"import importlib.metadata as m; print(m.version({distribution!r}))"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=False).stdout.strip()
