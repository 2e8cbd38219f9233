"""The checks that only ``lint`` runs, by the name that a rule gives as its ``transformer``."""

from __future__ import annotations

from torchport.lint.checks import arguments, conditions, indices, lengths, reads, selections, texts
from torchport.rewrite.context import Transformer

CHECKS: dict[str, Transformer] = {
    "host-reads": reads.host_reads,
    "printed": texts.printed,
    "tensor-conditions": conditions.tensor_conditions,
    "comparisons-in-python": conditions.comparisons_in_python,
    "nonzero": selections.nonzero,
    "mask-reads": selections.mask_reads,
    "counted": selections.counted,
    "one-hot": selections.one_hot,
    "python-index": indices.python_index,
    "size-from-data": indices.size_from_data,
    "growing": indices.growing,
    "padded": lengths.padded,
    "packed": lengths.packed,
    "ragged": lengths.ragged,
    "ragged-last-batch": lengths.last_batch,
    "clip-error": arguments.clip_error,
    "waiting-optimizers": arguments.waiting_optimizers,
    "distributions": arguments.distributions,
}
