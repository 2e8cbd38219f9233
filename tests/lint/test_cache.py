"""What was looked at once is not looked at again, as long as nothing that matters has changed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path

import pytest

from torchport import linting
from torchport.catalog import load_rules
from torchport.lint import cache
from torchport.lint.cache import Cache
from torchport.project.config import Config, FileRules
from torchport.report.findings import Report

CUDA = "import torch\n\nx = torch.ones(2).cuda()\n"
BAG = "from bags import Bag\n\n\ndef f(items):\n    return Bag(items).cuda()\n"
OWN_CLASS = "class Bag:\n    def cuda(self):\n        return self\n"
Run = Callable[..., Report]


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that worker processes get."""
    seen: list[str] = []
    real = linting.in_processes

    def noting(work: object, tasks: list[linting.Task], *rest: object) -> object:
        seen.extend(task.path for task in tasks)
        return real(work, tasks, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(linting, "in_processes", noting)
    return seen


def shown(report: Report) -> list[tuple[str, object]]:
    problems = [(path, problem) for path, problem in report.problems()]
    return [*report.findings(), *problems]


def test_a_second_run_looks_at_nothing_and_says_the_same(tmp_path: Path, run: Run, looked_at: list[str]) -> None:
    (tmp_path / "a.py").write_text(CUDA)
    (tmp_path / "b.py").write_text("import torch\nprint torch.cuda\n")
    (tmp_path / "c.py").write_text("x = 1  # torchport: ignore[TP103] gone\n")
    (tmp_path / "d.py").write_text(CUDA.rstrip() + "  # torchport: ignore[TP103] wanted\n")
    first = run()
    assert sorted(looked_at) == ["a.py", "b.py", "c.py", "d.py"]
    looked_at.clear()
    second = run()
    assert looked_at == []
    assert shown(second) == shown(first)
    assert len(shown(first)) == 3
    assert (second.examined, second.silenced, second.exit_status) == (first.examined, first.silenced, 1) == (4, 1, 1)


def test_a_file_that_changes_or_moves_is_looked_at_again(tmp_path: Path, run: Run, looked_at: list[str]) -> None:
    (tmp_path / "a.py").write_text(CUDA)
    (tmp_path / "b.py").write_text(CUDA + "# another\n")
    run()
    looked_at.clear()
    times = (tmp_path / "a.py").stat()
    (tmp_path / "a.py").write_text(CUDA.replace("2", "3"))
    os.utime(tmp_path / "a.py", ns=(times.st_atime_ns, times.st_mtime_ns))
    (tmp_path / "b.py").rename(tmp_path / "c.py")
    report = run()
    assert looked_at == ["a.py", "c.py"]
    assert [path for path, _ in report.findings()] == ["a.py", "c.py"]


def test_settings_have_results_of_their_own(tmp_path: Path, run: Run, looked_at: list[str]) -> None:
    (tmp_path / "a.py").write_text(CUDA)
    rules = load_rules()
    settings: list[dict[str, object]] = [
        {},
        {"target": "tpu"},
        {"unsafe": True},
        {"rules": tuple(rule for rule in rules if rule.code != "TP205"), "every": rules},
        {"off": FileRules(Config(root=str(tmp_path)), ((("a.py",), frozenset({"TP103"})),))},
    ]
    for options in settings:
        run(**options)
        assert looked_at.pop() == "a.py"
        run(**options)
        assert looked_at == []
    assert not list(run(**settings[4]).findings())


def test_results_hang_on_what_other_files_say(tmp_path: Path, run: Run, looked_at: list[str]) -> None:
    (tmp_path / "a.py").write_text(BAG)
    (before,) = [finding for _, finding in run().findings()]
    assert before.edits
    (tmp_path / "bags.py").write_text(OWN_CLASS)
    after = [finding for path, finding in run().findings() if path == "a.py"]
    assert looked_at.count("a.py") == 2
    assert "class Bag" in after[0].reason


def test_other_code_of_torchport_means_other_results(
    tmp_path: Path, run: Run, looked_at: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.py").write_text(CUDA)
    run()
    monkeypatch.setattr(linting, "__version__", "99")
    run()
    assert looked_at == ["a.py", "a.py"]


def tampered(path: Path) -> bytes:
    """A shard whose sum is right and whose entries are wrong."""
    row = ["TP999", *range(13)]
    wrong = [[[row], [], 0], [[["TP103", "x"]], "no", {}], 7]
    keys = json.loads(path.read_bytes().partition(b"\n")[2])
    body = json.dumps({key: wrong[number % 3] for number, key in enumerate(keys)})
    return blake2b(body.encode(), digest_size=16).hexdigest().encode() + b"\n" + body.encode()


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.read_bytes()[:-5],
        lambda path: path.read_bytes().replace(b"cuda", b"CUDA"),
        lambda path: b"",
        lambda path: os.urandom(100),
        tampered,
    ],
    ids=["cut", "changed", "empty", "noise", "wrong entries"],
)
def test_what_is_damaged_is_not_believed(
    tmp_path: Path, run: Run, looked_at: list[str], damage: Callable[[Path], bytes]
) -> None:
    (tmp_path / "a.py").write_text(CUDA)
    first = run()
    shards = list((tmp_path / ".cache").glob("*/*.json"))
    assert shards
    for shard in shards:
        shard.write_bytes(damage(shard))
    assert shown(run()) == shown(first)
    assert looked_at == ["a.py", "a.py"]
    assert shown(run()) == shown(first)
    assert len(looked_at) == 2


def test_the_folder_ignores_itself_and_may_be_deleted(tmp_path: Path, run: Run) -> None:
    import shutil

    (tmp_path / "a.py").write_text(CUDA)
    run()
    assert (tmp_path / ".cache/.gitignore").read_text() == "*\n"
    assert (tmp_path / ".cache/CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55")
    assert not list((tmp_path / ".cache").rglob("*.tmp"))
    shutil.rmtree(tmp_path / ".cache")
    assert len(list(run().findings())) == 1


def test_a_folder_that_cannot_be_made_is_no_reason_to_fail(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a.py").write_text(CUDA)
    (tmp_path / ".cache").write_text("a file")
    assert len(list(run().findings())) == 1
    assert (tmp_path / ".cache").read_text() == "a file"


def test_fixing_does_without(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a.py").write_text(CUDA)
    run(fix=True, allow_dirty=True)
    assert not (tmp_path / ".cache").exists()


def test_old_entries_and_old_settings_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "LARGEST", 3)
    monkeypatch.setattr(cache, "KEPT", 2)
    first = Cache(tmp_path, "one")
    for key in ("a1", "a2", "a3"):
        first.put(key, [key])
    first.save()
    second = Cache(tmp_path, "one")
    assert second.get("a1") == ["a1"]
    second.put("a4", [4])
    second.save()
    third = Cache(tmp_path, "one")
    assert [third.get(key) for key in ("a1", "a2", "a3", "a4")] == [["a1"], None, ["a3"], [4]]
    for name in ("two", "three"):
        other = Cache(tmp_path, name)
        other.put("a1", [])
        other.save()
    assert sorted(entry.name for entry in tmp_path.iterdir() if entry.is_dir()) == ["three", "two"]


def test_two_runs_at_once_leave_whole_files(tmp_path: Path, run: Run) -> None:
    one, two = Cache(tmp_path, "s"), Cache(tmp_path, "s")
    one.put("a1", [1])
    two.put("a2", [2])
    one.save()
    two.save()
    assert Cache(tmp_path, "s").get("a2") == [2]
