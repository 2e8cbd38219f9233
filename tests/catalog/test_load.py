"""The catalogue is read and checked; an error names file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchport.catalog import CatalogError, find_rule, load_rules, select_rules, suggest

GOOD = """
[[rule]]
code = "TP999"
name = "my-rule"
summary = "s"
why = "w"
effect = "error"
safety = "manual"
review = "read"
support = { portable = "manual", xla = "manual", tpu = "manual" }
triggers = ["x"]
match = ["a.b"]
reason = "r"
example.before = "a.b"
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text)
    return path


def test_shipped_rules_are_sorted_and_named_once() -> None:
    rules = load_rules()
    assert [rule.code for rule in rules] == sorted({rule.code for rule in rules})
    assert len({rule.name for rule in rules}) == len(rules)
    assert all(rule.why.strip().endswith(".") for rule in rules)


def test_own_rule_file_is_added(tmp_path: Path) -> None:
    rules = load_rules((write(tmp_path, GOOD),))
    rule = find_rule(rules, "my-rule")
    assert rule is not None
    assert rule.source == "mine.toml:2"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('code = "TP999"', 'code = "X1"', "TP and three digits"),
        ('code = "TP999"', 'code = "TP101"', "already defined at devices.toml"),
        ('effect = "error"', 'effect = "bad"', "effect = 'bad' is not one of"),
        ('reason = "r"', 'reasn = "r"', "did you mean 'reason'"),
        ('reason = "r"', "", "why a match is left"),
        ('match = ["a.b"]\nreason = "r"', "", "nothing to match"),
        ('match = ["a.b"]', "settings = [{ key = 'a' }]", "example.file must name"),
        ('match = ["a.b"]', "settings = [{ kee = 'a' }]", "table of texts named key, variable"),
        ('match = ["a.b"]', "settings = ['a']", "table of texts named key, variable"),
        ('match = ["a.b"]', "settings = [{ value = 'a' }]", "must have one of key, variable"),
        ('match = ["a.b"]', "settings = [{ key = 'a', command = 'b' }]", "must have one of key, variable"),
        ('match = ["a.b"]', "settings = [{ key = '(' }]", "key = '(' is no regular expression"),
        ('match = ["a.b"]', "settings = [{ key = 'a', effect = 'bad' }]", "effect = 'bad' is not one of"),
        ('match = ["a.b"]', "settings = [{ key = 'a', target = 'gpu' }]", "target = 'gpu' is not one of"),
        ('triggers = ["x"]', "triggers = []", "triggers must be"),
        ('name = "my-rule"', 'name = "My Rule"', "kebab-case"),
        ('example.before = "a.b"', "", "example must give"),
        ('why = "w"', 'why = " "', "'why' must be a text"),
        ("portable = ", "portble = ", "support must give each of"),
        ('summary = "s"', "summary = s", "not valid TOML"),
        ("[[rule]]", "[[ruel]]", "expected [[rule]]"),
    ],
)
def test_error_names_file_line_and_what_was_expected(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in GOOD
    with pytest.raises(CatalogError) as caught:
        load_rules((write(tmp_path, GOOD.replace(old, new)),))
    assert message in str(caught.value)
    assert "mine.toml" in str(caught.value)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="cannot be read"):
        load_rules((tmp_path / "none.toml",))


def test_select_by_code_prefix_and_name() -> None:
    rules = load_rules()
    assert {rule.code for rule in select_rules(rules, ("TP10",), ("TP103", "is-cuda"))} >= {"TP101", "TP104"}
    assert not {"TP103", "TP102"} & {rule.code for rule in select_rules(rules, ("TP10",), ("TP103", "is-cuda"))}
    with pytest.raises(CatalogError, match="did you mean"):
        select_rules(rules, ("TP1O1",), ())
    assert suggest(rules, "cuda-metod") == "cuda-method"
