"""What names say: of functions that run seldom, of classes that work on the host, of tests that seldom hold.

By plain comparisons: patterns of so many words take longer to compile than a file takes to examine.
"""

from __future__ import annotations

from collections.abc import Container

_HOST = frozenset(
    ("init", "collate", "load", "save", "plot", "draw", "show", "visualise", "visualize", "export", "convert",
     "preprocess", "read", "write", "parse", "dump", "download", "setup", "build", "make", "create", "profile", "run",
     "infer", "onnx", "resize", "resample", "filter", "benchmark", "summary", "summarize", "report", "reset",
     "get_args", "from_pretrained", "state_dict", "worker", "demo", "compute_on_dataset", "print", "log_results")
)  # fmt: skip
"""Words with which the names of functions begin that prepare, show or keep something."""
_ONCE = frozenset(("extra_repr", "main", "cli", "predict", "forward_on_instance", "forward_on_instances"))
_ARRAYS = tuple(
    f"_{of}{what}{several}"
    for of in ("tensor2", "tensor_2", "tensorto", "tensorto_", "tensor_to", "tensor_to_", "to_")
    for what in ("np", "numpy", "ndarray", "nd_array", "array", "list", "pil", "image", "img")
    for several in ("", "s")
)
"""Ends of names of functions that hand a tensor to the host."""
_EPOCHS = tuple(
    f"{on}{part}{dash}epoch_end"
    for on in ("", "on_")
    for part in ("", "train", "validation", "test")
    for dash in ("", "_")
)
_HOST_CLASSES = ("Dataset", "Sampler", "TestCase", "Transform", "Logger", "Tokenizer", "Processor", "Meter")
_RARE = tuple(
    f"_{word}_"
    for word in (
        *("debug", "verbose", "log_this", "log_now", "log_step", "should_log", "should_print", "should_eval"),
        *("should_save", "do_log", "print_freq", "dnn", "coreml", "paddle", "openvino", "tensorrt", "tflite", "ncnn"),
        *("xml", "last_batch", "is_last", "first", "sanity", "dry_run", "scripting", "tracing", "onnx", "need_update"),
        "display",
    )
)
_MODELS = tuple(
    f"_{word}"
    for word in (
        *("model", "net", "network", "encoder", "decoder", "unet", "transformer", "generator", "discriminator"),
        "module",
    )
)
_MOVERS = frozenset(
    f"{move}{what}to_{place}"
    for move in ("", "move_")
    for what in ("", "data_", "batch_", "tensor_", "tensors_")
    for place in ("cuda", "gpu", "device")
)


def is_host_function(name: str) -> bool:
    """A function that runs once, or seldom, or prepares data: ``main``, ``save_images``, ``on_train_epoch_end``."""
    return (
        _begins(name.removeprefix("_"), _HOST)
        or name in _ONCE
        or (name.startswith("predict_") and not name.startswith("predict_step") and len(name) > len("predict_"))
        or f"_{name}" in _ARRAYS
        or name[1:].endswith(_ARRAYS)
        or (name.startswith("test_") and len(name) > len("test_"))
        or (name.startswith("__") and name.endswith("__") and len(name) > len("____"))
        or name.startswith(_EPOCHS)
        or (name.endswith("_init") and len(name) > len("_init"))
        or (name.endswith("_init_") and len(name) > len("_init_"))
    )


def is_host_class(name: str) -> bool:
    """A class that prepares data or keeps records: ``ImageDataset``, ``CollateFn``, ``AverageMeter``."""
    return name.endswith(_HOST_CLASSES) or "Collat" in name or "Augment" in name


def is_rare(name: str) -> bool:
    """What seldom holds where it is tested: ``debug``, ``should_log``, ``is_last_batch``, ``export_onnx``."""
    before = f"_{name.lower()}"
    whole = f"{before}_"
    return (
        "_is_log" in before
        or "_export" in before
        or "_profil" in before[:-1]
        or "exportable_" in whole
        or any(word in whole for word in _RARE)
    )


def is_like_model(name: str) -> bool:
    """What a parameter that is called is most likely; a loop of such calls is one of steps."""
    return f"_{name.lower()}".endswith(_MODELS)


def is_mover(name: str) -> bool:
    """A function of a program that moves what it is given to the device and gives it back: ``to_cuda``."""
    low = name.lower()
    return low.removeprefix("_") in _MOVERS or low in ("move_to", "move_to_device", "cudaize", "cuda_ize")


def _begins(name: str, words: Container[str]) -> bool:
    """Whether a name is one of ``words``, or goes on behind one with an underscore and more."""
    end = len(name)
    while end > 0:
        if name[:end] in words and end + 1 != len(name):
            return True
        end = name.rfind("_", 0, end)
    return False
