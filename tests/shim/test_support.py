"""The table in support.py: every name is in it, and does on the back end of this run what the table says."""

from __future__ import annotations

import ast
import functools
import importlib
import io
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from torchport import shim
from torchport.shim import support

ROWS = {name: row for group in support.GROUPS for row in group.rows for name in row.names}


def device() -> torch.device:
    return shim.device()


def parameter() -> torch.nn.Parameter:
    made = torch.nn.Parameter(torch.ones(3).to(device()))
    made.grad = torch.full_like(made, 3.0)
    return made


def stream_and_event() -> Any:
    side = shim.Stream()
    side.wait_stream(shim.current_stream())
    with shim.stream(side):
        assert shim.current_stream() == side
        event = side.record_event()
    shim.current_stream().wait_event(event)
    event.synchronize()
    return event.query() and side.query()


def timing() -> bool:
    start, end = shim.Event(enable_timing=True), shim.Event(enable_timing=True)
    start.record()
    torch.ones(3).to(device()).sum()
    end.record()
    end.synchronize()
    return 0 < start.elapsed_time(end) < 60_000


def saved() -> io.BytesIO:
    file = io.BytesIO()
    shim.save({"w": torch.ones(2).to(device())}, file)
    file.seek(0)
    return file


def optimized(**options: bool) -> bool:
    torch.optim.AdamW([parameter()], **options).step()
    return True


def forked() -> bool:
    with shim.fork_rng():
        first = torch.rand(2).tolist(), torch.rand(2, device=device()).tolist()
    return first == (torch.rand(2).tolist(), torch.rand(2, device=device()).tolist())


def masked() -> list[float]:
    target = torch.zeros(3).to(device())
    shim.masked_assign(target, torch.tensor([True, False, True]).to(device()), 2.0)
    return target.tolist()


def attention(context: Any) -> bool:
    with context:
        q = torch.ones(1, 1, 2, 4).to(device())
        return torch.nn.functional.scaled_dot_product_attention(q, q, q).shape == q.shape


def ranges() -> bool:
    with shim.nvtx.range("step {}", 1):
        depth = shim.nvtx.range_push("inner")
        shim.nvtx.mark("point")
        number = shim.nvtx.range_start("other")
        shim.nvtx.range_end(number)
    return shim.nvtx.range_pop() == depth


def profiled() -> bool:
    with shim.profiler.profile():
        return True


def process_group() -> bool:
    options = {"init_method": "tcp://127.0.0.1:29543", "rank": 0, "world_size": 1}
    shim.init_process_group("nccl", **options)
    try:
        return torch.distributed.get_world_size() == 1
    finally:
        torch.distributed.destroy_process_group()


def group_within() -> bool:
    options = {"init_method": "tcp://127.0.0.1:29544", "rank": 0, "world_size": 1}
    shim.init_process_group("nccl", **options)
    try:
        group = shim.new_group([0], backend="nccl")
        total = torch.ones(2).to(device())
        torch.distributed.all_reduce(total, group=group)
        names = {torch.distributed.get_backend(), torch.distributed.get_backend(group)}
        return total.tolist() == [1, 1] and (names == {shim.accelerator_backend()}) is shim.is_available()
    finally:
        torch.distributed.destroy_process_group()


def gradients(call: Callable[[torch.Tensor], Any]) -> list[float]:
    x = torch.ones(2).to(device()).requires_grad_()
    call(x).sum().backward()
    assert x.grad is not None
    return x.grad.tolist()


def double(x: torch.Tensor) -> torch.Tensor:
    return 2 * x


def capture() -> None:
    with shim.graph(shim.CUDAGraph()):
        pass


def on_device(tensor: torch.Tensor) -> bool:
    return tensor.device.type == shim.device().type


def typed(name: str) -> bool:
    """Whether the tensor type makes tensors of its dtype on the device, of numbers and of a size, and knows them."""
    kind, on_cpu = getattr(shim, name), getattr(torch, name)
    made = kind([1, 0])
    right = made.dtype == on_cpu.dtype and made.tolist() == [1, 0] and kind(2, 3).shape == (2, 3)
    other = torch.zeros(1, dtype=torch.complex64)
    known = isinstance(made, kind) == (made.device.type == shim.accelerator_type())
    return right and on_device(made) and known and not isinstance(other, kind)


