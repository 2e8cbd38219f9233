"""The running statistics of batch_norm, which neither PyTorch/XLA nor TorchTPU gets right."""

from __future__ import annotations

import functools
from typing import Any

import torch


@functools.cache
def right_running_statistics(key: str) -> Any:
    """Make batch_norm update its running statistics as it does on the CPU and on CUDA.

    Without it training is right and ``eval()`` is not, in silence: TorchTPU 0.2.0 leaves them at zero and one, and
    PyTorch/XLA 2.9 takes the variance without Bessel's correction. The kernel here asks the back end for the output
    alone, so that one that gets them right would not update them twice. instance_norm comes through here as well.
    On PyTorch/XLA it is not reached under ``torch.inference_mode()``, where nobody should train.

    Args:
        key: the dispatch key of the back end, ``"XLA"`` or ``"PrivateUse1"``.

    Returns:
        What keeps the kernel in place for as long as it lives; it is kept here.
    """

    def batch_norm(
        tensor: torch.Tensor,
        weight: torch.Tensor | None,
        bias: torch.Tensor | None,
        running_mean: torch.Tensor | None,
        running_var: torch.Tensor | None,
        training: bool,
        momentum: float,
        eps: float,
        cudnn_enabled: bool,
    ) -> Any:
        tracked = training and running_mean is not None and running_var is not None
        kept = (None, None) if tracked else (running_mean, running_var)
        output = torch.ops.aten._batch_norm_impl_index(
            tensor, weight, bias, *kept, training, momentum, eps, cudnn_enabled
        )[0]
        if tracked:
            _update(running_mean, running_var, tensor, momentum)
        return output

    library = torch.library.Library("aten", "IMPL")
    for place in (key, f"Autograd{key}"):
        library.impl("batch_norm", batch_norm, place)
    return library  # the rule lasts as long as this object


def _update(running_mean: Any, running_var: Any, tensor: torch.Tensor, momentum: float) -> None:
    """Move both towards the mean and the unbiased variance of each channel (dimension 1) of ``tensor``."""
    with torch.no_grad():
        values = tensor.detach().to(torch.promote_types(tensor.dtype, torch.float32))
        others = [dimension for dimension in range(tensor.dim()) if dimension != 1]
        variance, mean = torch.var_mean(values, others)
        running_mean.mul_(1 - momentum).add_(mean.to(running_mean.dtype), alpha=momentum)
        running_var.mul_(1 - momentum).add_(variance.to(running_var.dtype), alpha=momentum)
