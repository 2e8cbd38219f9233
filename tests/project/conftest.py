from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from trees import Git


@pytest.fixture
def small_disk(tmp_path: Path) -> list[str]:
    """Start of a command that sees ``tmp_path`` as an empty disk of 64 KiB."""
    command = ["unshare", "-rm", "sh", "-c", f'mount -t tmpfs -o size=64k none "{tmp_path}" && exec "$@"', "sh"]
    if subprocess.run([*command, "true"], capture_output=True, check=False).returncode:
        pytest.skip("mounting a file system is not permitted here")
    return command


@pytest.fixture
def git(tmp_path: Path) -> Git:
    """Run git in ``tmp_path``, a new repository."""

    def run(*arguments: str, folder: Path = tmp_path) -> str:
        who = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
        command = ["git", *who, *arguments]
        return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout

    run("init", "-q")
    return run
