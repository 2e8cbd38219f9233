"""Which rules a file may concern, told from its bytes: never too few, however the code is laid out."""

from __future__ import annotations

import io
import token
import tokenize
from pathlib import Path

import pytest

from torchport.catalog import load_rules
from torchport.catalog.prefilter import Prefilter

RULES = load_rules()
FUSED = next(rule for rule in RULES if rule.code == "TP622")
FIXTURES = sorted((Path(__file__).parents[2] / "fixtures").glob("*/before.py"))


def codes(text: str) -> set[str]:
    return {rule.code for rule in Prefilter(RULES).concerned(text.encode())}


def spread(text: str) -> str:
    """The same program with a blank on both sides of every operator and bracket."""
    lines = text.splitlines(keepends=True)
    for found in reversed(list(tokenize.generate_tokens(io.StringIO(text).readline))):
        if found.type == token.OP:
            (row, start), (_, end) = found.start, found.end
            line = lines[row - 1]
            lines[row - 1] = f"{line[:start]} {line[start:end]} {line[end:]}"
    return "".join(lines)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("DataLoader(data, pin_memory=True)", "TP601"),
        ("DataLoader(data, pin_memory = True)", "TP601"),
        ("DataLoader(data, pin_memory\t=\tTrue)", "TP601"),
        ("from torch.optim import Adam\nAdam(p, fused = True)", "TP622"),
        ("x.to(0)", "TP107"),
        ("x . to ( 0 )", "TP107"),
        ("x.to(device + ':' + str(n))", "TP107"),
        ('device += f":{n}"', "TP107"),
        ('x.to(f"{device}:{n}")', "TP107"),
        ("with torch.inference_mode():", "TP623"),
        ("from torch.autograd.grad_mode import no_grad, inference_mode", "TP623"),
        ("import fla\n", "TP901"),
        ("import fla  # kernels", "TP901"),
        ("from fla import ops", "TP901"),
        ("import nvidia.dali as dali", "TP901"),
        ("from torch import save, load\n", "TP611"),
        ("from torch import (\n    nn,\n    save as keep,\n)\n", "TP611"),
    ],
)
def test_a_trigger_is_found_however_it_is_spaced(text: str, code: str) -> None:
    assert code in codes(text)


@pytest.mark.parametrize("text", ["", "x = 1\n", "import math\nprint(math.pi)\n", "from torch import nn\n"])
def test_a_file_of_other_things_concerns_no_rule_that_migrates(text: str) -> None:
    assert not Prefilter(tuple(rule for rule in RULES if not rule.lint_only)).search(text.encode())


def test_words_that_have_to_be_there_as_well() -> None:
    growing = next(rule for rule in RULES if rule.within)
    trigger = growing.triggers[0]
    assert growing.code not in codes(trigger)
    assert growing.code in codes(f"{trigger}\n{growing.within[0]}")
    assert not Prefilter([growing]).search(trigger.encode())
    assert Prefilter([growing]).search(f"{trigger}\n{growing.within[0]}".encode())


@pytest.mark.parametrize("text", ["sgd(fused=x)", "sgd(a, fused = x)", "sgd(\n    fused=x)", "sgd(\tfused=x)"])
def test_a_trigger_behind_a_blank_is_found_at_the_beginning_of_a_name(text: str) -> None:
    rule = FUSED._replace(triggers=(" fused=",), within=())
    assert Prefilter([rule]).concerned(text.encode()) == (rule,)
    assert Prefilter([rule]).search(text.encode())


@pytest.mark.parametrize("text", ["attention(qkv_fused=x)", "is_fused = x", "unfused=x", "fused(x)"])
def test_such_a_trigger_is_not_found_inside_a_name(text: str) -> None:
    rule = FUSED._replace(triggers=(" fused=",), within=())
    assert not Prefilter([rule]).search(text.encode())


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.parent.name)
def test_blanks_hide_no_rule(path: Path) -> None:
    text = path.read_text()
    if "\\\n" in text or "\x0c" in text:
        text = text.replace("\\\n", " ").replace("\x0c", "")
    try:
        other = spread(text)
    except (tokenize.TokenError, IndentationError, SyntaxError):
        return  # what Python cannot read has no layout to change
    assert codes(text) <= codes(other)
