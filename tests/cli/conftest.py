from __future__ import annotations

from pathlib import Path

import pytest
from real_command import Result, Torchport, run_torchport


@pytest.fixture
def command(tmp_path: Path) -> Torchport:
    """Run the real command in ``tmp_path``."""

    def run(*arguments: str, **options: object) -> Result:
        return run_torchport(tmp_path, *arguments, **options)  # type: ignore[arg-type]

    return run
