"""What docs/lint.md, the hooks and the action say is so."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from commands import ROOT, blocks, torchport

from torchport.project.config import KEYS, find_config
from torchport.report.formats import FORMATS, STATISTICS

PAGE = (ROOT / "docs/lint.md").read_text(encoding="utf-8")
HOOKS = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
CUDA = "import torch\n\nx = torch.ones(2).cuda()\n"


def test_the_finding_that_is_shown_is_what_is_printed(tmp_path: Path) -> None:
    (shown,) = blocks("docs/lint.md", "text")
    number, line = re.findall(r"^(\d+) \| (.*)$", shown, re.MULTILINE)[0]
    text = "import torch\n\n\ndef f(x: torch.Tensor):\n"
    text += "    pass\n" * (int(number) - text.count("\n") - 1) + line + "\n"
    (tmp_path / "train.py").write_text(text)
    assert torchport("lint", "train.py", folder=tmp_path).stdout.startswith(shown)


def test_options_named_on_the_page_exist(tmp_path: Path) -> None:
    options = set(re.findall(r"`(--?[a-z][a-z-]*)", PAGE))
    help_text = torchport("lint", "--help", folder=tmp_path).stdout
    assert len(options) > 15
    assert not {option for option in options if not re.search(rf"(?<!\S){option}\b", help_text)}


def test_formats_on_the_page_are_all_there_are() -> None:
    table = PAGE.split("`--output-format` is one of")[1].split("`--statistics`")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == list(FORMATS)
    assert [name for name in STATISTICS if f"`{name}`" in PAGE.split("`--statistics`")[1].split("\n\n")[0]] == list(
        STATISTICS
    )


def test_the_configuration_on_the_page_is_taken_and_has_every_key(tmp_path: Path) -> None:
    (text,) = blocks("docs/lint.md", "toml")
    assert set(tomllib.loads(text)["tool"]["torchport"]) == set(KEYS)
    (tmp_path / "pyproject.toml").write_text(text)
    assert find_config(str(tmp_path)).baseline == "torchport-baseline.json"


def test_the_comments_on_the_page_silence(tmp_path: Path) -> None:
    (text,) = blocks("docs/lint.md", "python")
    (tmp_path / "a.py").write_text("import torch\ny = torch.ones(1)\n" + text.replace("x = x", "x = y"))
    assert "TP103" not in torchport("lint", "a.py", folder=tmp_path).stdout
    (tmp_path / "a.py").write_text("import torch\ny = torch.ones(1)\n" + "x = y.cuda()\n")
    assert "TP103" in torchport("lint", "a.py", folder=tmp_path).stdout


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook["id"])
def test_each_hook_runs(tmp_path: Path, hook: dict[str, object]) -> None:
    (tmp_path / "a.py").write_text(CUDA)
    (tmp_path / "clean.py").write_text("x = 1\n")
    words = shlex.split(str(hook["entry"]))
    assert words[0] == "torchport"
    found = torchport(*words[1:], "a.py", "clean.py", folder=tmp_path)
    assert found.returncode == (0 if hook["id"] == "torchport-migrate" else 1), found.stderr
    assert torchport(*words[1:], "clean.py", folder=tmp_path).returncode == 0
    (tmp_path / "pyproject.toml").write_text('[tool.torchport]\nexclude = ["a.py"]\n')
    assert torchport(*words[1:], "a.py", folder=tmp_path).returncode == 0


def test_hooks_named_in_the_docs_exist() -> None:
    ids = {hook["id"] for hook in HOOKS}
    (example,) = [block for block in blocks("docs/lint.md", "yaml") if "repos:" in block]
    assert {hook["id"] for hook in yaml.safe_load(example)["repos"][0]["hooks"]} <= ids
    named = set(re.findall(r"`(torchport-(?:lint|check|migrate)[a-z-]*)`", PAGE))
    assert named == ids


def test_the_action_annotates(tmp_path: Path) -> None:
    """Its last step as a runner runs it, with torchport where the step before has put it."""
    (example,) = [block for block in blocks("docs/lint.md", "yaml") if "pull_request" in block]
    given = yaml.safe_load(example)["jobs"]["torchport"]["steps"][-1]["with"]
    assert set(given) <= set(ACTION["inputs"])
    step = ACTION["runs"]["steps"][-1]
    assert set(step["env"].values()) == {f"${{{{ inputs.{name} }}}}" for name in ("paths", "diff-base", "args")}
    command = tmp_path / "runner/torchport/bin/torchport"
    command.parent.mkdir(parents=True)
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m torchport "$@"\n')
    command.chmod(0o755)
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a.py").write_text(CUDA)
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "RUNNER_TEMP": str(tmp_path / "runner"),
        "PATHS": "src",
        "BASE": "",
        "ARGS": "--no-cache --select TP1",
    }
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    done = subprocess.run(shell, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("::error file=src/a.py,line=3,endLine=3,col=5,endColumn=25,title=torchport TP103")
    who = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    for words in (["init", "-q"], ["add", "src"], ["commit", "-q", "-m", "one"]):
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True)
    environment["BASE"] = "HEAD"
    done = subprocess.run(shell, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_the_action_installs_itself() -> None:
    steps = ACTION["runs"]["steps"]
    assert all(step.get("shell") == "bash" for step in steps if "run" in step)
    assert '"$GITHUB_ACTION_PATH"' in steps[1]["run"]
    assert not [step for step in steps if "${{" in step.get("run", "")], "an input in a script is code"
