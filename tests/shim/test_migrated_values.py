"""A device's name reaches its tests in many ways: after the migration each program prints what it printed before.

The value of each program is "cuda" where the back end is an accelerator, so that every test in it was true of the
device; on the CPU it is chosen by availability. Whether a group of places moved or stayed, the answers have to be those
of the original: an answer that differs is a half migration, which is silent.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import sys
import types

import pytest

if importlib.util.find_spec("libcst") is None:
    pytest.skip("the migration needs LibCST", allow_module_level=True)

import torch

from torchport import shim
from torchport.catalog import load_rules
from torchport.project.source import Source
from torchport.rewrite import Migrator

HEAD = """\
import argparse, enum, functools, json, os, re
from collections import namedtuple
from dataclasses import dataclass, field
from types import SimpleNamespace
import torch
"""
CHOSEN = '"cuda" if torch.cuda.is_available() else "cpu"'
HOLDERS = {
    "variable": ("device = {v}", "device"),
    "two names": ("dev = other = {v}", "other"),
    "pair": ("device, rate = {v}, 1", "device"),
    "or": ("given = None\ndevice = given or ({v})", "device"),
    "chosen again": ("first = {v}\nagain = first if True else 'cpu'", "again"),
    "default": ("def main(device={v}):\n    return device", "main()"),
    "keyword": ("def main(*, where):\n    return where\ndevice = main(where={v})", "device"),
    "function": ("def get_device():\n    return {v}", "get_device()"),
    "result of a pair": ("def get():\n    return ({v}), 1\ndevice, rank = get()", "device"),
    "if": ("if {c}:\n    device = 'cuda'\nelse:\n    device = 'cpu'", "device"),
    "attribute": ("class A:\n    place = {v}", "A().place"),
    "constructor": ("class A:\n    def __init__(self, device):\n        self.kept = device\na = A({v})", "a.kept"),
    "by keyword": ("class A:\n    def __init__(self, d):\n        self.kept = d\na = A(d={v})", "a.kept"),
    "property": ("class A:\n    @property\n    def device(self):\n        return {v}", "A().device"),
    "data class": ("@dataclass\nclass A:\n    device: str = {v}", "A().device"),
    "field": ("@dataclass\nclass A:\n    device: str = field(default_factory=lambda: {v})", "A().device"),
    "named tuple": ("A = namedtuple('A', 'device rate')\na = A({v}, 1)", "a.device"),
    "namespace": ("a = SimpleNamespace(device={v})", "a.device"),
    "setattr": ("a = SimpleNamespace()\nsetattr(a, 'device', {v})", "a.device"),
    "dictionary": ("config = {{'device': {v}, 'rate': 1}}", "config['device']"),
    "get": ("config = {{'device': {v}}}", "config.get('device')"),
    "default of get": ("config = {{}}", "config.get('device', {v})"),
    "keywords of dict": ("config = dict(device={v})", "config['device']"),
    "environment": ("os.environ['DEVICE'] = {v}", "os.environ['DEVICE']"),
    "default of the environment": ("", "os.environ.get('PLACE_DEVICE', {v})"),
    "configuration": ('config = json.loads(\'{{"device": "{w}"}}\')', "config['device']"),
    "configuration by a variable": ("config = json.loads('{{\"dev\": \"{w}\"}}')\ndev = config['dev']", "dev"),
    "list": ("devices = [{v}]", "devices[0]"),
    "partial": ("def same(x, where=''):\n    return where\nf = functools.partial(same, where={v})\nw = f(1)", "w"),
    "option": (
        "parser = argparse.ArgumentParser()\n"
        "parser.add_argument('--device', default={v})\n"
        "args = parser.parse_args([])",
        "args.device",
    ),
    "option with choices": (
        "parser = argparse.ArgumentParser()\n"
        "parser.add_argument('--dev', dest='device', default={v}, choices=['cpu', 'cuda'])\n"
        "args = parser.parse_args([])",
        "args.device",
    ),
    "type of a device": ("held = torch.device({v})", "held.type"),
    "text of a device": ("held = torch.device({v})", "str(held)"),
}
MOVED = 660
"""How many of the 825 programs move whole: not those with an enumeration or ``dict(cuda=...)``, and not some whose
names do not say that the value is a device."""
TESTS = (
    "{e} == 'cuda', 'cuda' == {e}, {e} != 'cuda', not {e} == 'cuda'",
    "'cuda' in {e}, {e} in ('cuda', 'mps'), {e} in ['cuda'], {e} not in {{'cuda'}}",
    "{e}.startswith('cuda'), {e}.startswith(('cuda', 'mps')), {e}.endswith('cuda'), {e}.find('cuda') >= 0",
    "{e}[:4] == 'cuda', {e}[0:4] != 'cuda', {e}.split(':')[0] == 'cuda', {e}.partition(':')[0] == 'cuda'",
    "{e}.replace('cuda', 'gpu') == 'gpu', {e}.lower() == 'cuda', re.match('cuda', {e}) is not None",
    "({e} or 'cuda') == 'cuda', 'cuda' == {e} != 'cpu', [{e}] == ['cuda'], ({e}, 1) == ('cuda', 1)",
    "{{'cuda': 1, 'cpu': 2}}[{e}], {{'cuda': 1, 'cpu': 2}}.get({e}, 3)",
    "torch.device({e}).type == 'cuda', torch.device({e}) == torch.device('cuda')",
    "{e}.startswith('cuda:'), 'cuda:' in {e}, 'cuda:' not in str({e})",
    "any(d == 'cuda' for d in [{e}]), [d for d in ({e},) if d != 'cuda'] == []",
    "(lambda d: d == 'cuda')({e}), 1 if {e} == 'cuda' and True else 2, str({e}) == 'cuda'",
)
BLOCKS = (
    "text = {e}\nprint(f'{{text}}' == 'cuda', '%s' % text == 'cuda', '{{}}'.format(text) == 'cuda')",
    "table = {{'cuda': 1, 'cpu': 2}}\nprint(table[{e}], table.get({e}), {e} in table)",
    "table = dict(cuda=1, cpu=2)\nprint(table[{e}])",
    "GPU = 'cuda'\nprint({e} == GPU, GPU != {e})",
    "NAMES = ('cuda', 'mps')\nprint({e} in NAMES)",
    "class Kind(str, enum.Enum):\n    CUDA = 'cuda'\n    CPU = 'cpu'\nprint(Kind({e}) is Kind.CUDA)",
    "class A1:\n    name = 'cuda'\n    def of(self, device):\n        return device == self.name\nprint(A1().of({e}))",
    "def on(device='cuda'):\n    return device == 'cuda'\nprint(on({e}), on(device={e}))",
    "def on(a, /, d, *, e='cuda'):\n    return d == 'cuda', e == 'cuda'\nprint(on(0, {e}, e={e}))",
    "on = lambda device: device == 'cuda'\nprint(on({e}))",
    "match {e}:\n    case 'cuda':\n        print(1)\n    case _:\n        print(2)",
    "name = {e}\nmatch name:\n    case 'mps' | 'cuda' if name or 0:\n        print(1)\n    case _:\n        print(2)",
    "found = []\nfor d in ['cpu', 'cuda']:\n    if d == {e}:\n        found.append(len(found))\nprint(found)",
    "kind, *rest = {e}.split(':')\nprint(kind == 'cuda', rest)",
)


def programs(value: str, condition: str) -> list[str]:
    found = []
    for setup, expression in HOLDERS.values():
        word = "cuda" if condition == "True" else "cpu"
        written, read = setup.format(v=value, c=condition, w=word), expression.format(v=value)
        uses = [f"print({test.format(e=read)})" for test in TESTS] + [block.format(e=read) for block in BLOCKS]
        found += [f"{HEAD}{written}\n{use}\n" for use in uses]
    return found


def printed(text: str) -> str:
    """What a program prints, the class of what it raises included."""
    module = types.ModuleType("program")
    sys.modules["program"] = module
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out), pytest.MonkeyPatch.context() as patch:
            patch.delenv("DEVICE", raising=False)
            patch.delenv("PLACE_DEVICE", raising=False)
            exec(compile(text, "program", "exec"), vars(module))
    except (KeyError, ValueError) as error:
        out.write(type(error).__name__)
    finally:
        del sys.modules["program"]
    return out.getvalue()


def test_answers_are_those_of_the_original(name: str) -> None:
    accelerator = name in ("xla", "tpu")
    texts = programs(*(('"cuda"', "True") if accelerator else (CHOSEN, "torch.cuda.is_available()")))
    migrator = Migrator(tuple(rule for rule in load_rules() if not rule.lint_only), "portable")
    different, moved = [], 0
    for text in texts:
        outcome = migrator(Source("program.py", text, "utf-8", False))
        assert not outcome.problems, text
        if outcome.text is None:
            continue
        moved += not any(finding.left_for_a_person for finding in outcome.left)
        if printed(text) != printed(outcome.text):
            different.append(outcome.text.removeprefix(HEAD))
    assert not different, "\n---\n".join([f"{len(different)} of {len(texts)}", *different[:10]])
    assert moved >= MOVED


def test_old_constructors_make_tensors_on_the_device(name: str) -> None:
    text = """\
import numpy as np
import torch
x = torch.ones(2, 3)
made = [
    torch.cuda.FloatTensor([1, 2]), torch.cuda.LongTensor(((3,), (4,))), torch.cuda.FloatTensor(np.ones(2)),
    torch.cuda.FloatTensor(2, x.size(1)).fill_(5), torch.cuda.ByteTensor(len(x)).zero_(), torch.cuda.IntTensor(),
    x.type(torch.cuda.DoubleTensor)[0],
]
print([(t.tolist(), t.dtype) for t in made], {t.device.type for t in made})
"""
    migrator = Migrator(tuple(rule for rule in load_rules() if not rule.lint_only), "portable")
    outcome = migrator(Source("program.py", text, "utf-8", False))
    assert not outcome.left
    expected = [
        ([1.0, 2.0], torch.float32),
        ([[3], [4]], torch.int64),
        ([1.0, 1.0], torch.float32),
        ([[5.0] * 3] * 2, torch.float32),
        ([0, 0], torch.uint8),
        ([], torch.int32),
        ([1.0] * 3, torch.float64),
    ]
    assert printed(outcome.text or "") == f"{expected} {{{shim.device().type!r}}}\n"
