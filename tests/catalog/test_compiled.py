"""The rules are the same from TOML and from what is kept of it; what does not fit is not used."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from torchport.catalog import compiled, load
from torchport.catalog.load import CatalogError, load_rules


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the rules are kept in the test."""
    monkeypatch.setattr(compiled, "FOLDER", tmp_path / "cache")
    monkeypatch.setattr(compiled, "FILE", tmp_path / "cache/rules.bin")
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    return tmp_path / "cache/rules.bin"


def no_toml(path: Path) -> list[object]:
    raise AssertionError(f"{path} is read again")


def test_the_kept_rules_are_the_rules(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load_rules()
    assert kept.exists()
    monkeypatch.setattr(load, "read_file", no_toml)
    assert load_rules() == first
    assert [type(rule.triggers) for rule in load_rules()] == [tuple] * len(first)


def test_other_files_are_other_rules(kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = load.rules_folder()
    folder = tmp_path / "rules"
    folder.mkdir()
    for path in Path(real).glob("*.toml"):
        (folder / path.name).write_bytes(path.read_bytes())
    monkeypatch.setattr(load, "rules_folder", lambda: folder)
    first = load_rules()
    text = (folder / "loading.toml").read_text()
    (folder / "loading.toml").write_text(text.replace('name = "pinned-memory"', 'name = "pinned-again"'))
    assert {rule.name for rule in load_rules()} - {rule.name for rule in first} == {"pinned-again"}
    (folder / "loading.toml").write_text("[[rule]]\n")
    with pytest.raises(CatalogError, match=r"loading\.toml:1"):
        load_rules()


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-9], lambda data: data[:50] + b"x" + data[51:], lambda data: b""]
)
def test_what_is_damaged_is_made_anew(kept: Path, damage: object) -> None:
    first = load_rules()
    kept.write_bytes(damage(kept.read_bytes()))  # type: ignore[operator]
    assert load_rules() == first
    assert compiled.kept(compiled.signature(sorted(map(str, Path(load.rules_folder()).glob("*.toml"))))) is not None


def test_nothing_is_kept_where_python_keeps_nothing(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    load_rules()
    assert not kept.exists()


def test_a_folder_that_cannot_be_written_is_no_reason_to_fail(kept: Path) -> None:
    kept.parent.write_text("a file")
    assert load_rules()
