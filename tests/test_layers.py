"""Imports run downwards only: the house as the contributor's guide draws it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "torchport"
LAYERS = (
    {"cli"},
    {"linting"},
    {"pipeline"},
    {"pool"},
    {"report", "lint"},
    {"rewrite"},
    {"analysis"},
    {"catalog", "project"},
    {"model"},
    {"lazy"},
)
"""From the top: a part may import itself and what stands in a later row."""
DEPTH = {part: depth for depth, parts in enumerate(LAYERS) for part in parts}
ALONE = "shim"


def part_of(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def imported(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and part for each import of a part of torchport, also inside functions and for type checkers."""
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"relative import in line {node.lineno}"
            assert node.module is not None
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            package, _, rest = name.partition(".")
            if package == "torchport" and rest:
                yield node.lineno, rest.split(".")[0]


def is_allowed(importer: str, target: str) -> bool:
    if importer == target or target.startswith("__"):
        return True
    if importer == "__main__":
        return target == "cli"
    if ALONE in (importer, target) or importer == "__init__":
        return False
    return DEPTH[importer] < DEPTH[target]


FILES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=[path.relative_to(PACKAGE).as_posix() for path in FILES])
def test_imports_run_downwards(path: Path) -> None:
    importer = part_of(path)
    assert importer in {*DEPTH, ALONE, "__init__", "__main__"}, f"{importer} has no place in LAYERS"
    tree = ast.parse(path.read_bytes())
    wrong = [f"line {line}: {target}" for line, target in imported(tree) if not is_allowed(importer, target)]
    assert not wrong


@pytest.mark.parametrize(
    ("importer", "code", "allowed"),
    [
        ("rewrite", "from torchport.analysis.scopes import Scope", True),
        ("rewrite", "import torchport.model", True),
        ("rewrite", "from torchport import __version__", True),
        ("rewrite", "from torchport import report", False),
        ("analysis", "def f():\n    from torchport.rewrite import x", False),
        ("catalog", "from torchport.project import git", False),
        ("shim", "from torchport.model import Target", False),
        ("cli", "import torchport.shim", False),
        ("cli", "from torchport.pipeline import migrate", True),
    ],
)
def test_the_check_itself(importer: str, code: str, allowed: bool) -> None:
    assert all(is_allowed(importer, target) for _, target in imported(ast.parse(code))) is allowed
