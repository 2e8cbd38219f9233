"""What the targets xla and tpu write, on the back end of this run (``TORCHPORT_TEST_BACKEND``), without the shim."""

from __future__ import annotations

import os
from typing import cast

import pytest

from torchport.model import Target

BACKEND = os.environ.get("TORCHPORT_TEST_BACKEND", "cpu")

if BACKEND not in ("xla", "tpu"):
    collect_ignore_glob = ["test_*.py"]  # no target is for plain CPU alone


@pytest.fixture(scope="session")
def target() -> Target:
    return cast(Target, BACKEND)
