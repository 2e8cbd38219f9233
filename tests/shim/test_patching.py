"""install() and uninstall(): what CUDA calls of a program that is not edited do on each back end."""

from __future__ import annotations

import importlib
import os
import pathlib
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn

from torchport import shim
from torchport.shim import patching
from torchport.shim.patching import tables

HERE = __file__
REPLACED = (
    "torch",
    "torch.cuda",
    "torch.cuda.amp",
    "torch.accelerator",
    "torch.distributed",
    "torch.nn",
    "torch.optim",
)


@pytest.fixture
def session(name: str) -> Iterator[Any]:
    if name == "cuda":
        pytest.skip("on CUDA nothing is replaced")
    shim.install()
    yield patching.installed()
    shim.uninstall()


@pytest.fixture
def pretending(session: Any) -> Any:
    shim.install(pretend_cuda=True)
    return session


def logged(session: Any) -> dict[str, tuple[str, str]]:
    """What was mapped in this file: old -> (new, support)."""
    return {entry.old: (entry.new, entry.support) for entry in session.log if entry.file == HERE}


def everything() -> dict[str, Any]:
    """Every attribute of every place that has a table entry, and of the classes that are patched."""
    owners: dict[str, Any] = {name: importlib.import_module(name) for name in REPLACED}
    for cls in (
        torch.Tensor,
        nn.Module,
        nn.DataParallel,
        torch.utils.data.DataLoader,
        torch.autocast,
        torch.optim.AdamW,
    ):
        owners[cls.__name__] = cls
    for place in (*tables.SHIM_FUNCTIONS, *tables.DROPPED, *tables.DEVICE_FUNCTIONS, *tables.SUBMODULES):
        if place != "torch.Tensor":
            owners[place] = importlib.import_module(place)
    return {f"{place}.{key}": value for place, owner in owners.items() for key, value in list(vars(owner).items())}


def test_uninstall_puts_everything_back(name: str) -> None:
    shim.backend()
    before = everything()
    shim.install(pretend_cuda=True)
    shim.install()
    during = everything()
    shim.uninstall()
    shim.uninstall()
    after = everything()
    assert (before != during) is (name != "cuda")
    assert [key for key in before | after if before.get(key) is not after.get(key)] == []
    assert patching.installed() is None


@pytest.mark.parametrize("device", ["cuda", "cuda:0", "cuda:1", 0, torch.device("cuda"), torch.device("cuda", 0)])
def test_every_spelling_of_a_device_is_this_device(session: Any, device: Any) -> None:
    own = shim.device().type
    assert torch.zeros(2, device=device).device.type == own
    assert torch.zeros(2).to(device).device.type == own
    assert torch.zeros(2).to(device=device, dtype=torch.int32).device.type == own
    assert torch.zeros(2).to(device, torch.float16, non_blocking=True).dtype == torch.float16
    assert torch.zeros(2).cuda(device).device.type == own
    assert nn.Linear(2, 2).to(device).weight.device.type == own
    assert nn.Linear(2, 2).cuda(device).weight.device.type == own
    assert nn.Linear(2, 2, device=device).weight.device.type == own
    assert torch.zeros(2).new_ones(3, device=device).device.type == own
    assert torch.ones_like(torch.zeros(2), device=device).device.type == own


def test_default_devices(session: Any) -> None:
    with torch.device("cuda"):
        assert torch.zeros(2).device.type == shim.device().type
    torch.set_default_device("cuda")
    assert torch.zeros(2).device.type == shim.device().type
    torch.set_default_device(None)
    assert torch.zeros(2).device.type == "cpu"


