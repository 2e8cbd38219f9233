"""Passes, groups, checks: what the engine does whatever the rules are."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from torchport.catalog import for_target, load_rules
from torchport.catalog.prefilter import Prefilter
from torchport.model import Edit
from torchport.rewrite import Migrator, Outcome, migrate
from torchport.rewrite.text import Origin, Text, minimal, overlap, splice


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("x = 1\n", id="no trigger"),
        pytest.param("# torch.cuda.is_available()\n", id="a comment alone"),
        pytest.param('"""cuda"""\n', id="a docstring alone"),
        pytest.param('print("needs cuda")\n', id="a message"),
    ],
)
def test_nothing_to_do(text: str, migrate: Callable[..., Outcome]) -> None:
    outcome = migrate(text)
    assert not any(outcome)


def test_calls_inside_calls_are_all_rewritten(migrate: Callable[..., Outcome]) -> None:
    text = (
        'import torch\ny = f(g(torch.ones(1).cuda()).cuda(torch.device("cuda:1")), torch.cuda.device_count()).cuda()\n'
    )
    assert migrate(text).text == (
        "import torch\nfrom torchport import shim\n"
        "y = f(g(torch.ones(1).to(shim.device())).to(shim.device(1)), shim.device_count()).to(shim.device())\n"
    )


def test_lines_of_findings_are_those_of_the_file_before(migrate: Callable[..., Outcome]) -> None:
    outcome = migrate("import torch\nx = torch.ones(1).cuda()\ny = x.half()\n")
    assert [(f.line, f.column) for f in outcome.applied] == [(2, 5)]
    assert [(f.line, f.column) for f in outcome.left] == [(3, 5)]


def test_places_in_the_new_text_are_known(migrate: Callable[..., Outcome]) -> None:
    outcome = migrate(
        "import torch\n"
        "def a(x): e = x.cuda(); return e.is_cuda, x.half()\n"
        'def f(device="cuda"):\n'
        '    if device.strip("cuda"): return torch.ones(1).cuda().half()\n'
    )
    lines = (outcome.text or "").splitlines()
    places = {
        (finding.code, finding.now[0]): lines[finding.now[0] - 1][finding.now[1] - 1 :] for finding in outcome.left
    }
    assert places["TP205", 3].startswith("x.half()")
    assert places["TP205", 5].startswith("torch.ones(1).to(shim.device()).half()")
    assert places["TP101", 5].startswith('"cuda"')
    for finding in outcome.applied:
        assert lines[finding.now[0] - 1][finding.now[1] - 1] == finding.old[0]
    held = next(finding for finding in outcome.left if "line" in finding.reason)
    assert "on line 4" in held.reason or "with line 4" in held.reason
    assert "with line 5" in held.reason_now


def test_a_stub_is_read_and_not_rewritten(migrate: Callable[..., Outcome]) -> None:
    outcome = migrate('import torch\nx = torch.device("cuda")\n', path="api.pyi")
    assert outcome.text is None
    assert {f.effect for f in outcome.left} == {"none"}


def test_unsafe_edits_wait_for_the_option(migrate: Callable[..., Outcome]) -> None:
    text = "import torch\ndef f(x, args):\n    return x.to(args.gpu)\n"
    assert migrate(text).text is None
    assert "x.to(shim.device(args.gpu))" in (migrate(text, unsafe=True).text or "")


def test_syntax_error_names_its_line(migrate: Callable[..., Outcome]) -> None:
    outcome = migrate("import torch\nprint torch.cuda\n")
    assert outcome.text is None
    assert [problem.line for problem in outcome.problems] == [2]
    assert "Python" in outcome.problems[0].message


@pytest.mark.parametrize("opening", ["(", "[", "f("], ids=["brackets", "lists", "calls"])
def test_deep_nesting_costs_one_diagnostic(opening: str, migrate: Callable[..., Outcome]) -> None:
    closing = {"(": ")", "[": "]", "f(": ")"}[opening]
    outcome = migrate("cuda = " + opening * 20_000 + "1" + closing * 20_000 + "\n")
    assert outcome.text is None
    assert len(outcome.problems) == 1


def test_long_sums_are_no_problem(migrate: Callable[..., Outcome]) -> None:
    text = "import torch\nx = torch.ones(1).cuda()\ny = " + " + ".join(["1"] * 900) + "\n"
    outcome = migrate(text)
    assert not outcome.problems
    assert "shim.device()" in (outcome.text or "")


def test_a_result_that_fails_a_check_is_not_given_back(
    migrate: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torchport.rewrite.migrate.fault", lambda *_: "it is wrong")
    outcome = migrate("import torch\nx = torch.ones(1).cuda()\n", unsafe=True)  # with options nothing is remembered
    assert outcome.text is None
    assert not outcome.applied
    assert [f.reason for f in outcome.left] == ["not rewritten: it is wrong"]
    assert "it is wrong" in outcome.problems[0].message


def test_checks_see_undefined_names_and_bad_code() -> None:
    old = migrate.parse("import torch\n", "a.py")
    new = "import torch\nfresh.call()\n"
    assert "fresh" in migrate.fault("import torch\n", old, new, migrate.parse(new, "a.py"), "a.py", False)
    bad = "def f():\n    yield 1\n    return 2\n\nclass A:\n    return 1\n"
    assert "compile" in migrate.fault("", old, bad, migrate.parse(bad, "a.py"), "a.py", False)


def test_checks_see_lost_comments() -> None:
    old = migrate.parse("x = 1  # one\n", "a.py")
    assert "comment" in migrate.fault("x = 1  # one\n", old, "x = 1\n", migrate.parse("x = 1\n", "a.py"), "a.py", True)


def test_what_is_put_around_a_text_leaves_the_places_inside_it(migrate: Callable[..., Outcome]) -> None:
    text = Text("é = loader\n")
    start = len("é = ".encode())
    edits = minimal(text, start, start + len("loader"), "shim.steps(loader)")
    assert edits == (Edit(start, start, "shim.steps("), Edit(start + 6, start + 6, ")"))
    outcome = migrate("""
