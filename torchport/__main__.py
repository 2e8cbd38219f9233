"""``python -m torchport``."""

from __future__ import annotations

import sys

from torchport.cli import main

if __name__ == "__main__":
    sys.exit(main())
