"""Which kernels scaled_dot_product_attention may use."""

from __future__ import annotations

from typing import Any

from torchport.shim.backends.base import Off
from torchport.shim.notices import notice
from torchport.shim.selection import backend


def sdpa_kernel(backends: Any, set_priority: bool = False) -> Any:
    """torch.nn.attention.sdpa_kernel: gives a context manager that is also a decorator.

    PyTorch/XLA has one way to compute attention. TorchTPU has its own kernel, which answers to FLASH_ATTENTION, and
    MATH; the other kernels are those of NVIDIA, and where no other was allowed the choice is TorchTPU's.
    """
    from torch.nn.attention import sdpa_kernel

    asked = list(backends) if isinstance(backends, list | tuple | set) else [backends]
    kept = backend().attention_kernels(asked)
    if kept is None:
        names = ", ".join(kernel.name for kernel in asked)
        notice(f"sdpa_kernel: {backend().name} chooses the kernel of attention itself, in place of {names}")
        return Off()
    return sdpa_kernel(kept, set_priority=True) if set_priority else sdpa_kernel(kept)


def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True
) -> Any:
    """torch.backends.cuda.sdp_kernel, the older form of ``sdpa_kernel``."""
    from torch.nn.attention import SDPBackend

    chosen = {
        SDPBackend.FLASH_ATTENTION: enable_flash,
        SDPBackend.MATH: enable_math,
        SDPBackend.EFFICIENT_ATTENTION: enable_mem_efficient,
        SDPBackend.CUDNN_ATTENTION: enable_cudnn,
    }
    return sdpa_kernel([kernel for kernel, enabled in chosen.items() if enabled])
