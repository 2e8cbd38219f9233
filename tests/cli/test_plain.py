"""A command line that is read without click means what click says it means."""

from __future__ import annotations

import random
from pathlib import Path

import click
import pytest

from torchport.cli.lint import command as lint
from torchport.cli.migrate import command as migrate
from torchport.cli.options import by_click
from torchport.cli.plain import PlainCommand

LINES = 3000
VALUES = ("text", "json", "tpu", "2", "0", "x", "TP1,TP2", "-", "-x", "", "--", "+3", "\uff12", "unreadable")


def words_for(command: PlainCommand, random: random.Random) -> list[str]:
    """A command line of options and values, some of them wrong."""
    words: list[str] = []
    for _ in range(random.randrange(5)):
        option = random.choice(command.options)
        name, value = random.choice(option.names), random.choice([*VALUES, *option.choices])
        ways = [[name], [name, value], [f"{name}={value}"], [name + value], [name[:-1], value]]
        words += random.choices(ways, [8, 8, 8, 1, 1] if option.kind != "flag" else [20, 1, 1, 1, 1])[0]
        if random.random() < 0.5:
            words.append(random.choice(["a.py", "b", *VALUES]))
    return [*words, "a.py"] if random.random() < 0.7 else words


@pytest.mark.parametrize("command", [migrate, lint], ids=lambda command: command.name)
def test_what_is_read_is_what_click_reads(
    command: PlainCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TORCHPORT_CACHE_DIR", raising=False)
    Path("unreadable").write_text("")
    Path("unreadable").chmod(0)
    made = random.Random(1)
    theirs = by_click(command)
    read = 0
    for _ in range(LINES):
        words = words_for(command, made)
        ours = command.read(words)
        if ours is None:
            continue
        read += 1
        paths, values = ours
        with theirs.make_context(command.name, list(words)) as context:
            assert context.params == {"paths": paths, **values}, words
    assert read > LINES / 10


@pytest.mark.parametrize(
    "line",
    [
        "a.py",
        "--check a.py b",
        "--diff --target tpu --select TP1 --select=TP2,TP3 -j 4 a.py",
        "a.py --output-format=json -v",
        "--config pyproject.toml .",
    ],
)
def test_usual_lines_do_without_click(line: str) -> None:
    assert migrate.read(line.split()) is not None


@pytest.mark.parametrize(
    "line", ["", "--help", "-h a.py", "--nope a.py", "-vj2 a.py", "-j2 a.py", "-- a.py", "- a.py", "-j 0 a.py", "-j"]
)
def test_others_are_left_to_click(line: str) -> None:
    assert migrate.read(line.split()) is None


def test_a_value_from_the_environment_is_left_to_click(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHPORT_CACHE_DIR", "cache")
    assert lint.read(["a.py"]) is None
    assert lint.read(["--cache-dir", "other", "a.py"]) is not None
    with by_click(lint).make_context("lint", ["a.py"]) as context:
        assert isinstance(context, click.Context)
        assert context.params["cache_dir"] == "cache"
