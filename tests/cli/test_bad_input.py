"""Bad input gives one clear line and the right exit status; nothing is lost, and the other files are done."""

from __future__ import annotations

import codecs
import ctypes
import os
import resource
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from real_command import Result, Torchport

import torchport
from torchport.cli.group import group

GOOD = "import torch\n\nx = torch.ones(2).cuda()\n"
DONE = "import torch\nfrom torchport import shim\n\nx = torch.ones(2).to(shim.device())\n"
CUDA = b"import torch\nx = torch.ones(2).cuda()\n"
MIGRATED = b"import torch\nfrom torchport import shim\nx = torch.ones(2).to(shim.device())\n"

REFUSED = {
    "invalid utf-8": (CUDA + b"y = '\xe9'\n", "bad.py:3: is not valid UTF-8 at byte"),
    "unknown cookie": (b"# coding: utf-9\n" + CUDA, "bad.py:1: names an unknown encoding, 'utf-9'"),
    "nul byte": (CUDA + b"\0", "bad.py:3: has a NUL byte at byte"),
    "utf-16": (CUDA.decode().encode("utf-16"), "bad.py:1: is UTF-16"),
    "carriage returns": (CUDA.replace(b"\n", b"\r"), "bad.py:1: has a carriage return"),
    "cr, crlf and lf": (CUDA + b"a = 1\r\nb = 2\rc = 3\n", "bad.py:4: has a carriage return"),
    "python 2": (CUDA + b"print 'loss', x\n", "bad.py:3: not readable as Python 3."),
    "conflict markers": (CUDA + b"<<<<<<< ours\ny = 1\n=======\ny = 2\n>>>>>>> theirs\n", "bad.py:3: not readable as"),
    "20,000 nested brackets": (CUDA + b"y = " + b"(" * 20_000 + b")" * 20_000 + b"\n", "bad.py:3: not readable as"),
    "20,000 signs": (CUDA + b"y = " + b"-" * 20_000 + b"1\n", "bad.py: too deeply nested"),
    "a chain of 20,000 attributes": (CUDA + b"y = x" + b".a" * 20_000 + b"\n", "bad.py: too deeply nested"),
    "too large": (CUDA + b"#" * 5_100_000, "bad.py: is too large (5.1 MB)"),
}

TAKEN = {
    "byte-order mark": (codecs.BOM_UTF8 + CUDA, codecs.BOM_UTF8 + MIGRATED),
    "crlf": (CUDA.replace(b"\n", b"\r\n"), MIGRATED.replace(b"\n", b"\r\n")),
    "byte-order mark and crlf": (
        codecs.BOM_UTF8 + CUDA.replace(b"\n", b"\r\n"),
        codecs.BOM_UTF8 + MIGRATED.replace(b"\n", b"\r\n"),
    ),
    "lf and crlf": (CUDA + b"a = 1\r\nb = 2\n", MIGRATED + b"a = 1\r\nb = 2\n"),
    "form feeds": (CUDA + b"\x0c\n\x0cy = 1\n", MIGRATED + b"\x0c\n\x0cy = 1\n"),
    "latin-1 cookie": (
        b"# coding: latin-1\n" + CUDA + b"y = '\xe9'\n",
        b"# coding: latin-1\n" + MIGRATED + b"y = '\xe9'\n",
    ),
    "no newline at the end": (CUDA.rstrip(), MIGRATED.rstrip()),
}


def lines_about(result: Result, name: str) -> list[str]:
    return [line for line in (result.stdout + result.stderr).splitlines() if name in line]


def check(result: Result, status: int, said: str, *, name: str = "bad.py") -> None:
    assert result.returncode == status, result.stdout + result.stderr
    (line,) = lines_about(result, name)
    assert said in line
    assert "Traceback" not in result.stderr


def no_leftovers(folder: Path) -> bool:
    return not [entry for entry in folder.rglob("*") if entry.name.endswith(".tmp")]


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def good(tmp_path: Path) -> Path:
    file = tmp_path / "good.py"
    file.write_text(GOOD)
    return file


