"""``install()`` maps CUDA calls at run time, for programs that cannot be edited; ``uninstall()`` undoes it.

Nothing here is imported, and nothing in torch is replaced, until ``install()`` is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchport.shim.patching.session import Session

_session: Session | None = None


def install(*, pretend_cuda: bool = False) -> None:
    """Make torch.cuda's functions, ``.cuda()``, CUDA device names and numbers mean the device of this back end.

    Also autocast, GradScaler, process groups, launching, page-locked memory and, where the back end is lazy, step
    boundaries. What asks whether CUDA is there (``torch.cuda.is_available()``, ``device_count()``, ``Tensor.is_cuda``)
    is still answered truly, with a notice, unless ``pretend_cuda``. On the CUDA back end nothing is replaced. A second
    call changes nothing but ``pretend_cuda``, once it is true.

    Each mapped call is logged once per call site to the logger "torchport.shim" (level INFO).

    Raises:
        RuntimeError: ``TORCHPORT_BACKEND`` names a back end that cannot be used here.
    """
    global _session
    if _session is None:
        from torchport.shim.patching.session import Session

        _session = Session()
    _session.pretend_cuda = _session.pretend_cuda or pretend_cuda


def uninstall() -> None:
    """Put back everything that ``install()`` replaced, save what somebody else has replaced since; that stays."""
    global _session
    if _session is not None:
        _session.close()
        _session = None


def installed() -> Session | None:
    """What ``install()`` has put up, if anything."""
    return _session
