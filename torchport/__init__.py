"""torchport: train PyTorch code written for NVIDIA GPUs on Google TPUs, without forking it.

Importing this package imports neither torch nor LibCST: ``torchport.shim`` needs torch, the command line needs neither.
"""

from __future__ import annotations

__version__ = "0.1.0"
