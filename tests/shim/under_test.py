"""The back end that this whole run tests, and where to find what its tests need."""

from __future__ import annotations

import os
import pathlib

BACKEND = os.environ.get("TORCHPORT_TEST_BACKEND", "cpu")
ROOT = pathlib.Path(__file__).parents[2]
TPU_ON_CPU = ROOT / "tests" / "support" / "tpu_on_cpu.py"
