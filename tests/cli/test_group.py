"""The group of commands, the catalogue's two commands, and what start-up costs."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from real_command import Torchport

from torchport import __version__
from torchport.cli import choose
from torchport.cli.group import group
from torchport.cli.start import COMMANDS
from torchport.model import Rule

START_UP_LIMIT = 0.06
"""Seconds of CPU for ``torchport --version``."""
HEAVY = {
    "click",
    "libcst",
    "dataclasses",
    "typing",
    "concurrent.futures",
    "multiprocessing",
    "tomllib",
    "asyncio",
    "ast",
}
RULES = choose.all_rules()


def modules_after(statement: str, folder: Path) -> set[str]:
    program = f"import sys; sys.argv = ['torchport', '--version']; {statement}; print(*sys.modules, file=sys.stderr)"
    environment = {"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": ""}
    done = subprocess.run(
        [sys.executable, "-S", "-c", program], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    return set(done.stderr.split())


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_version(command: Torchport, option: str) -> None:
    result = command(option)
    assert (result.returncode, result.stdout) == (0, f"torchport {__version__}\n")
    assert CliRunner().invoke(group, [option]).output == result.stdout


def test_version_imports_next_to_nothing(tmp_path: Path) -> None:
    assert modules_after("from torchport.cli import main; main()", tmp_path).isdisjoint(HEAVY)


def test_version_takes_little_cpu(tmp_path: Path) -> None:
    """The least of several runs: the machine may be busy, but it cannot make a run cheaper than it is."""
    program = "import sys; sys.argv = ['torchport', '--version']; from torchport.cli import main; main()"
    environment = {"PYTHONPATH": str(Path(__file__).parents[2])}
    spent = []
    for _ in range(7):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=environment, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(spent) <= START_UP_LIMIT


def test_nothing_that_rewrites_is_imported_for_files_without_a_trigger_word(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n" * 1000)
    run = "from torchport.pipeline import Options, migrate; from torchport.catalog import load_rules"
    loaded = modules_after(
        f"{run}; assert migrate(['a.py'], load_rules(), Options(mode='check')).examined == 1", tmp_path
    )
    assert loaded.isdisjoint(
        {"libcst", "torchport.rewrite", "click", "torch", "multiprocessing", "concurrent.futures", "subprocess"}
    )


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], *([name, "--help"] for name in COMMANDS)])
def test_help(arguments: list[str]) -> None:
    result = CliRunner().invoke(group, arguments)
    assert result.exit_code == 0
    assert "Usage: " in result.output


def test_every_command_is_listed_with_its_help() -> None:
    output = CliRunner().invoke(group, ["--help"]).output
    assert all(f"\n  {name} " in output for name in COMMANDS)


def test_no_command_and_an_unknown_one(command: Torchport) -> None:
    assert command().returncode == 2
    result = command("migrat", ".")
    assert result.returncode == 2
    assert result.stderr.splitlines()[-1] == "Error: no such command 'migrat'; did you mean 'migrate'?"
    assert command("--nope").returncode == 2


def test_rules_lists_all() -> None:
    lines = CliRunner().invoke(group, ["rules"]).output.splitlines()
    assert [line.split()[:2] for line in lines] == [[rule.code, rule.name] for rule in RULES]
    chosen = CliRunner().invoke(group, ["rules", "--select", "TP2"]).output.splitlines()
    assert [line.split()[0] for line in chosen] == [rule.code for rule in RULES if rule.code.startswith("TP2")]


def test_rules_as_json() -> None:
    data = json.loads(CliRunner().invoke(group, ["rules", "--output-format", "json"]).output)
    assert [entry["code"] for entry in data] == [rule.code for rule in RULES]
    assert all(entry["summary"] and entry["support"] for entry in data)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_each_rule_is_explained(rule: Rule) -> None:
    result = CliRunner().invoke(group, ["rule", rule.code])
    assert result.exit_code == 0
    page = (Path(__file__).parents[2] / f"docs/rules/{rule.code}.md").read_text(encoding="utf-8")
    assert page.partition("\n\n")[2] == result.output
    for text in (rule.code, rule.name, *rule.why.strip().splitlines(), *rule.references):
        assert text in result.output


def test_a_rule_is_found_by_name_and_in_small_letters() -> None:
    outputs = {CliRunner().invoke(group, ["rule", word]).output for word in ("TP103", "tp103", "cuda-method")}
    assert len(outputs) == 1


def test_one_rule_as_json() -> None:
    assert json.loads(CliRunner().invoke(group, ["rule", "TP103", "--output-format", "json"]).output)["code"] == "TP103"


def test_an_unknown_rule(command: Torchport) -> None:
    result = command("rule", "cuda-metod")
    assert result.returncode == 2
    assert result.stderr.splitlines()[-1] == "Error: no rule is called 'cuda-metod'; did you mean cuda-method?"
    assert (
        command("rule", "xyz").stderr.splitlines()[-1] == "Error: no rule is called 'xyz': `torchport rules` lists all"
    )


def test_a_broken_catalogue_is_one_line(tmp_path: Path) -> None:
    from torchport.catalog import load

    package = Path(load.__file__).parents[1]
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules/bad.toml").write_text("[[rule]]\ncode = 'TP101'\n")
    script = (
        "import sys, pathlib; from torchport.catalog import load; load.rules_folder = lambda: pathlib.Path('rules');"
        "from torchport.cli.start import run; sys.exit(run(['rules']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={"PYTHONPATH": str(package.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: bad.toml:1: TP101: ")


NO_SPACE = Path("/dev/full")


@pytest.mark.skipif(not NO_SPACE.exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("argument", ["--version", "rules"])
def test_output_that_cannot_be_written_fails_in_one_line(argument: str) -> None:
    with NO_SPACE.open("w") as full:
        command = [sys.executable, "-m", "torchport", argument]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "error: cannot go on: [Errno 28] No space left on device\n")


@pytest.mark.parametrize("argument", ["--version", "rules"])
def test_a_closed_output_is_no_mistake(argument: str) -> None:
    command = f"{sys.executable} -m torchport {argument} >&-"
    done = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_profiler_sees_the_end_of_a_run() -> None:
    program = "import sys; from torchport.cli import console; sys.argv = ['torchport', '-V']; "
    program += "sys.setprofile(lambda *_: None); import atexit; atexit.register(print, 'end'); console()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[1:]) == (0, ["end"])
