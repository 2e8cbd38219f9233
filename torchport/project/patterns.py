"""Glob patterns for paths, as ``exclude`` and ``per-file-ignores`` have them."""

from __future__ import annotations

from collections.abc import Sequence


def clean(patterns: Sequence[str]) -> tuple[str, ...]:
    """The patterns without slashes at their ends, and without those that are empty."""
    return tuple(stripped for pattern in patterns if (stripped := pattern.strip("/").removeprefix("./")))


def matches(relative: str, patterns: Sequence[str]) -> bool:
    """Whether a pattern matches this path, one of the folders above it, or the last part of one of these."""
    if not patterns:
        return False
    from fnmatch import fnmatchcase

    parts = relative.split("/")
    prefixes = ["/".join(parts[: n + 1]) for n in range(len(parts))]
    return any(fnmatchcase(name, pattern) for pattern in patterns for name in (*prefixes, *parts))
