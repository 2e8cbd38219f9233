"""Find, read and validate rule files. An error names the file and the line of the entry."""

from __future__ import annotations

import os
from typing import Any, get_args

from torchport.lazy import pattern
from torchport.model import TARGETS, Effect, Review, Rule, Safety, Support, Target, UserError

CODE = pattern(r"[A-Z]{2,8}\d\d\d")
"""``TP`` are the rules that are shipped; users choose letters of their own."""
NAME = pattern(r"[a-z0-9]+(-[a-z0-9]+)*")
CHOICES = {"effect": get_args(Effect), "safety": get_args(Safety), "review": get_args(Review)}
TEXT = ("code", "name", "summary", "why", "effect", "safety", "review")
OPTIONAL = {
    "transformer": str,
    "reason": str,
    "since": str,
    "references": list,
    "match": list,
    "rename": dict,
    "drop": dict,
    "reasons": dict,
    "cuda_only": str,
    "lint_only": bool,
    "within": list,
    "measured": str,
    "instead": str,
    "settings": list,
}
SETTINGS = ("key", "variable", "command", "package", "image")
"""What an entry of ``settings`` is about: a key or an option, an environment variable, a word of a command, ..."""
LINT_FAMILIES = ("TP7", "TP8")
"""Their rules are for ``torchport lint`` alone and for files with one of ``WITHIN``, unless one says otherwise."""
WITHIN = ("torch", "lightning", ".backward(", "def forward(", "def training_step(")
KNOWN = {*TEXT, *OPTIONAL, "support", "triggers", "example"}


class CatalogError(UserError, ValueError):
    """A rule file that is not what it should be: says file, line, what was expected."""


def rules_folder() -> str:
    """The folder of rule files: in the wheel beside the package, in a checkout at its root."""
    package = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    shipped = os.path.join(package, "rules")
    return shipped if os.path.isdir(shipped) else os.path.join(os.path.dirname(package), "rules")


def load_rules(extra: tuple[str, ...] = ()) -> tuple[Rule, ...]:
    """All rules, shipped ones first, sorted by code.

    Raises CatalogError for a file that cannot be read, an entry that is not valid, or a code that is given twice.
    """
    folder = rules_folder()
    shipped = sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".toml"))
    if not shipped:
        raise CatalogError(f"{folder}: no rule files found; reinstall torchport")
    rules = _shipped(shipped)
    for path in extra:
        _add(rules, path)
    return tuple(rules[code] for code in sorted(rules))


def _shipped(files: list[str]) -> dict[str, Rule]:
    """The rules of the shipped files, by code, kept as byte code is: to read them takes longer than a small file."""
    from torchport.catalog import compiled

    try:
        wanted = compiled.signature(files)
    except OSError as error:
        raise CatalogError(f"{rules_folder()}: cannot be read: {error}") from error
    known = compiled.kept(wanted)
    if known is not None:
        return {rule.code: rule for rule in map(Rule._make, known)}
    rules: dict[str, Rule] = {}
    for path in files:
        _add(rules, path)
    compiled.keep(wanted, [tuple(rule) for rule in rules.values()])
    return rules


def _add(rules: dict[str, Rule], path: str) -> None:
    for rule in read_file(path):
        if rule.code in rules:
            raise CatalogError(f"{rule.source}: {rule.code} is already defined at {rules[rule.code].source}")
        rules[rule.code] = rule


