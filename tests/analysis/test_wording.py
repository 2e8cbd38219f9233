"""What names say of functions, classes and tests."""

from __future__ import annotations

import pytest

from torchport.analysis.wording import is_host_class, is_host_function, is_like_model, is_mover, is_rare

HOST = (
    "main save _save save_images __len__ on_train_epoch_end epoch_end_hook test_loss worker_init reset_x_init_ __init"
)
PREDICTING = "predict predict_all to_np img_tensor_to_images forward_on_instance"
SEVERAL_WORDS = "compute_on_dataset visualise_mask get_args_parser from_pretrained"
OFTEN = "predict_step predict_ to_host _to_np saved save_ get_loss mains test_ ____ _init_ domain on_train_end loadall"
RARE = "debug is_Debug is_logging profiling not_exportable exportable_x onnx_export should_log_now"
USUAL = "profil debugger logs unverbose log_that"
MOVERS = "to_cuda _move_data_to_gpu move_to move_to_device cuda_ize cudaize tensors_to_device"
OTHERS = "into_cuda _move_to to cuda to_host move_data"


@pytest.mark.parametrize("name", [*HOST.split(), *PREDICTING.split(), *SEVERAL_WORDS.split()])
def test_functions_that_run_seldom_or_prepare_data(name: str) -> None:
    assert is_host_function(name)


@pytest.mark.parametrize("name", [*OFTEN.split(), ""])
def test_other_functions_may_run_in_each_step(name: str) -> None:
    assert not is_host_function(name)


def test_classes_that_work_on_the_host() -> None:
    assert all(map(is_host_class, ("ImageDataset", "Collator", "MyAugmentation", "AverageMeter")))
    assert not any(map(is_host_class, ("Datasets", "Meters", "Net", "")))


@pytest.mark.parametrize("name", RARE.split())
def test_tests_that_seldom_hold(name: str) -> None:
    assert is_rare(name)


@pytest.mark.parametrize("name", [*USUAL.split(), ""])
def test_other_tests_may_hold_in_each_step(name: str) -> None:
    assert not is_rare(name)


def test_names_of_models() -> None:
    assert all(map(is_like_model, ("net", "G_model", "Encoder")))
    assert not any(map(is_like_model, ("planet", "model_fn", "")))


@pytest.mark.parametrize("name", MOVERS.split())
def test_functions_that_move_to_the_device(name: str) -> None:
    assert is_mover(name)


@pytest.mark.parametrize("name", [*OTHERS.split(), ""])
def test_other_functions_are_not_said_to_move(name: str) -> None:
    assert not is_mover(name)