PROBES: dict[str, Callable[[], Any]] = {
    "device": lambda: torch.empty(1, device=shim.device()).device.type == shim.device().type,
    "device_string": lambda: shim.device_string("cuda") == str(shim.device()),
    "accelerator_type": lambda: (
        (torch.ones(1).to(device()).device.type == shim.accelerator_type()) is shim.is_available()
    ),
    "is_available": lambda: shim.is_available() is (shim.backend().name != "cpu"),
    "device_count": lambda: (shim.device_count() >= 1) is shim.is_available(),
    "current_device": lambda: shim.current_device() == 0,
    "is_initialized": lambda: isinstance(shim.is_initialized(), bool),
    "init": lambda: shim.init() is None if shim.is_available() else True,
    "set_device": lambda: shim.set_device(0) is None,
    "device_context": lambda: shim.device_context(0).__enter__() is None,
    "device_of": lambda: shim.device_of(torch.ones(1).to(device())).__enter__() is None,
    "synchronize": lambda: shim.synchronize() is None,
    "get_device_name": lambda: bool(shim.get_device_name()),
    "get_device_properties": lambda: bool(shim.get_device_properties().name),
    "get_device_capability": lambda: len(shim.get_device_capability()) == 2,
    "is_bf16_supported": lambda: isinstance(shim.is_bf16_supported(), bool),
    "is_tf32_supported": lambda: isinstance(shim.is_tf32_supported(), bool),
    "get_arch_list": lambda: isinstance(shim.get_arch_list(), list),
    "get_gencode_flags": lambda: isinstance(shim.get_gencode_flags(), str),
    "can_device_access_peer": lambda: isinstance(shim.can_device_access_peer(0, 0), bool),
    "get_sync_debug_mode": lambda: shim.get_sync_debug_mode() == 0,
    "set_sync_debug_mode": lambda: [shim.set_sync_debug_mode(mode) for mode in ("warn", "default")] == [None, None],
    "backend": lambda: shim.backend().name in support.BACKENDS,
    "steps": lambda: list(shim.steps([1, 2])) == [1, 2],
    "sync": lambda: shim.sync() is None,
    "autocast": lambda: shim.autocast(dtype=torch.bfloat16).__class__.__name__ != "",
    "custom_fwd": lambda: shim.custom_fwd(double)(torch.ones(1)).tolist() == [2],
    "custom_bwd": lambda: callable(shim.custom_bwd(double)),
    "GradScaler": lambda: shim.GradScaler().is_enabled() is (shim.backend().name == "cuda"),
    "amp_definitely_not_available": lambda: shim.amp_definitely_not_available() is not shim.is_available(),
    "torch_manual_seed": lambda: isinstance(shim.torch_manual_seed(1), torch.Generator),
    "manual_seed": lambda: shim.manual_seed(1) is None,
    "manual_seed_all": lambda: shim.manual_seed_all(1) is None,
    "seed": lambda: shim.seed() is None,
    "seed_all": lambda: shim.seed_all() is None,
    "initial_seed": lambda: isinstance(shim.initial_seed(), int),
    "get_rng_state": lambda: shim.get_rng_state().dtype == torch.uint8,
    "set_rng_state": lambda: shim.set_rng_state(shim.get_rng_state()) is None,
    "get_rng_state_all": lambda: bool(shim.get_rng_state_all()) is shim.is_available(),
    "set_rng_state_all": lambda: shim.set_rng_state_all(shim.get_rng_state_all()) is None,
    "Generator": lambda: (
        torch.rand(2, device=device(), generator=shim.Generator("cuda").manual_seed(3)).tolist()
        == torch.rand(2, device=device(), generator=shim.Generator("cuda").manual_seed(3)).tolist()
    ),
    "fork_rng": forked,
    "memory_allocated": lambda: shim.memory_allocated() >= 0,
    "max_memory_allocated": lambda: shim.max_memory_allocated() >= 0,
    "memory_reserved": lambda: shim.memory_reserved() >= 0,
    "max_memory_reserved": lambda: shim.max_memory_reserved() >= 0,
    "memory_cached": lambda: shim.memory_cached() >= 0,
    "max_memory_cached": lambda: shim.max_memory_cached() >= 0,
    "memory_stats": lambda: isinstance(shim.memory_stats(), dict),
    "memory_stats_as_nested_dict": lambda: isinstance(shim.memory_stats_as_nested_dict(), dict),
    "memory_summary": lambda: isinstance(shim.memory_summary(), str),
    "mem_get_info": lambda: len(shim.mem_get_info()) == 2,
    "reset_peak_memory_stats": lambda: shim.reset_peak_memory_stats() is None,
    "reset_max_memory_allocated": lambda: shim.reset_max_memory_allocated() is None,
    "reset_max_memory_cached": lambda: shim.reset_max_memory_cached() is None,
    "reset_accumulated_memory_stats": lambda: shim.reset_accumulated_memory_stats() is None,
    "empty_cache": lambda: shim.empty_cache() is None,
    "ipc_collect": lambda: shim.ipc_collect() is None,
    "memory_snapshot": lambda: isinstance(shim.memory_snapshot(), list),
    "host_memory_stats": lambda: isinstance(shim.host_memory_stats(), dict),
    "host_memory_stats_as_nested_dict": lambda: isinstance(shim.host_memory_stats_as_nested_dict(), dict),
    "reset_peak_host_memory_stats": lambda: shim.reset_peak_host_memory_stats() is None,
    "reset_accumulated_host_memory_stats": lambda: shim.reset_accumulated_host_memory_stats() is None,
    "set_per_process_memory_fraction": lambda: shim.set_per_process_memory_fraction(1.0) is None,
    "get_per_process_memory_fraction": lambda: shim.get_per_process_memory_fraction() == 1.0,
    "utilization": lambda: shim.utilization() >= 0,
    "memory_usage": lambda: shim.memory_usage() >= 0,
    "temperature": lambda: shim.temperature() >= 0,
    "power_draw": lambda: shim.power_draw() >= 0,
    "clock_rate": lambda: shim.clock_rate() >= 0,
    "device_memory_used": lambda: shim.device_memory_used() >= 0,
    "list_gpu_processes": lambda: isinstance(shim.list_gpu_processes(), str),
    "Stream": lambda: isinstance(shim.Stream(), shim.Stream),
    "stream": stream_and_event,
    "StreamContext": lambda: shim.StreamContext(None).__enter__() is None,
    "current_stream": lambda: shim.current_stream() == shim.default_stream(),
    "default_stream": lambda: isinstance(shim.default_stream(), shim.Stream),
    "set_stream": lambda: shim.set_stream(shim.default_stream()) is None,
    "record_stream": lambda: shim.record_stream(torch.ones(1).to(device()), shim.current_stream()) is None,
    "Event": timing,
    "make_graphed_callables": lambda: shim.make_graphed_callables(double, (torch.ones(2).to(device()),)) is not None,
    "CUDAGraph": lambda: shim.CUDAGraph().replay(),
    "graph": capture,
    "graph_pool_handle": lambda: len(shim.graph_pool_handle()) == 2,
    "is_current_stream_capturing": lambda: shim.is_current_stream_capturing() is False,
    "nvtx": ranges,
    "profiler": profiled,
    "save": lambda: torch.load(saved(), map_location="cpu")["w"].tolist() == [1, 1],
    "load": lambda: shim.load(saved(), map_location="cuda")["w"].device.type == device().type,
    "init_process_group": process_group,
    "new_group": group_within,
    "accelerator_backend": lambda: isinstance(shim.accelerator_backend(), str),
    "device_ids": lambda: shim.device_ids(0) == ([0] if shim.backend().name == "cuda" else None),
    "DataParallel": lambda: shim.DataParallel(torch.nn.Linear(2, 2).to(device())).module is not None,
    "launch": lambda: True,  # test_distributed.py starts programs of its own
    "is_pin_memory_supported": lambda: isinstance(shim.is_pin_memory_supported(), bool),
    "pin_memory": lambda: shim.pin_memory(torch.ones(2)).tolist() == [1, 1],
    "pin_memory_device": lambda: bool(
        list(torch.utils.data.DataLoader([1], pin_memory_device=shim.pin_memory_device()))
    ),
    "is_fused_optimizer_supported": lambda: not shim.is_fused_optimizer_supported() or optimized(fused=True),
    "is_foreach_optimizer_supported": lambda: not shim.is_foreach_optimizer_supported() or optimized(foreach=True),
    "is_capturable_optimizer_supported": lambda: (
        not shim.is_capturable_optimizer_supported() or optimized(capturable=True)
    ),
    "clip_grad_norm_": lambda: round(shim.clip_grad_norm_([parameter()], 1.0, foreach=True).item(), 3) == 5.196,
    "clip_grad_value_": lambda: shim.clip_grad_value_([parameter()], 1.0, foreach=True) is None,
    "compile": lambda: shim.compile(double, backend="eager")(torch.ones(1)).tolist() == [2],
    "checkpoint": lambda: gradients(lambda x: shim.checkpoint(double, x, use_reentrant=False)) == [2, 2],
    "checkpoint_sequential": lambda: (
        gradients(lambda x: shim.checkpoint_sequential([double, double, double], 2, x, use_reentrant=True)) == [8, 8]
    ),
    "sdpa_kernel": lambda: attention(shim.sdpa_kernel(torch.nn.attention.SDPBackend.EFFICIENT_ATTENTION)),
    "sdp_kernel": lambda: attention(shim.sdp_kernel(enable_flash=False, enable_math=True)),
    "masked_assign": lambda: masked() == [2, 0, 2],
    "set_default_tensor_type": lambda: shim.set_default_tensor_type("torch.FloatTensor") is None,
    "set_float32_matmul_precision": lambda: shim.set_float32_matmul_precision("highest") is None,
    "inference_mode": lambda: shim.inference_mode()(double)(torch.ones(2).to(device())).tolist() == [2, 2],
    **{f"{kind}Tensor": functools.partial(typed, f"{kind}Tensor") for kind in support.TENSORS},
    "as_type": lambda: on_device(shim.as_type(torch.ones(2), shim.FloatTensor)),
    "install": lambda: True,  # test_patching.py has programs of its own for both
    "uninstall": lambda: shim.uninstall() is None,
    "OutOfMemoryError": lambda: issubclass(shim.OutOfMemoryError, Exception),
    "AcceleratorError": lambda: issubclass(shim.AcceleratorError, Exception),
    "DeferredCudaCallError": lambda: issubclass(shim.DeferredCudaCallError, Exception),
    "CudaOnlyError": lambda: issubclass(shim.CudaOnlyError, RuntimeError),
}
"""One use of each name, with its usual arguments; true where what came of it is right."""