def read_file(path: str) -> list[Rule]:
    """The rules of one file. Raises CatalogError."""
    import tomllib

    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        data = tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        raise CatalogError(f"{path}: cannot be read: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise CatalogError(f"{path}: not valid TOML: {error}") from error
    if set(data) != {"rule"} or not isinstance(data["rule"], list):
        raise CatalogError(f"{path}:1: expected [[rule]] entries and nothing else, found {sorted(data)}")
    lines = [number for number, line in enumerate(text.splitlines(), 1) if line.strip() == "[[rule]]"]
    return [_rule(entry, f"{os.path.basename(path)}:{line}") for entry, line in zip(data["rule"], lines, strict=True)]


def _rule(entry: dict[str, Any], where: str) -> Rule:
    def fail(message: str) -> CatalogError:
        return CatalogError(f"{where}: {entry.get('code', 'a rule')}: {message}")

    if unknown := set(entry) - KNOWN:
        import difflib

        hint = difflib.get_close_matches(min(unknown), KNOWN, 1)
        raise fail(f"unknown key {min(unknown)!r}" + (f"; did you mean {hint[0]!r}?" if hint else ""))
    for key in TEXT:
        if not isinstance(entry.get(key), str) or not entry[key].strip():
            raise fail(f"{key!r} must be a text that is not empty")
    for key, kind in OPTIONAL.items():
        if not isinstance(entry.get(key, kind()), kind):
            raise fail(f"{key!r} must be of type {kind.__name__}")
    for key, choices in CHOICES.items():
        if entry[key] not in choices:
            raise fail(f"{key} = {entry[key]!r} is not one of {', '.join(choices)}")
    if entry.get("cuda_only", "") not in ("", "branch", "choice"):
        raise fail("cuda_only must be 'branch' or 'choice'")
    if not CODE.fullmatch(entry["code"]):
        raise fail("code must be TP and three digits, or letters of your own (two to eight, capital) and three digits")
    if not NAME.fullmatch(entry["name"]):
        raise fail("name must be in kebab-case")
    support = entry.get("support")
    if not isinstance(support, dict) or set(support) != set(TARGETS):
        raise fail(f"support must give each of {', '.join(TARGETS)}")
    if bad := [value for value in support.values() if value not in get_args(Support)]:
        raise fail(f"support {bad[0]!r} is not one of {', '.join(get_args(Support))}")
    triggers = entry.get("triggers")
    if not isinstance(triggers, list) or not triggers or not all(isinstance(word, str) and word for word in triggers):
        raise fail("triggers must be a list of texts, at least one of which is in every file that the rule concerns")
    rename = entry.get("rename", {})
    if set(rename) - set(TARGETS) or not all(isinstance(table, dict) for table in rename.values()):
        raise fail(f"rename must be tables named {', '.join(TARGETS)}")
    drop = entry.get("drop", {})
    if set(drop) - set(TARGETS) or not all(isinstance(names, list) for names in drop.values()):
        raise fail(f"drop must be lists named {', '.join(TARGETS)}")
    reasons = entry.get("reasons", {})
    if set(reasons) - set(TARGETS) or not all(isinstance(text, str) and text for text in reasons.values()):
        raise fail(f"reasons must be texts named {', '.join(TARGETS)}")
    if not (entry.get("transformer") or entry.get("match") or rename or drop or entry.get("settings")):
        raise fail("gives nothing to match: expected 'match', 'rename', 'drop', 'transformer' or 'settings'")
    for asked in entry.get("settings", ()):
        if wrong := _wrong_setting(asked):
            raise fail(f"settings: {wrong}")
    if not (entry.get("transformer") or rename) and not entry.get("reason"):
        raise fail("rewrites nothing, so 'reason' must say why a match is left for a person")
    example = entry.get("example")
    if not isinstance(example, dict) or "before" not in example:
        raise fail("example must give 'before' and, for each target with a rewrite, what it becomes")
    rule = Rule(
        **{key: entry[key] for key in (*TEXT, "support", "example")},
        triggers=tuple(triggers),
        match=tuple(entry.get("match", ())),
        rename=rename,
        drop={target: tuple(names) for target, names in drop.items()},
        reasons=reasons,
        transformer=entry.get("transformer", ""),
        reason=entry.get("reason", ""),
        since=entry.get("since", ""),
        references=tuple(entry.get("references", ())),
        cuda_only=entry.get("cuda_only", ""),
        within=tuple(entry.get("within", WITHIN if entry["code"].startswith(LINT_FAMILIES) else ())),
        measured=entry.get("measured", ""),
        instead=entry.get("instead", ""),
        lint_only=entry.get("lint_only", entry["code"].startswith(LINT_FAMILIES)),
        settings=tuple(entry.get("settings", ())),
        source=where,
    )
    if rule.reads_settings_alone and not example.get("file"):
        raise fail("example.file must name the file of settings that the example is")
    return rule


def _wrong_setting(asked: Any) -> str:
    """What is wrong with an entry of ``settings``, or nothing."""
    import re

    texts = (*SETTINGS, "value", "of", "target", "reason", "effect")
    if not isinstance(asked, dict) or not all(key in texts and isinstance(asked[key], str) for key in asked):
        return f"each entry must be a table of texts named {', '.join(texts)}"
    if len([key for key in SETTINGS if key in asked]) != 1:
        return f"each entry must have one of {', '.join(SETTINGS)}"
    if asked.get("effect", "none") not in get_args(Effect):
        return f"effect = {asked['effect']!r} is not one of {', '.join(get_args(Effect))}"
    if asked.get("target", TARGETS[0]) not in TARGETS:
        return f"target = {asked['target']!r} is not one of {', '.join(TARGETS)}"
    for key in (*SETTINGS, "value", "of"):
        try:
            re.compile(asked.get(key, ""))
        except re.error as error:
            return f"{key} = {asked[key]!r} is no regular expression: {error}"
    return ""


def find_rule(rules: tuple[Rule, ...], code: str) -> Rule | None:
    """The rule of that code or kebab-case name, or None."""
    return next((rule for rule in rules if code.upper() == rule.code or code.lower() == rule.name), None)


def suggest(rules: tuple[Rule, ...], code: str) -> str:
    """The code or name nearest to one that does not exist, or an empty text."""
    import difflib

    if near := difflib.get_close_matches(code.lower(), [rule.name for rule in rules], 1, cutoff=0.6):
        return near[0]
    digits = code.upper().replace("O", "0").replace("I", "1").replace("L", "1")
    return next(iter(difflib.get_close_matches(digits, [rule.code for rule in rules], 1, cutoff=0.6)), "")


def select_rules(rules: tuple[Rule, ...], select: tuple[str, ...], ignore: tuple[str, ...]) -> tuple[Rule, ...]:
    """Keep what ``select`` names (all where it is empty) less what ``ignore`` names; each a code, a prefix or a name.

    Raises CatalogError for one that names no rule.
    """
    for word in (*select, *ignore):
        if not any(_named(rule, word) for rule in rules):
            hint = suggest(rules, word)
            raise CatalogError(
                f"no rule is called {word!r}" + (f"; did you mean {hint}?" if hint else "; see `torchport rules`")
            )
    chosen = [rule for rule in rules if not select or any(_named(rule, word) for word in select)]
    return tuple(rule for rule in chosen if not any(_named(rule, word) for word in ignore))


def _named(rule: Rule, word: str) -> bool:
    return rule.code.startswith(word.upper()) or rule.name == word.lower()


def for_target(rules: tuple[Rule, ...], target: Target) -> tuple[Rule, ...]:
    """The rules that find something for one target, with its reasons: what works there as it is is not spoken of."""
    return tuple(
        rule._replace(reason=rule.reasons.get(target, rule.reason)) if rule.reasons else rule
        for rule in rules
        if rule.lint_only or rule.effect == "none" or rule.support[target] != "same" or target in rule.example
    )
