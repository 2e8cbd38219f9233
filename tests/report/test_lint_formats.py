"""The formats of ``torchport lint``: what they say of one report, and whether the programs that read them take it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest

from torchport.catalog import load_rules
from torchport.model import Edit, FileResult, Finding, Problem
from torchport.report.findings import Report
from torchport.report.formats import FORMATS, STATISTICS, render, statistics
from torchport.report.rules import page
from torchport.report.text import Style

RULES = {rule.code: rule for rule in load_rules()}
ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((Path(__file__).parent / "data/sarif-schema-2.1.0.json").read_text(encoding="utf-8"))
MATCHER = json.loads((ROOT / ".github/torchport-matcher.json").read_text(encoding="utf-8"))
SOURCE = 'import torch\n\tx = f(y.cuda(), "é")\nsame()\nsame()\n\u6771 = y.cuda()\nm(\n  1)\n'


def finding(code: str, line: int, column: int, end: tuple[int, int] | None = None, **more: object) -> Finding:
    rule = RULES[code]
    end_line, end_column = end or (line, column + 8)
    made = Finding(
        code, rule.name, line, column, end_line, end_column, rule.summary, rule.effect, "same", rule.safety, rule.review
    )
    return made._replace(**more)  # type: ignore[arg-type]


EDITS = (Edit(0, 0, ""),)
CALL = finding("TP103", 2, 8, edits=EDITS, new="y.to(shim.device())")
TWINS = [finding("TP801", line, 1, reason="drop, or 100% pad", effect="slow") for line in (3, 4)]
WIDE = finding("TP103", 5, 5, edits=EDITS)
LONG = finding("TP901", 6, 1, (7, 5), reason="no\ncounterpart", perhaps=True)
NOTE = finding("TP521", 1, 1, reason="does nothing", effect="none")


@pytest.fixture
def report() -> Report:
    file = FileResult("pkg/a,b:c.py", left=[NOTE, CALL, *TWINS, WIDE, LONG], before=SOURCE.encode())
    bad = FileResult("bad.py", problems=[Problem("is not valid UTF-8", 2)])
    return Report(RULES, "portable", looked_at=["pkg/a,b:c.py", "bad.py", "c.py"], files=[bad, file], silenced=2)


def rendered(report: Report, name: str) -> str:
    return "\n".join(render(report, name, Style()))


def test_text_shows_the_line_and_a_caret(report: Report) -> None:
    blocks = rendered(report, "text").split("\n\n")
    assert blocks[1].splitlines() == [
        "pkg/a,b:c.py:2:8: error: TP103 cuda-method: `.cuda()` moves to an NVIDIA GPU",
        "  |",
        '2 | \tx = f(y.cuda(), "é")',
        "  | \t      ^^^^^^^^",
        "  = torchport migrate writes y.to(shim.device())",
    ]
    assert blocks[4].splitlines()[2:4] == ["5 | \u6771 = y.cuda()", "  |      ^^^^^^^^"]
    assert blocks[5].splitlines()[0].startswith("pkg/a,b:c.py:6:1: perhaps error: TP901 ")
    assert blocks[5].splitlines()[2:] == ["6 | m(", "  | ^^", "  = no counterpart"]
    assert blocks[6].splitlines() == [
        "not examined: bad.py:2: is not valid UTF-8",
        "Found 6 findings in 1 of 3 files",
        "  2 can be rewritten with `torchport migrate`",
        "Not examined: 1 file",
        "Silenced by comments and configuration: 2",
    ]


def test_text_cuts_a_long_line_around_the_finding() -> None:
    source = "x = [" + "1, " * 500 + "y.cuda()]\n"
    at = finding("TP103", 1, source.index("y.cuda") + 1, edits=EDITS)
    report = Report(
        RULES, "portable", looked_at=["a.py"], files=[FileResult("a.py", left=[at], before=source.encode())]
    )
    shown, caret = rendered(report, "text").splitlines()[2:4]
    assert len(shown) < 200
    assert shown[caret.index("^") :].startswith("y.cuda()")
    assert caret.count("^") == len("y.cuda()")


def test_every_line_of_concise_is_matched_by_the_problem_matcher(report: Report) -> None:
    pattern = MATCHER["problemMatcher"][0]["pattern"][0]
    lines = rendered(report, "concise").splitlines()
    matches = [re.match(pattern["regexp"], line) for line in lines if ": note: " not in line]
    assert len(matches) == 6
    assert all(matches)
    found = [tuple(m[pattern[key]] for key in ("file", "line", "column", "severity", "code")) for m in matches if m]
    assert found[0] == ("pkg/a,b:c.py", "2", "8", "error", "TP103")
    assert found[1] == ("pkg/a,b:c.py", "3", "1", "warning", "TP801")
    assert found[-1] == ("bad.py", "2", "1", "error", None)


def test_concise_is_one_line_each(report: Report) -> None:
    assert rendered(report, "concise").splitlines()[5] == (
        "pkg/a,b:c.py:6:1: error: TP901 perhaps: a library that runs on NVIDIA GPUs alone: no counterpart"
    )


def test_github_escapes_what_would_end_a_property_or_a_command(report: Report) -> None:
    lines = rendered(report, "github").splitlines()
    assert lines[1].startswith(
        "::error file=pkg/a%2Cb%3Ac.py,line=2,endLine=2,col=8,endColumn=16,title=torchport TP103 cuda-method::"
    )
    assert lines[2].endswith("drop, or 100%25 pad")
    assert "col=" not in lines[5]
    assert lines[0].startswith("::notice ")
    assert lines[6] == "::error file=bad.py,line=2,title=torchport::is not valid UTF-8"


def test_gitlab_names_each_finding_once_and_by_what_stays(report: Report) -> None:
    entries = json.loads(rendered(report, "gitlab"))
    assert len({entry["fingerprint"] for entry in entries}) == len(entries) == 7
    assert {entry["severity"] for entry in entries} <= {"info", "minor", "major", "critical", "blocker"}
    assert entries[1]["location"]["positions"]["begin"] == {"line": 2, "column": 8}
    moved = Report(RULES, "portable", looked_at=["x"], files=[FileResult(report.files[1].path)])
    moved.files[0].before = b"\n" + SOURCE.encode()
    moved.files[0].left = [f._replace(line=f.line + 1, end_line=f.end_line + 1) for f in report.files[1].left]
    after = {entry["fingerprint"] for entry in json.loads(rendered(moved, "gitlab"))}
    assert after == {entry["fingerprint"] for entry in entries if entry["check_name"] != "not-examined"}


def test_sarif_is_valid_and_holds_the_pages(report: Report) -> None:
    log = json.loads(rendered(report, "sarif"))
    jsonschema.Draft4Validator(SCHEMA).validate(log)
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    for rule in rules:
        assert rule["help"]["markdown"] == rule["help"]["text"] == "\n".join(page(RULES[rule["id"]]))
    assert run["results"][1]["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "pkg/a%2Cb%3Ac.py"},
        "region": {"startLine": 2, "startColumn": 8, "endLine": 2, "endColumn": 16},
    }
    assert [n["message"]["text"] for n in run["invocations"][0]["toolExecutionNotifications"]] == ["is not valid UTF-8"]
    assert run["invocations"][0]["exitCode"] == 1


def test_the_schema_refuses_what_is_wrong(report: Report) -> None:
    log = json.loads(rendered(report, "sarif"))
    log["runs"][0]["results"][0]["level"] = "fatal"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft4Validator(SCHEMA).validate(log)


def test_sarif_of_nothing_and_of_a_failure_is_valid() -> None:
    for report in (Report(RULES, "portable"), Report(RULES, "portable", refusal="uncommitted changes")):
        log = json.loads(rendered(report, "sarif"))
        jsonschema.Draft4Validator(SCHEMA).validate(log)
        assert log["runs"][0]["invocations"][0]["executionSuccessful"] is not bool(report.refusal)


def test_markdown_shows_code_and_never_ends_a_cell(report: Report) -> None:
    lines = rendered(report, "markdown").splitlines()
    assert lines[0] == "# torchport lint"
    rows = [line for line in lines if line.startswith("| pkg/")]
    assert len(rows) == 6
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 5 for row in rows)
    assert "`.cuda()` moves to an NVIDIA GPU" in rows[1]
    assert "- bad.py:2: is not valid UTF-8" in lines


def test_json_has_all_of_it(report: Report) -> None:
    data = json.loads(rendered(report, "json"))
    assert data["summary"]["findings"] == 6
    assert data["exit_status"] == 1
    call = data["files"][1]["findings"][1]
    assert [call[key] for key in ("code", "line", "severity", "fixed_by", "replacement")] == [
        "TP103",
        2,
        "error",
        "migrate",
        "y.to(shim.device())",
    ]
    assert data["files"][1]["findings"][5]["perhaps"] is True
    assert data["files"][0]["problems"] == [{"message": "is not valid UTF-8", "line": 2, "fatal": False}]


def test_statistics_count_by_rule_the_most_frequent_first(report: Report) -> None:
    rows = json.loads("\n".join(statistics.render(report, Style(), "json")))
    assert [(row["number"], row["code"]) for row in rows] == [(2, "TP103"), (2, "TP801"), (1, "TP521"), (1, "TP901")]
    assert rows[0]["fixed_by"] == "migrate"
    text = list(statistics.render(report, Style(), "text"))
    assert text[0].split() == ["2", "TP103", "cuda-method", "error", "migrate"]
    assert "| 2 | TP801 ragged-last-batch | warning |  |" in statistics.render(report, Style(), "markdown")


@pytest.mark.parametrize("name", FORMATS)
def test_each_format_can_say_nothing(name: str) -> None:
    assert set(STATISTICS) <= set(FORMATS)
    report = Report(RULES, "portable", looked_at=["a.py"])
    text = rendered(report, name)
    assert "TP1" not in text
    assert report.exit_status == 0


def test_exit_status() -> None:
    def status(**file: object) -> int:
        written = file.pop("written", True)
        result = FileResult("a.py", **file)  # type: ignore[arg-type]
        return Report(RULES, "portable", files=[result], written=written).exit_status  # type: ignore[arg-type]

    assert status() == 0
    assert status(left=[NOTE]) == 0
    assert status(left=[CALL]) == 1
    assert status(problems=[Problem("cannot be read")]) == 1
    assert status(problems=[Problem("cannot be written", fatal=True)], left=[CALL]) == 2
    assert status(applied=[CALL], after=b"") == 0
    assert status(applied=[CALL], after=b"", written=False) == 1
