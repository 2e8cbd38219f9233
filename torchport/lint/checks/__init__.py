"""The checks that only ``lint`` runs, by the name that a rule gives as its ``transformer``."""

from __future__ import annotations

from torchport.lint.checks import (
    arguments,
    clips,
    conditions,
    indices,
    lengths,
    masks,
    operators,
    reads,
    selections,
    texts,
    wrong,
    xla_steps,
)
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
    "norm-clip": clips.norm_clip,
    "mask-writes": masks.mask_writes,
    "filtered-loss": masks.filtered_loss,
    "bool-cumsum": wrong.bool_cumsum,
    "bool-count": wrong.bool_count,
    "whole-amax": wrong.whole_amax,
    "host-operators": operators.host_operators,
    "missing-operators": operators.missing_operators,
    "cdist": operators.cdist,
    "inference-mode": operators.inference_mode,
    "sparse-tensors": operators.sparse,
    "double": operators.double,
    "random-graph": operators.random_graph,
    "ragged-last-batch": lengths.last_batch,
    "without-barrier": xla_steps.without_barrier,
    "clip-error": arguments.clip_error,
    "waiting-optimizers": arguments.waiting_optimizers,
    "distributions": arguments.distributions,
}
