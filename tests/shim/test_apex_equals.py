"""What Apex's optimizers and layers compute, by the formulas of their kernels, and what is put in their place."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from torchport.catalog import load_rules
from torchport.project.source import Source
from torchport.rewrite import Migrator

RULES = tuple(rule for rule in load_rules() if not rule.lint_only)
Step = Callable[[torch.Tensor, torch.Tensor, dict[str, torch.Tensor], int], torch.Tensor]


def migrated(call: str, name: str) -> str:
    """What a call of one of Apex's classes becomes."""
    module = "optimizers" if "(params" in call else "normalization"
    text = f"import torch\nfrom apex.{module} import {name}\nx = {call}\n"
    outcome = Migrator(RULES, "portable")(Source("program.py", text, "utf-8", False))
    assert outcome.text is not None
    assert "apex" not in outcome.text
    return outcome.text.splitlines()[-1].removeprefix("x = ")


def adam(lr: float, decay: float, *, decoupled: bool = True, betas: tuple[float, float] = (0.9, 0.999)) -> Step:
    """csrc/multi_tensor_adam.cu of Apex, with its default eps and bias correction."""

    def step(p: torch.Tensor, g: torch.Tensor, state: dict[str, torch.Tensor], t: int) -> torch.Tensor:
        g = g if decoupled else g + decay * p
        state["m"] = betas[0] * state.get("m", torch.zeros_like(p)) + (1 - betas[0]) * g
        state["v"] = betas[1] * state.get("v", torch.zeros_like(p)) + (1 - betas[1]) * g * g
        update = (state["m"] / (1 - betas[0] ** t)) / ((state["v"] / (1 - betas[1] ** t)).sqrt() + 1e-8)
        return p - lr * (update + (decay * p if decoupled else 0))

    return step


def sgd(lr: float, momentum: float, decay: float, *, nesterov: bool = False) -> Step:
    """csrc/multi_tensor_sgd_kernel.cu of Apex, weight decay before momentum."""

    def step(p: torch.Tensor, g: torch.Tensor, state: dict[str, torch.Tensor], t: int) -> torch.Tensor:
        g = g + decay * p
        state["m"] = g if t == 1 else momentum * state["m"] + g
        return p - lr * (g + momentum * state["m"] if nesterov else state["m"])

    return step


def adagrad(lr: float, decay: float) -> Step:
    """csrc/multi_tensor_adagrad.cu of Apex in its mode 0."""

    def step(p: torch.Tensor, g: torch.Tensor, state: dict[str, torch.Tensor], t: int) -> torch.Tensor:
        g = g + decay * p
        state["h"] = state.get("h", torch.zeros_like(p)) + g * g
        return p - lr * g / (state["h"].sqrt() + 1e-10)

    return step


@pytest.mark.parametrize(
    ("call", "step"),
    [
        ("FusedAdam(params)", adam(1e-3, 0.0)),
        ("FusedAdam(params, lr=0.1, weight_decay=0.2, set_grad_none=False)", adam(0.1, 0.2)),
        ("FusedAdam(params, 0.1, betas=(0.8, 0.9), adam_w_mode=True)", adam(0.1, 0.0, betas=(0.8, 0.9))),
        ("FusedAdam(params, lr=0.1, adam_w_mode=False, weight_decay=0.2)", adam(0.1, 0.2, decoupled=False)),
        ("FusedAdam(params, lr=0.1, adam_w_mode=False)", adam(0.1, 0.0, decoupled=False)),
        ("FusedSGD(params, 0.1, 0.9, weight_decay=0.01)", sgd(0.1, 0.9, 0.01)),
        ("FusedSGD(params, lr=0.1, momentum=0.9, nesterov=True)", sgd(0.1, 0.9, 0.0, nesterov=True)),
        ("FusedAdagrad(params)", adagrad(1e-2, 0.0)),
        ("FusedAdagrad(params, lr=0.1, weight_decay=0.2)", adagrad(0.1, 0.2)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_optimizer_takes_the_same_steps(call: str, step: Step) -> None:
    torch.manual_seed(0)
    weight = torch.nn.Parameter(torch.randn(7, dtype=torch.float64))
    expected, state = weight.detach().clone(), {}
    optimizer = eval(migrated(call, call.partition("(")[0]), {"torch": torch, "params": [weight]})
    for t in range(1, 6):
        weight.grad = torch.randn(7, dtype=torch.float64)
        expected = step(expected, weight.grad, state, t)
        optimizer.step()
        torch.testing.assert_close(weight.detach(), expected)


def test_rms_norm_has_the_eps_of_apex() -> None:
    x = torch.randn(3, 5) * 1e-3
    layer = eval(migrated("FusedRMSNorm(5)", "FusedRMSNorm"), {"torch": torch})
    torch.testing.assert_close(layer(x), x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5))


def test_layer_norm_has_the_arguments_of_apex() -> None:
    x = torch.randn(3, 5) * 1e-3
    layer = eval(migrated("FusedLayerNorm(5, 1e-6, False, memory_efficient=True)", "FusedLayerNorm"), {"torch": torch})
    centred = x - x.mean(-1, keepdim=True)
    torch.testing.assert_close(layer(x), centred * torch.rsqrt(centred.pow(2).mean(-1, keepdim=True) + 1e-6))
    assert not list(layer.parameters())