def in_process(*arguments: str) -> Result:
    """The command without a new interpreter; the files are examined in processes all the same."""
    result = CliRunner().invoke(group, arguments)
    return Result(arguments, result.exit_code, result.output, "")


@pytest.mark.parametrize(("data", "said"), REFUSED.values(), ids=REFUSED.keys())
def test_a_file_that_cannot_be_read(tmp_path: Path, good: Path, data: bytes, said: str) -> None:
    (tmp_path / "bad.py").write_bytes(data)
    check(in_process("migrate", "."), 1, said)
    assert (tmp_path / "bad.py").read_bytes() == data
    assert good.read_text() == DONE


@pytest.mark.parametrize(("data", "after"), TAKEN.values(), ids=TAKEN.keys())
def test_a_file_that_is_unusual(tmp_path: Path, data: bytes, after: bytes) -> None:
    (tmp_path / "odd.py").write_bytes(data)
    result = in_process("migrate", ".")
    assert (result.returncode, (tmp_path / "odd.py").read_bytes()) == (0, after)


def test_all_of_them_at_once(tmp_path: Path, good: Path, command: Torchport) -> None:
    for number, (data, _) in enumerate(REFUSED.values()):
        (tmp_path / f"bad{number:02}_bad.py").write_bytes(data)
    for number, (data, _) in enumerate(TAKEN.values()):
        (tmp_path / f"odd{number:02}.py").write_bytes(data)
    result = command("migrate", ".", "-j", "2")
    assert result.returncode == 1
    for number, (data, said) in enumerate(REFUSED.values()):
        (line,) = lines_about(result, f"bad{number:02}_bad.py")[:1]
        assert line.startswith(f"bad{number:02}_{said}")
        assert (tmp_path / f"bad{number:02}_bad.py").read_bytes() == data
    for number, (_, after) in enumerate(TAKEN.values()):
        assert (tmp_path / f"odd{number:02}.py").read_bytes() == after
    assert good.read_text() == DONE


def test_an_empty_file(tmp_path: Path, command: Torchport) -> None:
    (tmp_path / "empty.py").touch()
    result = command("migrate", ".")
    assert (result.returncode, result.stdout, result.stderr) == (0, "Nothing to rewrite in 1 file\n", "")
    assert (tmp_path / "empty.py").read_bytes() == b""


def _obey_permissions() -> None:
    """Root reads every file; without these two capabilities it obeys the mode bits like anyone else."""
    if os.geteuid() == 0:
        drop_from_bounding_set, override, read_search = 24, 1, 2
        libc = ctypes.CDLL(None)
        assert libc.prctl(drop_from_bounding_set, override, 0, 0, 0) == 0
        assert libc.prctl(drop_from_bounding_set, read_search, 0, 0, 0) == 0


def test_an_unreadable_file(tmp_path: Path, good: Path, command: Torchport) -> None:
    (tmp_path / "bad.py").write_bytes(CUDA)
    (tmp_path / "bad.py").chmod(0)
    check(command("migrate", ".", preexec=_obey_permissions), 1, "bad.py: cannot be read (Permission denied)")
    assert good.read_text() == DONE


def test_an_unreadable_folder(tmp_path: Path, good: Path, command: Torchport) -> None:
    (tmp_path / "bad").mkdir(mode=0)
    check(command("migrate", ".", preexec=_obey_permissions), 1, "cannot be listed (Permission denied)", name="bad")
    assert good.read_text() == DONE


def test_a_folder_that_cannot_be_written_to(tmp_path: Path, good: Path, command: Torchport) -> None:
    folder = tmp_path / "sub"
    folder.mkdir()
    (folder / "bad.py").write_bytes(CUDA)
    folder.chmod(0o555)
    check(command("migrate", ".", preexec=_obey_permissions), 2, "bad.py: cannot be written (Permission denied)")
    assert (folder / "bad.py").read_bytes() == CUDA
    assert good.read_text() == DONE
    folder.chmod(0o755)


