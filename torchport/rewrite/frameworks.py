"""Arguments by which a program asks a framework for GPUs: what is asked of the framework is for a person."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from torchport.lazy import NamedTuple, pattern, words
from torchport.model import Finding, Rule
from torchport.rewrite.context import Context

LIGHTNING = (
    "Lightning drives TPUs through PyTorch/XLA, with accelerator='tpu', devices='auto', a precision of bf16 and no "
    "strategy"
)
RAY = "it asks Ray for GPUs: ask for the resource that the TPU hosts of the cluster offer, resources={'TPU': n}"
PREFETCHER = "its prefetcher works with streams of CUDA: give use_prefetcher=False, and move the batches in the loop"
STARTS = "it starts a process for each GPU: with PyTorch/XLA call torch_xla.launch(function, start_method='fork')"
NARROW = "float16 is for GPUs: a TPU computes in bfloat16, bf16=True"
MIXED = "float16 is for GPUs: a TPU computes in bfloat16, mixed_precision='bf16'"
OPTIMIZER = "this optimizer has kernels of CUDA: optim='adamw_torch' is AdamW without them"
IGNITE_AMP = (
    "ignite's mixed precision is CUDA's, and with a device of PyTorch/XLA it raises: leave it out, and put an autocast "
    "to bfloat16 around the model's forward"
)
STEPS = ("training", "evaluation")
FLASH = (
    "this is the attention of the flash_attn package, for CUDA alone: give attn_implementation='sdpa', PyTorch's own"
)
FLASH_NAMES = ("flash_attention_2", "flash_attention_3")
GPU = words(r"gpu|cuda|ddp|dp")
CUDA_OPTIMIZER = pattern(r"8bit|bnb|apex|fused|paged")


class Argument(NamedTuple):
    """One argument of one function, what it is when it asks for a GPU, and what to do instead."""

    names: tuple[str, ...]
    keyword: str
    asks: Callable[[object], bool]
    reason: str


def _any(value: object) -> bool:
    return True


def _true(value: object) -> bool:
    return value is True


def _gpu(value: object) -> bool:
    return isinstance(value, str) and GPU.search(value) is not None


def _half(value: object) -> bool:
    return str(value).startswith("16") or value == "fp16"


def _cuda_optimizer(value: object) -> bool:
    return isinstance(value, str) and CUDA_OPTIMIZER.search(value) is not None


def _set(value: object) -> bool:
    return value is not None


LIGHTNINGS = ("pytorch_lightning.Trainer", "lightning.pytorch.Trainer", "lightning.Trainer", "lightning.Fabric")
READS_OPTIONS = tuple(f"{name}.add_argparse_args" for name in LIGHTNINGS)
TRAINERS = (*LIGHTNINGS, *(f"{name}.from_argparse_args" for name in LIGHTNINGS))
ARGUMENTS = ("transformers.TrainingArguments", "transformers.Seq2SeqTrainingArguments")
SCALING = ("ray.train.ScalingConfig", "ray.air.config.ScalingConfig", "ray.air.ScalingConfig")
IGNITE = ("ignite.engine.create_supervised_trainer", "ignite.engine.create_supervised_evaluator")
ASKING = (
    Argument(TRAINERS, "gpus", _any, LIGHTNING),
    Argument(TRAINERS, "accelerator", _gpu, LIGHTNING),
    Argument(TRAINERS, "strategy", _any, LIGHTNING),
    Argument(TRAINERS, "precision", _half, LIGHTNING),
    Argument(ARGUMENTS, "fp16", _true, NARROW),
    Argument(ARGUMENTS, "optim", _cuda_optimizer, OPTIMIZER),
    Argument(("ray.remote",), "num_gpus", _any, RAY),
    Argument(SCALING, "use_gpu", _true, RAY),
    Argument(("accelerate.notebook_launcher",), "num_processes", _any, STARTS),
    Argument(IGNITE, "amp_mode", _set, IGNITE_AMP),
    Argument(("accelerate.Accelerator",), "mixed_precision", _half, MIXED),
)
CALLED = {"ray.get_gpu_ids": RAY}
CALLED |= {f"ignite.engine.supervised_{step}_step_{mode}": IGNITE_AMP for step in STEPS for mode in ("amp", "apex")}
CALLED |= dict.fromkeys(READS_OPTIONS, f"it makes options of the command line that ask for GPUs: {LIGHTNING}")
LOADERS = ("timm.data.create_loader", "timm.data.loader.create_loader")


def gpu_arguments(rule: Rule, context: Context) -> Iterator[Finding]:
    """``Trainer(accelerator="gpu")``, ``TrainingArguments(fp16=True)``, ``ray.remote(num_gpus=1)``."""
    for asking in ASKING:
        for call in context.calls(*asking.names):
            for keyword in call.keywords:
                if keyword.arg == asking.keyword and _asks(asking, keyword.value):
                    yield context.leave(rule, keyword.value, asking.reason)
    for name, reason in CALLED.items():
        for node, _ in context.uses(name):
            yield context.leave(rule, node, reason)
    yield from _flash_attention(rule, context)
    for call in context.calls(*LOADERS):
        given = next((k.value for k in call.keywords if k.arg == "use_prefetcher"), None)
        if not (isinstance(given, ast.Constant) and given.value is False):
            yield context.leave(rule, given or call.func, PREFETCHER)


def _asks(asking: Argument, node: ast.expr) -> bool:
    """Whether a value asks for a GPU; one that is not written out may, where any value would."""
    return asking.asks(node.value) if isinstance(node, ast.Constant) else asking.asks in (_any, _set)


def _flash_attention(rule: Rule, context: Context) -> Iterator[Finding]:
    """``attn_implementation="flash_attention_2"``, wherever the name is written but in a test or a list of choices."""
    for call in context.tree.calls if b"use_flash_attention" in context.text.bytes else ():
        for keyword in call.keywords:
            if keyword.arg == "use_flash_attention_2" and not _is_false(keyword.value):
                yield context.leave(rule, keyword.value, FLASH)
    if b"flash_attention_" not in context.text.bytes:
        return
    for node in ast.walk(context.tree.module):
        if isinstance(node, ast.Constant) and node.value in FLASH_NAMES and _is_given(context, node):
            yield context.leave(rule, node, FLASH)


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not node.value


def _is_given(context: Context, node: ast.AST) -> bool:
    """Whether a name is a value that somebody is given: not compared with, chosen by availability or listed."""
    child = node
    for parent in context.tree.ancestors(node):
        if isinstance(parent, ast.Compare | ast.match_case | ast.List | ast.Tuple | ast.Set | ast.Subscript):
            return False
        if isinstance(parent, ast.IfExp) and "available" in ast.unparse(parent.test):
            return False
        if isinstance(parent, ast.If) and child in parent.body and "available" in ast.unparse(parent.test):
            return False
        if isinstance(parent, ast.Dict) and child in parent.keys:
            return False
        if isinstance(parent, ast.Expr) and child is node:
            return False
        child = parent
    return True
