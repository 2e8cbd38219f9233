"""Files: what any back end wrote, any other reads."""

from __future__ import annotations

import io
import pathlib
import pickle
import zipfile
from collections import OrderedDict
from typing import Any, NamedTuple

import pytest
import torch
from shim_models import Gpt, batches, train
from torch import nn

from torchport import shim


class Pair(NamedTuple):
    first: torch.Tensor
    second: str


def retag(path: pathlib.Path, old: str, new: str) -> None:
    """Change the device tag of every storage in a torch.save file, as if it had been written on another device.

    Pickle stores the tag as BINUNICODE with a length of four bytes.
    """

    def encoded(text: str) -> bytes:
        return b"X" + len(text).to_bytes(4, "little") + text.encode()

    with zipfile.ZipFile(path) as archive:
        records = {info.filename: archive.read(info) for info in archive.infolist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for filename, data in records.items():
            if filename.endswith("data.pkl"):
                assert encoded(old) in data
                data = data.replace(encoded(old), encoded(new))
            archive.writestr(filename, data)


@pytest.fixture
def trained() -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = Gpt()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    train(model, batches("gpt", 2), shim.device(), optimizer=optimizer)
    return model, optimizer


def plain_load(source: Any, **options: Any) -> Any:
    """As a machine with torch alone reads it."""
    return torch.load(source, **options)


def test_a_checkpoint_holds_cpu_tensors_and_everything_else(
    trained: tuple[nn.Module, torch.optim.Optimizer], tmp_path: pathlib.Path, name: str
) -> None:
    model, optimizer = trained
    path = tmp_path / "a.pt"
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "epoch": 3,
        "best": 0.5,
        "names": ["a", ("b", None)],
        "nested": [{"x": torch.arange(3).to(shim.device())}],
    }
    shim.save(state, path)
    assert all(p.device.type == shim.device().type for p in model.parameters())
    read = plain_load(path)
    assert isinstance(read["model"], OrderedDict)
    if name != "cuda":
        assert all(value.device.type == "cpu" for value in read["model"].values())
        moments = [v for s in read["optimizer"]["state"].values() for v in s.values()]
        assert all(v.device.type == "cpu" for v in moments)
    assert (read["epoch"], read["best"], read["names"]) == (3, 0.5, ["a", ("b", None)])
    assert read["nested"][0]["x"].tolist() == [0, 1, 2]
    for key, value in model.state_dict().items():
        assert torch.equal(value.cpu(), read["model"][key].cpu())


def test_training_resumes_where_it_stopped(
    trained: tuple[nn.Module, torch.optim.Optimizer], tmp_path: pathlib.Path
) -> None:
    model, optimizer = trained
    shim.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "a.pt")
    expected = train(model, batches("gpt", 2), shim.device(), optimizer=optimizer)
    again = Gpt()
    new_optimizer = torch.optim.AdamW(again.parameters(), lr=1e-2)
    again.to(shim.device())
    read = shim.load(tmp_path / "a.pt", map_location=shim.device())
    again.load_state_dict(read["model"])
    new_optimizer.load_state_dict(read["optimizer"])
    assert train(again, batches("gpt", 2), shim.device(), optimizer=new_optimizer) == pytest.approx(expected, rel=1e-5)


def test_tied_storage_stays_tied(trained: tuple[nn.Module, torch.optim.Optimizer], tmp_path: pathlib.Path) -> None:
    shim.save(trained[0].state_dict(), tmp_path / "a.pt")
    read = plain_load(tmp_path / "a.pt")
    read["head.weight"].zero_()
    assert read["embedding.weight"].abs().sum() == 0
    on_device = shim.load(tmp_path / "a.pt", map_location="cuda")
    on_device["head.weight"].zero_()
    shim.sync()
    assert on_device["embedding.weight"].abs().sum().item() == 0


def test_a_module_object(trained: tuple[nn.Module, torch.optim.Optimizer], tmp_path: pathlib.Path) -> None:
    model = trained[0]
    model.note = "kept"  # type: ignore[assignment]
    shim.save(model, tmp_path / "m.pt")
    read = plain_load(tmp_path / "m.pt", weights_only=False, map_location="cpu")
    assert read.note == "kept"
    assert read.head.weight is read.embedding.weight
    assert isinstance(read.head.weight, nn.Parameter)
    moved = shim.load(tmp_path / "m.pt", map_location="cuda", weights_only=False)
    assert moved.head.weight is moved.embedding.weight
    tokens = batches("gpt", 1)[0][0].to(shim.device())
    assert torch.allclose(moved(tokens).cpu(), model(tokens).cpu(), atol=1e-5)


def test_kinds_of_tensors(tmp_path: pathlib.Path) -> None:
    base = torch.arange(6.0).view(2, 3).to(shim.device())
    leaf = torch.ones(2, device=shim.device(), requires_grad=True)
    state = {
        "transposed": base.t(),
        "row": base[1],
        "leaf": leaf,
        "frozen": nn.Parameter(base.clone(), requires_grad=False),
        "pair": Pair(base, "text"),
        "empty": torch.empty(0, device=shim.device()),
        "scalar": torch.tensor(7).to(shim.device()),
        "flags": torch.tensor([True, False]).to(shim.device()),
        "half": base.bfloat16(),
    }
    shim.save(state, tmp_path / "t.pt")
    read = plain_load(tmp_path / "t.pt", weights_only=False, map_location="cpu")
    assert read["transposed"].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert read["row"].tolist() == [3, 4, 5]
    assert read["leaf"].requires_grad
    assert isinstance(read["frozen"], nn.Parameter)
    assert not read["frozen"].requires_grad
    assert type(read["pair"]) is Pair
    assert (read["empty"].numel(), read["scalar"].item(), read["flags"].tolist()) == (0, 7, [True, False])
    assert read["half"].dtype == torch.bfloat16


