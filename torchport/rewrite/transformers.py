"""The transformers by the names that rules give them. Each is imported when a file concerns its rule."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from torchport.rewrite.context import Transformer

TRANSFORMERS = {
    "device-strings": "torchport.rewrite.devices.device_strings",
    "device-numbers": "torchport.rewrite.numbers.device_numbers",
    "seed": "torchport.rewrite.seeds.seed",
    "device-from-variable": "torchport.rewrite.numbers.device_from_variable",
    "is-cuda": "torchport.rewrite.devices.is_cuda",
    "cuda-method": "torchport.rewrite.moves.cuda_method",
    "type-string": "torchport.rewrite.tensors.type_string",
    "default-tensor-type": "torchport.rewrite.tensors.default_tensor_type",
    "autocast": "torchport.rewrite.amp.autocast",
    "cuda-amp": "torchport.rewrite.precision.cuda_amp",
    "grad-scaler": "torchport.rewrite.scaler.grad_scaler",
    "with-device": "torchport.rewrite.amp.with_device",
    "half": "torchport.rewrite.amp.half",
    "compile": "torchport.rewrite.compiling.compile_alone",
    "activation-checkpoint": "torchport.rewrite.compiling.checkpoint_alone",
    "new-parameters": "torchport.rewrite.modules.new_parameters",
    "batch-norm": "torchport.rewrite.modules.batch_norm",
    "layer-norm": "torchport.rewrite.modules.layer_norm",
    "made": "torchport.rewrite.modules.made",
    "load": "torchport.rewrite.loading.load",
    "load-elsewhere": "torchport.rewrite.loading.load_elsewhere",
    "save": "torchport.rewrite.loading.save",
    "pin-memory": "torchport.rewrite.loading.pin_memory",
    "fused": "torchport.rewrite.loading.fused",
    "device-ids": "torchport.rewrite.distributed.device_ids",
    "spawn": "torchport.rewrite.distributed.spawn",
    "data-parallel": "torchport.rewrite.distributed.data_parallel",
    "group-backend": "torchport.rewrite.distributed.group_backend",
    "nccl": "torchport.rewrite.collectives.nccl",
    "reduce-to-one": "torchport.rewrite.collectives.reduce_to_one",
    "average": "torchport.rewrite.collectives.average",
    "barrier": "torchport.rewrite.collectives.barrier",
    "device-mesh": "torchport.rewrite.collectives.device_mesh",
    "step-boundary": "torchport.rewrite.loops.step_boundary",
    "device-properties": "torchport.rewrite.reports.device_properties",
    "builds-package": "torchport.rewrite.reports.builds_package",
    "current-accelerator": "torchport.rewrite.reports.current_accelerator",
    "star-import": "torchport.rewrite.reports.star_import",
    "dynamic-access": "torchport.rewrite.reports.dynamic_access",
    "cuda-in-text": "torchport.rewrite.reports.cuda_in_text",
    "other-backend": "torchport.rewrite.reports.other_backend",
    "other-vendor": "torchport.rewrite.reports.other_vendor",
    "module-compile": "torchport.rewrite.compiling.module_compile",
    "generator": "torchport.rewrite.reports.generator",
    "environment": "torchport.rewrite.reports.environment",
    "old-xla-environment": "torchport.rewrite.reports.old_xla_environment",
    "nvidia-smi": "torchport.rewrite.reports.nvidia_smi",
    "launch-command": "torchport.rewrite.reports.launch_command",
    "library-import": "torchport.rewrite.libraries.library_import",
    "apex": "torchport.rewrite.libraries.apex",
    "memory-where-there-is-a-device": "torchport.rewrite.memory.memory_where_there_is_a_device",
    "memory-text": "torchport.rewrite.reports.memory_text",
    "autocast-state": "torchport.rewrite.switches.autocast_state",
    "attention-kernel": "torchport.rewrite.switches.attention_kernel",
    "inference-mode-alone": "torchport.rewrite.switches.inference_mode_alone",
    "gpu-arguments": "torchport.rewrite.frameworks.gpu_arguments",
    "record-stream": "torchport.rewrite.switches.record_stream",
    "stream-pointer": "torchport.rewrite.switches.stream_pointer",
    "fork-rng": "torchport.rewrite.switches.fork_rng",
    "states-for-a-replay": "torchport.rewrite.switches.states_for_a_replay",
    "memory-error": "torchport.rewrite.switches.memory_error",
    "narrow-sum": "torchport.rewrite.advice.narrow_sum",
    "cuda-version": "torchport.rewrite.advice.cuda_version",
    "sparse-on-device": "torchport.rewrite.sparse.sparse_on_device",
    "unsharded-loader": "torchport.rewrite.advice.unsharded_loader",
    "gpu-options": "torchport.rewrite.reports.gpu_options",
    "cuda-profiler": "torchport.rewrite.switches.profiler",
    "leftover-texts": "torchport.rewrite.silence.said_at_the_end",
    "suppressions": "torchport.rewrite.silence.said_at_the_end",
}


class Transformers(dict[str, Transformer]):
    """By name; what is asked for is imported. ``paths`` gives module and function of every name."""

    def __init__(self, paths: Mapping[str, str]) -> None:
        self.paths = paths

    def __missing__(self, name: str) -> Transformer:
        module, _, function = self.paths[name].rpartition(".")
        found: Transformer = getattr(import_module(module), function)
        self[name] = found
        return found