import torch
def test(check, model, optimizer):
    for x in check(model, torch.cuda.cudart()):
        model(x).backward()
        optimizer.step()
""")
    assert [(f.line, f.column, f.old) for f in outcome.left] == [(4, 27, "torch.cuda.cudart")]
    assert outcome.text is not None
    assert "shim.steps(check(model, torch.cuda.cudart()))" in outcome.text


def test_minimal_edit_leaves_common_ends_alone() -> None:
    text = Text("é = torch.cuda.is_available()\n")
    start = len("é = ".encode())
    (edit,) = minimal(text, start, start + len("torch.cuda.is_available"), "shim.is_available")
    assert (edit.text, text.bytes[edit.start : edit.end]) == ("shim", b"torch.cuda")
    assert splice(text.bytes, [edit]).decode() == "é = shim.is_available()\n"


@pytest.mark.parametrize(
    ("one", "other", "meets"),
    [
        (Edit(0, 2, "a"), Edit(2, 4, "b"), False),
        (Edit(0, 3, "a"), Edit(2, 4, "b"), True),
        (Edit(2, 2, "a"), Edit(2, 2, "b"), True),
        (Edit(2, 2, "a"), Edit(2, 2, "a"), False),
        (Edit(2, 2, "a"), Edit(2, 5, "b"), True),
    ],
)
def test_overlap(one: Edit, other: Edit, meets: bool) -> None:
    assert overlap(one, [other]) is meets


def test_origin_goes_back_through_all_passes() -> None:
    origin = Origin()
    first = [Edit(0, 2, "long"), Edit(5, 5, "xx")]
    origin.add(b"ab cd", first)
    second = [Edit(0, 4, "s")]
    origin.add(splice(b"ab cd", first), second)
    new = splice(splice(b"ab cd", first), second)
    assert new == b"s cdxx"
    assert origin(new.index(b"cd")) == 3
    assert origin(0) == 0


def test_what_was_left_is_still_told_of_after_a_migration_to_xla(migrate: Callable[..., Outcome]) -> None:
    first = migrate("import torch\nx = torch.ones(1).cuda()\ny = x.half()\n", target="xla")
    assert [f.code for f in first.left] == ["TP205"]
    again = migrate(first.text, target="xla")
    assert again.text is None
    assert [f.code for f in again.left if f.left_for_a_person] == ["TP205"]


def test_two_seeds_in_one_block_both_reach_the_device(migrate: Callable[..., Outcome]) -> None:
    outcome = migrate("import torch\ntorch.manual_seed(1)\nx = 0\ntorch.manual_seed(2)\n", target="xla")
    assert not outcome.problems
    assert (outcome.text or "").count("torch_xla.manual_seed") == 2


def test_triggers_that_a_caller_has_are_taken_only_where_they_are_those_of_all_rules() -> None:
    every = tuple(rule for rule in load_rules() if not rule.lint_only)
    some = tuple(rule for rule in every if rule.code.startswith("TP1"))
    for rules, given in ((every, every), (every, ()), (some, ())):
        triggers = Prefilter(for_target(rules, "portable"))
        assert Migrator(rules, "portable", every=given, triggers=triggers).triggers is triggers
    triggers = Prefilter(for_target(some, "portable"))
    narrowed = Migrator(some, "portable", every=every, triggers=triggers).triggers
    assert narrowed.rules == Migrator(every, "portable").triggers.rules
