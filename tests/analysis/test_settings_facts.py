"""What is read in files of settings and launchers: keys with their values, options, commands; no comment, no prose."""

from __future__ import annotations

import pytest

from torchport.analysis.launchers import launcher_facts
from torchport.analysis.settings import settings_facts


def pairs(text: str, suffix: str = ".yaml") -> list[tuple[str, str]]:
    """Keys and values, each of which has to stand in the text where the fact says."""
    facts = [fact for fact in settings_facts(text, suffix) if fact.kind == "setting"]
    assert all(fact.value in text[fact.start : fact.end] or fact.value == "true" for fact in facts)
    return [(fact.name, fact.value) for fact in facts]


def script(text: str) -> list[tuple[str, str]]:
    """Options and assignments as pairs, words of commands with nothing."""
    return [(fact.name, fact.value) for fact in launcher_facts(text) if fact.kind in ("setting", "command")]


def packages(text: str, suffix: str = "") -> list[str]:
    facts = settings_facts(text, suffix) if suffix else launcher_facts(text)
    return [fact.name for fact in facts if fact.kind == "package"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("device: cuda\n", [("device", "cuda")]),
        ("device: cuda:0   # not this: cuda\n", [("device", "cuda:0")]),
        ("'device': \"cuda\"\n", [("device", "cuda")]),
        ("a:\n  device: cuda\nb: 1\n", [("device", "cuda"), ("b", "1")]),
        ("device: !!str cuda\n", [("device", "cuda")]),
        ("device: &where cuda\n", [("device", "cuda")]),
        ("devices:\n- cuda:0\n- cpu\n", [("devices", "cuda:0"), ("devices", "cpu")]),
        ("devices:\n  - cuda:0\n", [("devices", "cuda:0")]),
        (
            "runs_:\n  - name: a\n    device: cuda\n  - device: cpu\n",
            [("name", "a"), ("device", "cuda"), ("device", "cpu")],
        ),
        ("- - cuda\n", [("", "cuda")]),
        ("x: {device: cuda, n: [1, 2]}\n", [("device", "cuda"), ("n", "1"), ("n", "2")]),
        ("x: {device: cuda:0,\n    'a': \"b\"}\nc: d\n", [("device", "cuda:0"), ("a", "b"), ("c", "d")]),
        ("device: cuda\r\nb: c\r\n", [("device", "cuda"), ("b", "c")]),
        ("--device: cuda\n", [("--device", "cuda")]),
        ("a: b\ndevice: cuda", [("a", "b"), ("device", "cuda")]),
        ("# device: cuda\n", []),
        ("  # device: cuda\n---\n%YAML 1.2\n", []),
        ("text: |\n  device: cuda\n\n  more\nb: c\n", [("b", "c")]),
        ("- >-\n  device: cuda\n- b\n", [("", "b")]),
        ("text: a long\n  device line\n", [("text", "a long")]),
        ("url: https://x.org/device:cuda#a\n", [("url", "https://x.org/device:cuda#a")]),
        ("", []),
        ("{", []),
        ("a: {b: [c", [("b", "c")]),
        ("a: 'b\n", [("a", "b")]),
        ("device:\n", []),
    ],
)
def test_yaml(text: str, found: list[tuple[str, str]]) -> None:
    assert pairs(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"device": "cuda", "n": 1}', [("device", "cuda"), ("n", "1")]),
        (
            '{"device":"cuda","b":{"c":true,"device":"cpu"},"d":null}',
            [("device", "cuda"), ("c", "true"), ("device", "cpu"), ("d", "null")],
        ),
        ('[{"a": ["x: y", "\\"q\\""]}]', [("a", "x: y"), ("a", '\\"q\\"')]),
        ('{"a": {"b": 1}, "c": "d"}', [("b", "1"), ("c", "d")]),
        ('{"url": "http://a//b"}', [("url", "http://a//b")]),
        ("{}", []),
        ("]", []),
    ],
)
def test_json(text: str, found: list[tuple[str, str]]) -> None:
    assert pairs(text, ".json") == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('[a]\ndevice = "cuda"  # x\n', [("device", "cuda")]),
        ("[a.b]\n'device' = 'cuda'\n", [("device", "cuda")]),
        ('d = ["cuda:0", # no\n  "cuda:1"]\nb = 1\n', [("d", "cuda:0"), ("d", "cuda:1"), ("b", "1")]),
        ('o = { device = "cuda", n = 1 }\n', [("device", "cuda"), ("n", "1")]),
        ('text = """\ndevice = "cuda"\n"""\nb = 2\n', [("b", "2")]),
        ("[a]\ndevice = cuda ; x\n; device = cuda\n# device = cuda\n", [("device", "cuda")]),
        ("device: cuda\n", [("device", "cuda")]),
        ("list =\n    one\n    two\nb = c\n", [("list", "one"), ("list", "two"), ("b", "c")]),
        ("[[t]]\na = 1\n", [("a", "1")]),
    ],
)
def test_toml_and_ini(text: str, found: list[tuple[str, str]]) -> None:
    assert pairs(text, ".toml") == found