def level_of(name: str, back_end: str) -> str:
    return str(getattr(ROWS[name], back_end)).partition(":")[0]


@pytest.mark.parametrize("public", sorted(shim.__all__))
def test_cell(public: str, name: str, caplog: pytest.LogCaptureFixture) -> None:
    level = level_of(public, name)
    with caplog.at_level(logging.WARNING, "torchport.shim"):
        if level == "raises":
            with pytest.raises(shim.CudaOnlyError, match=f"has no meaning on {name}: .*[a-z]"):
                PROBES[public]()
            return
        assert PROBES[public]()
    if level == "dropped":
        assert any(__file__ in record.getMessage() for record in caplog.records), "dropped without a word"
    if level == "same":
        assert "dropped" not in caplog.text


def test_table_all_and_probes_name_the_same() -> None:
    assert sorted(shim.__all__) == sorted(ROWS) == sorted(PROBES)
    assert len(shim.__all__) == len(set(shim.__all__))


def test_every_public_name_of_a_module_is_in_the_table() -> None:
    """A function or class that is meant for users stands in the table; helpers of the shim itself are named here."""
    helpers = {
        "backend", "available_backends", "mark_steps", "cuda_only", "raise_cuda_only", "is_out_of_memory", "is_chosen",
        "out_of_memory_error", "checkpoint_on_xla", "installed", "TensorType", "made",
    }  # fmt: skip
    for module in sorted(set(support.HOMES.values())):
        tree = ast.parse(Path(importlib.import_module(f"torchport.shim.{module}").__file__ or "").read_text())
        made = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        public = {name for name in made if not name.startswith("_")}
        if module not in support.HOMES:  # nvtx and profiler are namespaces
            assert public - helpers <= set(support.HOMES), module


