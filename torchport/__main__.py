"""``python -m torchport``."""

from __future__ import annotations

from torchport.cli import console

if __name__ == "__main__":
    console()