def test_what_is_no_cuda_device_stays(session: Any, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "cuda:0" / "cuda"
    path.parent.mkdir()
    torch.save({"cuda": "cuda:1", "nccl": torch.ones(2)}, path)
    loaded = torch.load(path)
    assert loaded["cuda"] == "cuda:1"
    assert torch.zeros(2, device="cpu").device.type == "cpu"
    assert torch.zeros(2).to(torch.int64).dtype == torch.int64
    assert torch.zeros(2).to(torch.ones(1, dtype=torch.bool)).dtype == torch.bool
    assert torch.zeros(3, device="meta").device.type == "meta"
    assert str(torch.device("cuda:1")) == "cuda:1"
    with pytest.raises(RuntimeError):
        torch.zeros(2, device="cudas")
    assert sorted(logged(session)) == ["torch.load", "torch.save"]


class Box:
    """A class of the program with a method of that name."""

    def cuda(self) -> str:
        return "mine"

    def to(self, device: Any) -> Any:
        return device


def test_methods_of_the_program_stay(session: Any) -> None:
    assert Box().cuda() == "mine"
    assert Box().to("cuda") == "cuda"

    class Net(nn.Linear):
        moves = 0

        def cuda(self, device: Any = None) -> Any:
            self.moves += 1
            return super().cuda(device)

    net = Net(2, 2).cuda()
    assert (net.moves, net.weight.device.type) == (1, shim.device().type)


def test_questions_are_answered_truly(session: Any, name: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("WARNING", "torchport.shim"):
        assert torch.cuda.is_available() is False
        assert torch.cuda.device_count() == 0
    assert not torch.ones(1).cuda().is_cuda
    assert logged(session)["torch.cuda.is_available"] == ("False", "kept")
    assert "--pretend-cuda" in caplog.text
    assert f"{HERE}:" in caplog.text


def test_pretending(pretending: Any) -> None:
    assert torch.cuda.is_available() is True
    assert torch.cuda.device_count() == max(shim.device_count(), 1)
    assert torch.ones(1).cuda().is_cuda is (shim.device().type != "cpu")
    assert torch.ones(1).is_cuda is False
    assert torch.nn.functional.linear(torch.ones(1, 2), torch.ones(2, 2)).shape == (1, 2)
    assert logged(pretending)["torch.cuda.is_available"] == ("True", "emulated")


def test_functions_of_torch_cuda(session: Any, name: str) -> None:
    torch.cuda.set_device(0)
    torch.cuda.manual_seed_all(3)
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    with torch.cuda.device(0):
        assert torch.cuda.current_device() == 0
    assert isinstance(torch.cuda.get_device_name(0), str)
    assert torch.cuda.max_memory_allocated() >= 0
    assert torch.cuda.memory.max_memory_allocated() >= 0
    assert torch.cuda.nvtx.range_push("forward") == 0
    with torch.cuda.nvtx.range("step"):
        pass
    mapped = logged(session)
    assert mapped["torch.cuda.synchronize"] == ("shim.synchronize", "same" if name == "cpu" else "emulated")
    assert mapped["torch.cuda.manual_seed_all"][0] == "shim.manual_seed_all"
    assert mapped["torch.cuda.nvtx.range_push"] == ("nothing", "dropped")


def test_classes_of_cuda_tensors(session: Any) -> None:
    tensor = torch.cuda.FloatTensor([1, 2])
    assert (tensor.tolist(), tensor.device.type, tensor.dtype) == ([1, 2], shim.device().type, torch.float32)
    assert isinstance(tensor, torch.cuda.FloatTensor)
    assert not isinstance(tensor, torch.cuda.LongTensor)
    assert torch.ones(2).type(torch.cuda.LongTensor).dtype == torch.int64
    assert torch.ones(2).type("torch.cuda.HalfTensor").device.type == shim.device().type
    assert torch.ones(2).type() == "torch.FloatTensor"
    assert torch.ones(2).type(torch.LongTensor).device.type == "cpu"


def test_mixed_precision(session: Any, name: str) -> None:
    layer = nn.Linear(4, 4).cuda()
    expected = torch.float32 if name == "cpu" else torch.bfloat16
    for context in (torch.autocast("cuda"), torch.autocast(device_type="cuda", dtype=torch.float16), old_autocast()):
        assert isinstance(context, torch.autocast)
        with context:
            assert layer(torch.ones(2, 4, device="cuda")).dtype == expected
    with torch.autocast("cuda", enabled=False):
        assert layer(torch.ones(2, 4, device="cuda")).dtype == torch.float32
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.nn.functional.linear(torch.ones(2, 4), torch.ones(4, 4)).dtype == torch.bfloat16
    scaler = torch.amp.GradScaler("cuda")
    assert not scaler.is_enabled()
    assert isinstance(scaler, torch.amp.GradScaler)


def old_autocast() -> Any:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return torch.cuda.amp.autocast()


def test_page_locked_memory(session: Any) -> None:
    loader = torch.utils.data.DataLoader(range(4), pin_memory=True)
    assert loader.pin_memory is shim.is_pin_memory_supported()
    assert [batch.item() for batch in loader] == [0, 1, 2, 3]
    assert torch.ones(2).pin_memory().tolist() == [1, 1]
    assert torch.empty(2, pin_memory=True).shape == (2,)


def test_fused_optimizers(session: Any) -> None:
    parameters = [nn.Parameter(torch.ones(2).cuda())]
    optimizer = torch.optim.AdamW(parameters, fused=True)
    assert bool(optimizer.defaults["fused"]) is shim.is_fused_optimizer_supported()


def test_patches_of_somebody_else_are_respected(name: str) -> None:
    if name == "cuda":
        pytest.skip("on CUDA nothing is replaced")
    plain_zeros, plain_ones = torch.zeros, torch.ones
    calls = []

    def counting_zeros(*args: Any, **kwargs: Any) -> torch.Tensor:
        calls.append("zeros")
        return plain_zeros(*args, **kwargs)

    torch.zeros = counting_zeros  # before
    shim.install()
    try:
        assert torch.zeros(2, device="cuda").device.type == shim.device().type
        ours = torch.ones

        def counting_ones(*args: Any, **kwargs: Any) -> torch.Tensor:
            calls.append("ones")
            return ours(*args, **kwargs)

        torch.ones = counting_ones  # after
        assert torch.ones(2, device="cuda").device.type == shim.device().type
        shim.uninstall()
        assert torch.zeros is counting_zeros
        assert torch.ones is counting_ones
        assert torch.ones(2).tolist() == [1, 1]
        assert calls == ["zeros", "ones", "ones"]
    finally:
        shim.uninstall()
        torch.zeros, torch.ones = plain_zeros, plain_ones


def test_functions_that_were_kept_are_torchs_own_after_uninstall(name: str) -> None:
    if name == "cuda":
        pytest.skip("on CUDA nothing is replaced")
    shim.install()
    kept = torch.zeros
    shim.uninstall()
    assert kept(2).tolist() == [0, 0]
    with pytest.raises((AssertionError, RuntimeError)):
        kept(2, device="cuda")


def test_each_call_site_once(session: Any) -> None:
    for _ in range(3):
        torch.zeros(2, device="cuda")
    entries = [entry for entry in session.log if entry.old == "torch.zeros('cuda')"]
    assert [(entry.file, entry.count) for entry in entries] == [(HERE, 3)]


def test_tracing_sees_through(session: Any, name: str) -> None:
    if name == "tpu":
        pytest.skip("the compiler of TorchTPU needs a TPU")

    @torch.compile(backend="eager", fullgraph=True)
    def double(x: torch.Tensor) -> torch.Tensor:
        return x.to("cuda") * 2

    @torch.compile(backend="eager", fullgraph=True)
    def twos() -> torch.Tensor:
        return torch.ones(2, device="cuda") * 2

    assert double(torch.ones(2)).tolist() == [2, 2]
    assert twos().tolist() == [2, 2]


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")
def test_scripting_still_works(session: Any) -> None:
    @torch.jit.script
    def double(x: torch.Tensor) -> torch.Tensor:
        return x.to(torch.float32) + torch.ones([2])

    assert double(torch.ones(2)).tolist() == [2, 2]


def test_generators_of_cuda(session: Any) -> None:
    generator = torch.Generator("cuda").manual_seed(4)
    first = torch.rand(3, device="cuda", generator=generator).tolist()
    again = torch.Generator(device=torch.device("cuda", 0)).manual_seed(4)
    assert torch.rand(3, device="cuda", generator=again).tolist() == first
    assert isinstance(generator, torch.Generator)
    assert isinstance(torch.Generator(), torch.Generator)
    assert logged(session)["torch.Generator('cuda')"][0] == "shim.Generator"

    def draw(generator: torch.Generator | None) -> torch.Tensor:
        return torch.rand(2, generator=generator)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer versions of torch say that it is deprecated
        scripted = torch.jit.script(draw)
    assert scripted(None).shape == (2,)
    with torch.random.fork_rng(devices=[0]):
        torch.rand(1)


def test_kernels_of_attention(session: Any) -> None:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q = torch.randn(1, 2, 4, 8)
    expected = nn.functional.scaled_dot_product_attention(q, q, q)
    kernel = SDPBackend.EFFICIENT_ATTENTION  # CUDA's alone; TorchTPU's plug-in for the CPU has MATH alone
    with sdpa_kernel(kernel):
        found = nn.functional.scaled_dot_product_attention(*[q.cuda()] * 3)
    assert torch.allclose(found.cpu(), expected, atol=1e-2)
    assert sdpa_kernel([kernel])(lambda: 3)() == 3
    with torch.backends.cuda.sdp_kernel(enable_flash=False, enable_math=True):
        found = nn.functional.scaled_dot_product_attention(*[q.cuda()] * 3)
    assert torch.allclose(found.cpu(), expected, atol=1e-2)


CUDA_ONLY = {
    "MemPool": lambda: torch.cuda.MemPool(),
    "cudart": lambda: torch.cuda.cudart().cudaProfilerStart(),
    "ExternalStream": lambda: torch.cuda.ExternalStream(1),
    "current_blas_handle": lambda: torch.cuda.current_blas_handle(),
    "caching_allocator_alloc": lambda: torch.cuda.caching_allocator_alloc(8),
    "nccl.all_reduce": lambda: torch.cuda.nccl.all_reduce([torch.ones(1)]),
}


@pytest.mark.parametrize("what", CUDA_ONLY)
def test_what_only_cuda_has_says_so(session: Any, name: str, what: str) -> None:
    """Each version of torch fails in words of its own."""
    with pytest.raises(shim.CudaOnlyError, match=f"torch.cuda.{what} has no meaning on {name}: "):
        CUDA_ONLY[what]()


def test_what_works_without_cuda_goes_on_working(session: Any) -> None:
    assert isinstance(torch.ones(1), torch.Tensor)
    assert not isinstance(3, torch.cuda.MemPool)
    torch.cuda._lazy_init()
    torch.cuda._sleep(1000)
    torch.cuda.memory._record_memory_history()
    torch.cuda.memory._dump_snapshot("snapshot.pickle")
    torch.backends.cuda.preferred_linalg_library("magma")


def test_further_groups_for_nccl(session: Any, tmp_path: pathlib.Path) -> None:
    dist, environment = torch.distributed, dict(os.environ)  # a group of one TPU sets what a launcher would
    dist.init_process_group("nccl", init_method=f"file://{tmp_path / 'store'}", rank=0, world_size=1)
    try:
        group = dist.new_group([0], backend="nccl")
        value = torch.ones(2).cuda()
        dist.all_reduce(value, group=group)
        assert value.tolist() == [1, 1]
    finally:
        dist.destroy_process_group()
        for key in os.environ.keys() - environment.keys():
            del os.environ[key]
