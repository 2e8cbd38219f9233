"""What the README shows is what happens."""

from __future__ import annotations

import ast
import os
import re
import tomllib
from pathlib import Path

import pytest
from commands import ROOT, blocks, torchport

COMMANDS = [line for block in blocks("README.md", "sh") for line in block.splitlines()]
INSTALL, TEST = (line for line in COMMANDS if line.startswith("python3 "))
USES = [line.split("#")[0].split() for line in COMMANDS if line.startswith("torchport ")]


def test_the_diff_is_what_migrate_makes(tmp_path: Path) -> None:
    (shown,) = blocks("README.md", "diff")
    hunk = shown.splitlines(keepends=True)[4:]
    (tmp_path / "train.py").write_text("".join(line[1:] for line in hunk if line[0] in " -"))
    run = torchport("migrate", "--diff", "train.py", folder=tmp_path)
    assert run.stdout == shown
    assert run.returncode == 1


def test_the_diff_shows_a_whole_program() -> None:
    (shown,) = blocks("README.md", "diff")
    hunk = shown.splitlines(keepends=True)[4:]
    ast.parse("".join(line[1:] for line in hunk if line[0] in " -"))
    ast.parse("".join(line[1:] for line in hunk if line[0] in " +"))


@pytest.mark.parametrize("words", USES, ids=" ".join)
def test_commands_and_their_options_exist(words: list[str], tmp_path: Path) -> None:
    command, *options = words[1:]
    run = torchport(command, "--help", folder=tmp_path)
    assert run.returncode == 0
    for option in options:
        assert not option.startswith("-") or option in run.stdout


def test_options_named_in_the_text_exist(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    options = set(re.findall(r"`(--?[a-z][a-z-]*)`", text))
    help_text = "".join(torchport(name, "--help", folder=tmp_path).stdout for name in ("migrate", "lint"))
    assert options
    assert not {option for option in options if not re.search(rf"(?<!\S){option}\b", help_text)}


def test_rules_named_in_the_text_exist(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for code in set(re.findall(r"TP\d{3}", text)):
        assert torchport("rule", code, folder=tmp_path).returncode == 0


def test_links_lead_somewhere() -> None:
    for page in (
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "benchmarks/README.md",
        "docs/lint.md",
        "docs/rules/README.md",
    ):
        text = (ROOT / page).read_text(encoding="utf-8")
        links = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
        assert not [link for link in links if not (ROOT / page).parent.joinpath(link).exists()]


def test_the_first_command_runs_the_example() -> None:
    script = INSTALL.split()[-1]
    assert os.access(ROOT / script, os.X_OK)
    assert "pip install . " in INSTALL


def test_continuous_integration_runs_the_second_command() -> None:
    assert TEST in (ROOT / ".ci/run").read_text(encoding="utf-8").splitlines()


def test_sessions_named_in_the_docs_exist() -> None:
    tree = ast.parse((ROOT / "noxfile.py").read_text(encoding="utf-8"))
    sessions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.decorator_list}
    text = "".join((ROOT / page).read_text(encoding="utf-8") for page in ("README.md", "CONTRIBUTING.md"))
    named = {name for names in re.findall(r"nox (?:-R )?-s ((?:[a-z]+ ?)+)", text) for name in names.split()}
    assert named
    assert named - {"and"} <= sessions


def test_tested_versions_are_those_of_the_extras_and_sessions() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    noxfile = (ROOT / "noxfile.py").read_text(encoding="utf-8")
    table = (ROOT / "README.md").read_text(encoding="utf-8")
    for extra in ("xla", "tpu"):
        pins = [pin for pin in project["optional-dependencies"][extra] if "==" in pin]
        assert pins
        for pin in pins:
            assert f'"{pin}"' in noxfile
            assert pin.replace("==", " ") in table