@pytest.mark.parametrize(
    "text",
    [
        "command: python t.py --device cuda\n",
        "run: |\n  cd x\n  # --device cpu\n  python t.py \\\n    --device=cuda\n",
        'args: ["--device", "cuda"]\n',
        "args:\n  - --device\n  - cuda\n",
        "args:\n  - --device=cuda\n",
        "extra: t.py --device cuda\n",
        "entrypoint: bash -c 'python t.py --device cuda'\n",
        "command:\n  python t.py\n  --device cuda\n",
    ],
)
def test_commands_in_settings(text: str) -> None:
    assert ("--device", "cuda") in pairs(text)


@pytest.mark.parametrize("text", ["about: |\n  python t.py --device cuda\n", "run: echo 'python t.py --device cuda'\n"])
def test_what_is_no_command_in_settings(text: str) -> None:
    assert ("--device", "cuda") not in pairs(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("python t.py --device cuda\n", [("python", ""), ("t.py", ""), ("--device", "cuda"), ("cuda", "")]),
        (
            "python t.py --device=cuda:0 --fp16",
            [("python", ""), ("t.py", ""), ("--device", "cuda:0"), ("--fp16", "true")],
        ),
        ("A=1 B='x y' run -v", [("A", "1"), ("x", ""), ("y", ""), ("B", "x y"), ("run", ""), ("-v", "true")]),
        ("export CUDA_VISIBLE_DEVICES", [("CUDA_VISIBLE_DEVICES", "")]),
        ("DEVICE=${1:-cuda}", [("DEVICE", "cuda")]),
        (
            "N=$(nvidia-smi -L | wc -l)",
            [("nvidia-smi", ""), ("-L", "true"), ("wc", ""), ("-l", "true"), ("N", "$(nvidia-smi -L | wc -l)")],
        ),
        ("t.py a.device=cuda +b=1", [("t.py", ""), ("a.device", "cuda"), ("b", "1")]),
        ("#SBATCH --gres=gpu:8\n", [("SBATCH", ""), ("--gres", "gpu:8")]),
        ("# python --device cuda\n", []),
        ("echo --device cuda; a", [("a", "")]),
        ('echo "--device cuda"', []),
        (
            "case $1 in\n--fp16) x ;;\n-d|--device) y ;;\nesac",
            [("case", ""), ("in", ""), ("x", ""), ("y", ""), ("esac", "")],
        ),
        ("A=(--fp16)", [("A", ""), ("--fp16", "true")]),
        ("A=(\n  --device cuda\n)", [("A", ""), ("--device", "cuda"), ("cuda", "")]),
        ("cat <<EOF\n--device cuda\nEOF\na", [("a", "")]),
        ("cat > j.sh <<'EOF'\na --device cuda\nEOF\n", [("a", ""), ("--device", "cuda"), ("cuda", ""), ("EOF", "")]),
        ("cat > x <<E\n#!/bin/sh\na --device=b\nE\n", [("a", ""), ("--device", "b"), ("E", "")]),
        ("if [ $d == cuda ]; then a; fi", [("a", ""), ("fi", "")]),
        ("DEVICE ?= cuda\n", [("DEVICE", "cuda")]),
        ("ENV NCCL_DEBUG INFO\nENV A=1 B=2\n", [("NCCL_DEBUG", "INFO"), ("A", "1"), ("B", "2")]),
        ('CMD ["a", "--device", "cuda"]\n', [("a", ""), ("--device", "cuda"), ("cuda", "")]),
        ("pip install torchrun", []),
        ("a 'unclosed --device cuda\nb", [("a", ""), ("unclosed", ""), ("--device", "cuda"), ("cuda", ""), ("b", "")]),
    ],
)
def test_scripts(text: str, found: list[tuple[str, str]]) -> None:
    assert script(text) == found


@pytest.mark.parametrize(
    ("text", "suffix", "found"),
    [
        ("pip install -U torch==2.1 'Flash_Attn>=2'", "", ["torch", "flash-attn"]),
        ("python -m pip install a && uv add b; conda install c=1=x", "", ["a", "b", "c"]),
        ("pip uninstall a; apt-get install b; make install; pip --version", "", []),
        ("a==1  # b==2\n# c\n\n  d>=2 ; e\n-r f.txt\ng @ git+https://x.org/y/z.git@v1\n", ".txt", ["a", "d", "z"]),
        ("dependencies:\n- x::a=1\n- pip:\n  - b\nother:\n- c\n", ".yml", ["a", "b"]),
    ],
)
def test_packages(text: str, suffix: str, found: list[str]) -> None:
    keys = ("dependencies", "pip")  # in TOML a key may be a package, so it is one everywhere
    assert [name for name in packages(text, suffix) if name not in keys] == found


@pytest.mark.parametrize(
    "text",
    [
        'A="é x --device cuda"\n',
        "b\nA=$(c --device cuda)\n",
        "bash -c 'set -e\n  d \\\n  --device cuda'\n",
        "A=`c --device cuda`",
        'A="$(c --device cuda) and more"',
        'CMD ["a", "b --device cuda"]\n',
    ],
)
def test_places_are_those_of_the_file(text: str) -> None:
    places = {(fact.start, fact.end) for fact in launcher_facts(text) if fact.name == "--device"}
    assert [text[start:end] for start, end in places] == ["--device cuda"]


def test_places_in_a_script_inside_settings() -> None:
    text = "a: é\nrun: |\n  b\n  c --device cuda\nd: e --device cuda\n"
    places = [fact for fact in settings_facts(text, ".yaml") if fact.name == "--device"]
    assert [text[fact.start : fact.end] for fact in places] == ["--device cuda"] * 2
    assert len({fact.start for fact in places}) == 2
