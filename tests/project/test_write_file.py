"""A file is written whole or not at all, and stays what it was in every other way."""

from __future__ import annotations

import os
import resource
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from torchport.project.write import write_file


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_replaces_the_content_and_keeps_the_mode(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(b"old\r\n")
    file.chmod(0o751)
    assert write_file(str(file), b"old\r\n", b"new\r\n") is None
    assert file.read_bytes() == b"new\r\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o751
    assert names(tmp_path) == ["a.py"]


def test_a_read_only_file_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(b"old")
    file.chmod(0o444)
    problem = write_file(str(file), b"old", b"new")
    assert problem is not None
    assert problem.fatal
    assert problem.message == "is read-only: left as it was; make it writable and run again"
    assert file.read_bytes() == b"old"
    assert stat.S_IMODE(file.stat().st_mode) == 0o444
    assert names(tmp_path) == ["a.py"]


def test_a_file_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(b"edited by hand")
    problem = write_file(str(file), b"old", b"new")
    assert problem is not None
    assert "has changed since it was read" in problem.message
    assert file.read_bytes() == b"edited by hand"
    assert names(tmp_path) == ["a.py"]


def test_a_file_gone_meanwhile_stays_gone(tmp_path: Path) -> None:
    problem = write_file(str(tmp_path / "a.py"), b"old", b"new")
    assert problem is not None
    assert "cannot be written (No such file or directory)" in problem.message
    assert names(tmp_path) == []


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.py").write_bytes(b"old")
    (tmp_path / "link.py").symlink_to("real.py")
    assert write_file(str(tmp_path / "link.py"), b"old", b"new") is None
    assert (tmp_path / "link.py").is_symlink()
    assert (tmp_path / "real.py").read_bytes() == b"new"


def _write_in_subprocess(file: Path, size: int, preexec: object = None) -> subprocess.CompletedProcess[str]:
    program = (
        "import sys; from torchport.project.write import write_file;"
        "print(write_file(sys.argv[1], b'old', b'n' * int(sys.argv[2])).message)"
    )
    command = [sys.executable, "-c", program, str(file), str(size)]
    return subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=preexec)  # type: ignore[arg-type]


def test_a_limit_on_file_size_leaves_the_original(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(b"old")
    done = _write_in_subprocess(file, 100_000, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
    assert done.stdout == "cannot be written (File too large): left as it was; solve that and run again\n"
    assert done.stderr == ""
    assert file.read_bytes() == b"old"
    assert names(tmp_path) == ["a.py"]


def test_a_full_disk_leaves_the_original(tmp_path: Path, small_disk: list[str]) -> None:
    program = (
        "import sys, pathlib; from torchport.project.write import write_file;"
        "f = pathlib.Path(sys.argv[1]) / 'a.py'; f.write_bytes(b'old');"
        "print(write_file(str(f), b'old', b'n' * 1_000_000).message, f.read_bytes(), len(list(f.parent.iterdir())))"
    )
    done = subprocess.run(
        [*small_disk, sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=False
    )
    said = "cannot be written (No space left on device): left as it was; solve that and run again b'old' 1\n"
    assert (done.stdout, done.stderr) == (said, "")


def test_an_interrupt_leaves_the_original(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(b"old")

    def interrupt(descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_file(str(file), b"old", b"new")
    assert file.read_bytes() == b"old"
    assert names(tmp_path) == ["a.py"]


def test_the_owner_stays(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can write another user's file")
    file = tmp_path / "a.py"
    file.write_bytes(b"old")
    os.chown(file, 4321, 4321)
    assert write_file(str(file), b"old", b"new") is None
    assert (file.stat().st_uid, file.stat().st_gid) == (4321, 4321)