@pytest.mark.parametrize("target", ["buffer", "string", "path", "legacy", "protocol"])
def test_targets_and_formats(target: str, tmp_path: pathlib.Path) -> None:
    tensor = torch.arange(3.0).to(shim.device())
    place: Any = {"buffer": io.BytesIO(), "string": str(tmp_path / "a")}.get(target, tmp_path / "a")
    options: dict[str, Any] = {}
    if target == "legacy":
        options["_use_new_zipfile_serialization"] = False
    if target == "protocol":
        options = {"pickle_protocol": 4, "pickle_module": pickle}
    shim.save({"t": tensor}, place, **options)
    if target == "buffer":
        place.seek(0)
    read = shim.load(place, map_location="cpu", weights_only=target != "protocol")  # which knows protocol 2 alone
    assert read["t"].tolist() == [0, 1, 2]


class TestLoad:
    """Of files from other devices. The tag is edited, as no machine has all of the devices."""

    @pytest.fixture
    def path(self, tmp_path: pathlib.Path) -> pathlib.Path:
        weight = torch.arange(6.0)
        state = {"weight": weight, "view": weight[2:4], "rng": torch.zeros(4, dtype=torch.uint8), "epoch": 1}
        torch.save(state, tmp_path / "a.pt")
        return tmp_path / "a.pt"

    @pytest.mark.parametrize("location", ["cuda", "cuda:0", torch.device("cuda"), torch.device("cuda:0"), "own", 0])
    @pytest.mark.parametrize("tag", ["cpu", "cuda:0", "cuda:3", "tpu:0"])
    def test_a_named_accelerator_is_this_one(self, path: pathlib.Path, location: Any, tag: str) -> None:
        if tag != "cpu":
            retag(path, "cpu", tag)
        read = shim.load(path, map_location=shim.device() if location == "own" else location)
        own = shim.device().type
        assert {read["weight"].device.type, read["view"].device.type} == {own}
        assert read["view"].tolist() == [2, 3]
        assert read["epoch"] == 1

    @pytest.mark.parametrize("tag", ["cuda:0", "tpu:0"])
    def test_without_a_location_the_tag_decides(self, path: pathlib.Path, tag: str) -> None:
        assert shim.load(path)["weight"].device.type == "cpu"
        retag(path, "cpu", tag)
        read = shim.load(path)
        assert read["weight"].device.type == shim.device().type
        assert read["weight"].tolist() == list(range(6))

    def test_cpu_is_cpu(self, path: pathlib.Path) -> None:
        retag(path, "cpu", "cuda:0")
        assert shim.load(path, map_location="cpu")["weight"].device.type == "cpu"
        assert shim.load(path, map_location=torch.device("cpu"))["weight"].device.type == "cpu"

    def test_callables_and_dicts(self, path: pathlib.Path) -> None:
        retag(path, "cpu", "cuda:1")
        read = shim.load(path, map_location=lambda storage, tag: storage)
        assert read["weight"].device.type == "cpu"
        assert shim.load(path, map_location={"cuda:1": "cuda:0"})["weight"].device.type == shim.device().type
        assert shim.load(path, map_location={"cuda:1": "cpu"})["weight"].device.type == "cpu"

    @pytest.mark.parametrize("tag", ["xla:0", "xla:1"])
    @pytest.mark.parametrize("location", [None, "cpu", "cuda"])
    def test_tensors_that_torch_save_wrote_from_xla(self, tmp_path: pathlib.Path, tag: str, location: Any) -> None:
        """torch.save writes them as an array, a dtype and a device name."""

        class AsXla:
            def __reduce__(self) -> Any:
                array = torch.arange(3.0).numpy()
                return (torch._utils._rebuild_device_tensor_from_numpy, (array, torch.float32, tag, False))

        path = tmp_path / "x.pt"
        torch.save({"a": AsXla(), "b": torch.ones(2)}, path)
        with path.open("rb") as file:
            for source in (path, file):
                read = shim.load(source, map_location=location, weights_only=False)
                assert read["a"].device.type == ("cpu" if location == "cpu" else shim.device().type)
                assert read["a"].tolist() == [0, 1, 2]

    def test_weights_only_is_torchs_default(self, tmp_path: pathlib.Path) -> None:
        torch.save(nn.Linear(1, 1), tmp_path / "m.pt")
        with pytest.raises(pickle.UnpicklingError):
            shim.load(tmp_path / "m.pt")
        assert isinstance(shim.load(tmp_path / "m.pt", weights_only=False), nn.Linear)

    def test_a_missing_file_is_torchs_error(self, tmp_path: pathlib.Path) -> None:
        with pytest.raises(FileNotFoundError):
            shim.load(tmp_path / "none.pt", map_location="cuda")

    def test_mmap(self, path: pathlib.Path) -> None:
        assert shim.load(path, mmap=True, map_location="cpu")["weight"].tolist() == list(range(6))
