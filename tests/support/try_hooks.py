"""The hooks of this repository with the real pre-commit: ``python try_hooks.py FOLDER``, which must not exist yet.

pre-commit clones this repository at its last commit, installs it, and runs the hooks on a small repository in FOLDER.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CUDA = "import torch\n\n\ndef f(x: torch.Tensor) -> torch.Tensor:\n    return x.cuda()\n"
SILENCED = CUDA.replace(".cuda()", ".cuda()  # torchport: ignore[TP103] for GPUs alone")
YAML = "device: cuda\n"
CONFIG = """
repos:
  - repo: {root}
    rev: {rev}
    hooks:
      - id: torchport-lint
      - id: torchport-lint-fix
      - id: torchport-check
"""


def main(folder: Path) -> None:
    """Raises AssertionError where a hook does not do what it says."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    rev = git(ROOT, "rev-parse", "HEAD").strip()
    (folder / ".pre-commit-config.yaml").write_text(CONFIG.format(root=ROOT, rev=rev))
    (folder / "a.py").write_text(CUDA)
    (folder / "a.yaml").write_text(YAML)
    git(folder, "add", "-A")
    status, said = run(folder)
    assert status == 1, said
    assert said.count("Failed") == 3, said
    assert "a.py:5:12: error: TP103 cuda-method" in said, said
    assert "a.yaml:1:9: error: TP118 device-in-settings" in said, said
    assert (folder / "a.py").read_text() == CUDA
    (folder / "a.py").write_text(SILENCED)
    (folder / "a.yaml").write_text("# torchport: ignore[TP118] for GPUs alone\n" + YAML)
    git(folder, "add", "-A")
    status, said = run(folder)
    assert status == 0, said
    assert said.count("Passed") == 3, said
    assert git(folder, "status", "--porcelain", "--untracked-files=all").split("\n")[3:] == [""], "a hook left files"
    print("3 hooks fail where something is found and pass where nothing is")


def run(folder: Path) -> tuple[int, str]:
    """Exit status and output of all hooks on all files."""
    environment = os.environ | {"PRE_COMMIT_HOME": str(folder.parent / "pre-commit"), "PRE_COMMIT_COLOR": "never"}
    command = [sys.executable, "-m", "pre_commit", "run", "--all-files"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main(Path(sys.argv[1]))