def test_type_checkers_see_what_is_there() -> None:
    tree = ast.parse(Path(shim.__file__).read_text())
    guard = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.name: (node.module or "").rpartition(".")[2] for node in guard.body
        if isinstance(node, ast.ImportFrom) for alias in node.names
    }  # fmt: skip
    assert seen == {name: "shim" if name == home else home for name, home in support.HOMES.items()}


@pytest.mark.parametrize("group", support.GROUPS, ids=lambda group: group.module)
def test_cells_are_well_formed(group: support.Group) -> None:
    for row in group.rows:
        for back_end in support.BACKENDS:
            assert level_of(row.names[0], back_end) in support.LEVELS


def test_every_public_name_of_torch_cuda_is_known() -> None:
    """A name of torch.cuda is a name of the shim, means nothing elsewhere, or stands here with its counterpart."""
    elsewhere = {
        "device": "device_context", "amp": "autocast, GradScaler", "random": "the functions themselves",
        "memory": "the functions themselves", "streams": "Stream", "graphs": "graph", "CudaError": "CudaOnlyError",
        "has_half": "", "has_magma": "", "sparse": "tensor types", "classproperty": "", "green_contexts": "",
    }  # fmt: skip
    tensors = {name for name in dir(torch.cuda) if name.endswith(("Tensor", "Storage"))}
    own = set(torch.cuda.__all__) - tensors - set(support.HOMES) - set(support.CUDA_ONLY) - set(elsewhere)
    assert own == set()


def test_a_cuda_only_name_raises_when_it_is_called(name: str) -> None:
    if name == "cuda":
        pytest.skip("CUDA has them all")
    for public, advice in support.CUDA_ONLY.items():  # torch 2.9 has not all of them
        with pytest.raises(shim.CudaOnlyError, match=f"torch.cuda.{public} has no meaning on {name}: {advice}"):
            getattr(shim, public)()
    with pytest.raises(shim.CudaOnlyError, match=r"torch\.cuda\.nccl\.version has no meaning"):
        shim.nccl.version()  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        shim.no_such_name  # type: ignore[attr-defined]  # noqa: B018
