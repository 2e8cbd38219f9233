"""CUDA-specific lines of files of settings and launchers, found by plain patterns: no line of torchport's readers."""

from __future__ import annotations

import re
from collections.abc import Iterator

SETTINGS = (".yaml", ".yml", ".json", ".toml", ".ini", ".cfg")
SCRIPTS = (".sh", ".bash", ".slurm", ".sbatch")
LARGEST = 256_000
LINES = {
    "device": re.compile(r"""(?i)\b(\w*device\w*|map_location)["']?\s*[:=\s]\s*["']?cuda(:\d)?\b(?!_)"""),
    "NCCL": re.compile(r"""(?i)backend["']?\s*[:=\s]\s*["']?nccl\b"""),
    "float16": re.compile(r"""(?i)(?<![\w-])(--)?fp16["']?\s*[:=]\s*true\b|\s--fp16(\s|$)"""),
    "variables": re.compile(
        r"""(?<![\w$({.-])["']?(CUDA_VISIBLE_DEVICES|CUDA_LAUNCH_BLOCKING|NCCL_[A-Z_]+|PYTORCH_CUDA_ALLOC_CONF)["']?(=|:\s)"""
    ),
    "launching": re.compile(
        r"(^|[\s\"'(])(torchrun|nvidia-smi)\s+-|-m\s+torch\.distributed\.(launch|run)\b"
        r"|^deepspeed\s|accelerate launch\s"
    ),
    "schedulers": re.compile(
        r"^#SBATCH.*(--gres=gpu|--gpus)|docker run.*--gpus\s|nvidia\.com/gpu\s*:|^FROM\s+nvidia/cuda"
    ),
    "packages": re.compile(
        r"""(^|[\s"'])(flash[-_]attn|bitsandbytes|xformers|mamba[-_]ssm|torch==[\w.]+\+cu\d+)(\[|==|>=|~=|["',]|\s*$)"""
    ),
}
"""Kinds of sites, each with what a line of it looks like."""
PROSE = re.compile(r"\b(echo|printf|help|usage|description|title|name|#)\b.*|\s#\s.*|//.*")


def is_plain(name: str) -> bool:
    """Whether a file of this name is one of settings, or a launcher."""
    last = name.rpartition("/")[2]
    if last in ("package.json", "package-lock.json"):
        return False
    listed = last.endswith(".txt") and "requirements" in last
    return listed or last.endswith((*SETTINGS, *SCRIPTS)) or last.startswith(("Dockerfile", "Makefile"))


def plain_sites(name: str, data: bytes) -> Iterator[tuple[int, str, str]]:
    """Line, kind and text of each site. What is a comment, or only printed, is none."""
    if len(data) > LARGEST:
        return
    section = ""
    for number, line in enumerate(data.decode(errors="replace").splitlines(), 1):
        text = line.strip()
        if name.endswith(".toml") and text.startswith("["):
            section = text
        directive = text.startswith("#SBATCH")
        if text.startswith(("#", ";", "//")) and not directive:
            continue
        bare = text if directive else PROSE.sub("", text)
        for kind, pattern in LINES.items():
            if kind == "packages" and not (name.endswith((".txt", ".toml")) or "install" in bare):
                continue
            if kind == "packages" and section == "[tool.uv]":
                continue  # how packages are built, not which are installed
            if pattern.search(bare):
                yield number, kind, text
                break
