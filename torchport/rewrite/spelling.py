"""How each idea is written for each target: the one place that the transformers ask.

Names that a rule gives as data (``rename`` in the catalogue) are not here; what takes code to write is.
"""

from __future__ import annotations

import re

from torchport.lazy import NamedTuple, pattern
from torchport.model import Target

SHIM = "torchport.shim"
IMPORTS = {
    SHIM: "from torchport import shim",
    "torch_xla": "import torch_xla",
    "torch_xla.utils.checkpoint": "import torch_xla.utils.checkpoint",
    "torch": "import torch",
    "contextlib": "import contextlib",
}
"""Modules that new texts use by their names, and the statement that imports each."""
_USED = {module: pattern(rf"(?<![\w.]){re.escape('shim' if module == SHIM else module)}\.") for module in IMPORTS}
_ADVICE: tuple[tuple[str, str, str], ...] = (
    (
        '`if shim.device().type == "cuda":`',
        "`if torch.cuda.is_available():`",
        "`if torch.cuda.is_available():`",
    ),
    ("cannot call the shim", "cannot call torch_xla", "may not take what would stand here"),
    (
        "write shim.device().type for the value and shim.accelerator_type() in tests",
        'write "xla" in its place',
        'write "tpu" in its place',
    ),
    ("shim.device().type", '"xla"', '"tpu"'),
    ("shim.accelerator_type()", '"xla"', '"tpu"'),
    ("shim.device(number)", 'torch.device("xla")', 'torch.device("tpu")'),
    ("shim.device()", 'torch.device("xla")', 'torch.device("tpu")'),
    ("shim.is_available()", "torch_xla.runtime.device_type()", "torch.accelerator.is_available()"),
    ("shim.steps(...) or shim.sync()", "torch_xla.sync()", "torch_xla.sync()"),
    ("shim.sync()", "torch_xla.sync()", "torch_xla.sync()"),
    ("shim.launch(", "torch_xla.launch(", "torch_xla.launch("),
    (
        "shim.synchronize()",
        "torch_xla.sync() and torch_xla.core.xla_model.wait_device_ops()",
        "torch.accelerator.synchronize()",
    ),
    (
        "shim.get_rng_state and shim.set_rng_state",
        "torch_xla.core.xla_model.get_rng_state and set_rng_state",
        'fork_rng(device_type="tpu")',
    ),
    ("write shim.device_ids(number)", "leave it out", "leave it out"),
    ("which the shim never gives", "which the new text never gives", "which it is not on a TPU"),
    ("shim.compile(function)", 'torch.compile(function, backend="openxla")', "torch.compile(function)"),
    (
        "the migrated init_process_group takes this name for the backend of the device",
        "init_process_group does not take its backend from here any more",
        "the migrated init_process_group takes this name for the backend of the device",
    ),
    ("call what is needed of the shim", "write what is needed by hand", "use torch.accelerator"),
)
"""What the reasons of findings say of the shim, for targets that do without it."""


class Spelling(NamedTuple):
    """The words of one target in one file."""

    target: Target
    torch: str = "torch"
    """What PyTorch is called in the file."""

    @property
    def portable(self) -> bool:
        """Whether the shim decides while the program runs; otherwise everything is decided now."""
        return self.target == "portable"

    def device(self, index: str = "") -> str:
        """A ``torch.device``. ``index`` is the source of the number of a GPU, which a process of one device ignores."""
        return f"shim.device({index})" if self.portable else f"{self.torch}.device({self._name(index)})"

    def place(self, index: str = "", like: str = "") -> str:
        """What ``.to()`` and ``device=`` take: the shim's device, or a text in the quotes of ``like``."""
        return f"shim.device({index})" if self.portable else self._name(index, like)

    def text(self, index: str = "", like: str = "") -> str:
        """A device as a string."""
        if self.portable:
            return f"str(shim.device({index}))" if index else "shim.device().type"
        return self._name(index, like)

    def compared(self, like: str = "") -> str:
        """The type of the accelerator's tensors, to compare with."""
        return "shim.accelerator_type()" if self.portable else self._name("", like)

    def _name(self, index: str, like: str = "") -> str:
        """TorchTPU ignores a number, and its tensors are on tpu:0; PyTorch/XLA refuses one but its own."""
        quote = "'" if like.lstrip("rbfuRBFU").startswith("'") else '"'
        name = "tpu:0" if self.target == "tpu" and index == "0" else self.target
        return f"{quote}{name}{quote}"

    def needs(self, text: str) -> tuple[str, ...]:
        """The modules that a new text which speaks of the accelerator needs."""
        used = [module for module, its_name in _USED.items() if its_name.search(text)]
        if any(module.startswith("torch_xla.") for module in used):
            used.remove("torch_xla")  # importing a part of it imports it
        elif self.target == "xla" and "torch_xla" not in used:
            used.append("torch_xla")  # the device "xla" exists once torch_xla is imported
        return tuple(module for module in used if self.portable or module != SHIM)

    def advice(self, reason: str) -> str:
        """A reason that speaks of the shim, in the words of this target."""
        if not self.portable:
            for shim, xla, tpu in _ADVICE:
                reason = reason.replace(shim, xla if self.target == "xla" else tpu)
        return reason