def test_a_read_only_file(tmp_path: Path, good: Path, command: Torchport) -> None:
    bad = tmp_path / "bad.py"
    bad.write_bytes(CUDA)
    bad.chmod(0o444)
    check(command("migrate", "."), 2, "error: bad.py: is read-only: left as it was; make it writable and run again")
    assert bad.read_bytes() == CUDA
    assert stat.S_IMODE(bad.stat().st_mode) == 0o444
    assert good.read_text() == DONE
    assert no_leftovers(tmp_path)


def test_a_link_out_of_the_tree(tmp_path: Path, command: Torchport) -> None:
    tree, outside = tmp_path / "tree", tmp_path / "outside.py"
    tree.mkdir()
    (tree / "good.py").write_text(GOOD)
    outside.write_bytes(CUDA)
    (tree / "bad.py").symlink_to("../outside.py")
    check(command("migrate", "tree"), 1, "tree/bad.py: is a link out of its folder")
    assert outside.read_bytes() == CUDA
    assert (tree / "bad.py").is_symlink()
    assert (tree / "good.py").read_text() == DONE


def test_a_path_that_does_not_exist(good: Path, command: Torchport) -> None:
    check(command("migrate", "bad.py", "good.py"), 2, "error: bad.py: does not exist: expected a file or a folder")
    assert good.read_text() == DONE


def test_only_a_path_that_does_not_exist(command: Torchport) -> None:
    result = command("migrate", "bad.py")
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr == "error: bad.py: does not exist: expected a file or a folder\n"


def test_no_path_at_all(command: Torchport) -> None:
    check(command("migrate"), 2, "Error: Missing argument 'PATH...'", name="Error:")


def test_a_folder_with_no_python(tmp_path: Path, command: Torchport) -> None:
    (tmp_path / "notes.txt").write_text("cuda")
    result = command("migrate", ".")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "note: .: no Python file here\n")


def test_a_limit_on_file_size(tmp_path: Path, good: Path, command: Torchport) -> None:
    padded = CUDA + b"#" * 50_000
    (tmp_path / "bad.py").write_bytes(padded)
    result = command("migrate", ".", preexec=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)))
    check(result, 2, "error: bad.py: cannot be written (File too large): left as it was")
    assert (tmp_path / "bad.py").read_bytes() == padded
    assert good.read_text() == DONE
    assert no_leftovers(tmp_path)


def test_a_full_disk(tmp_path: Path, command: Torchport) -> None:
    """On a real disk of 64 KiB: the large file does not fit a second time, the small one does."""
    script = (
        'mount -t tmpfs -o size=64k none . && cd . && cd "$PWD" && printf \'%s\' "$GOOD" > good.py'
        " && { printf '%s' \"$GOOD\"; head -c 40000 /dev/zero | tr '\\0' '#'; } > bad.py && cp bad.py /tmp/$$.bad"
        ' && "$@"; status=$?; cmp bad.py /tmp/$$.bad && rm /tmp/$$.bad && cat good.py && ls -A && exit $status'
    )
    before = ("unshare", "-rm", "sh", "-c", script, "sh")
    if subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"], check=False).returncode:
        pytest.skip("mounting a file system is not permitted here")
    result = command("migrate", ".", before=before, GOOD=GOOD)
    assert result.returncode == 2
    (line,) = [line for line in result.stderr.splitlines() if "bad.py" in line]
    assert "bad.py: cannot be written (No space left on device): left as it was" in line
    assert result.stdout.endswith(DONE + "bad.py\ngood.py\n")


def test_an_interrupt(tmp_path: Path) -> None:
    """Ctrl-C goes to every process of the group, workers included."""
    for number in range(200):
        (tmp_path / f"f{number}.py").write_text(GOOD * 40)
    argv = [sys.executable, "-m", "torchport", "migrate", ".", "-j", "2"]
    environment = os.environ | {"PYTHONPATH": str(Path(torchport.__file__).parents[1])}
    with subprocess.Popen(
        argv,
        cwd=tmp_path,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a job in a shell's background ignores it
    ) as process:
        workers = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        while len(workers.read_text().split()) < 2:
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate()
    assert (process.returncode, said) == (2, "error: interrupted; no file is half written\n")
    assert {file.read_text() for file in tmp_path.iterdir()} == {GOOD * 40}
