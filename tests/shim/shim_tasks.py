"""Models of the usual kinds with their losses, and the training loop of a migrated program around them.

All are tiny: on TorchTPU every operator is compiled for every shape.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from shim_models import VOCABULARY, Block, Gpt, Lstm, mlp
from torch import nn

from torchport import shim

STEPS = 20
"""Batches of one run; half of them before the checkpoint, and two for each step of the optimizer."""

Batch = tuple[torch.Tensor, ...]
Loss = Callable[[nn.ModuleDict, Batch], torch.Tensor]


@dataclass(frozen=True)
class Task:
    """What is trained, on what, and how: one loss for each optimizer."""

    build: Callable[[], nn.ModuleDict]
    batch: Callable[[torch.Generator], Batch]
    losses: dict[str, Loss] = field(default_factory=dict)
    """The module that an optimizer trains, and its loss."""
    optimizer: Callable[[Any], torch.optim.Optimizer] = lambda parameters: torch.optim.AdamW(
        parameters, lr=3e-3, eps=1e-4
    )
    frozen: tuple[type[nn.Module], ...] = ()
    """Modules that stay in eval mode after the checkpoint, as programs do with BatchNorm."""


def images(generator: torch.Generator) -> Batch:
    return torch.randn(4, 3, 8, 8, generator=generator), torch.randint(0, 10, (4,), generator=generator)


def tokens(generator: torch.Generator) -> Batch:
    drawn = torch.randint(0, VOCABULARY, (4, 6), generator=generator)
    return drawn[:, :-1].contiguous(), drawn[:, 1:].contiguous()


def vectors(generator: torch.Generator) -> Batch:
    return torch.randn(6, 16, generator=generator), torch.randint(0, 10, (6,), generator=generator)


def classified(models: nn.ModuleDict, batch: Batch) -> torch.Tensor:
    output = models["net"](batch[0])
    return F.cross_entropy(output.reshape(-1, output.size(-1)), batch[1].reshape(-1))


class BasicBlock(nn.Module):
    def __init__(self, width: int, stride: int) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.Conv2d(width, width, 3, 1, 1)
        self.norms = nn.ModuleList(nn.BatchNorm2d(width) for _ in range(2))
        self.shortcut = nn.Identity() if stride == 1 else nn.Conv2d(width, width, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu(self.norms[0](self.first(x)))
        return F.relu(self.norms[1](self.second(y)) + self.shortcut(x))


def resnet18() -> nn.ModuleDict:
    """The eighteen layers of ResNet-18, with four channels each."""
    blocks = [BasicBlock(4, stride) for stride in (1, 1, 2, 1, 2, 1, 1, 1)]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 10)]
    stem = [nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU()]
    return nn.ModuleDict({"net": nn.Sequential(*stem, *blocks, *head)})


class UNet(nn.Module):
    """One level down and up, with the time of the diffusion added between."""

    def __init__(self) -> None:
        super().__init__()
        self.time = nn.Linear(8, 8)
        self.into = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.GroupNorm(2, 8)
        self.down = nn.Conv2d(8, 8, 3, 2, 1)
        self.up = nn.ConvTranspose2d(8, 8, 2, 2)
        self.out = nn.Conv2d(16, 3, 3, padding=1)

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        angles = time[:, None] * torch.arange(1, 5, device=x.device)
        skip = F.silu(self.norm(self.into(x)))
        middle = self.down(skip) + self.time(torch.cat([angles.sin(), angles.cos()], 1))[:, :, None, None]
        return self.out(torch.cat([skip, self.up(F.silu(middle))], 1))


def noisy(generator: torch.Generator) -> Batch:
    return (*(torch.randn(2, 3, 8, 8, generator=generator) for _ in range(2)), torch.rand(2, generator=generator))


def denoised(models: nn.ModuleDict, batch: Batch) -> torch.Tensor:
    image, noise, time = batch
    signal = torch.cos(time * math.pi / 2)[:, None, None, None]
    mixed = signal * image + (1 - signal**2).sqrt() * noise
    return F.mse_loss(models["net"](mixed, time), noise)


class Vit(nn.Module):
    """Patches of a picture, blocks that are recomputed in the backward pass, a class token."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 16, 4, 4)
        self.token = nn.Parameter(torch.zeros(1, 1, 16))
        self.blocks = nn.ModuleList(Block(causal=False) for _ in range(2))
        self.head = nn.Linear(16, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), 1, 16), x], 1)
        for block in self.blocks:
            x = shim.checkpoint(block, x, use_reentrant=False) if self.training else block(x)
        return self.head(x[:, 0])


def vit() -> nn.ModuleDict:
    net = Vit()
    average = copy.deepcopy(net)
    average.requires_grad_(False)
    return nn.ModuleDict({"net": net, "average": average})


class Moe(nn.Module):
    """Each token goes to the best two of four experts; the others weigh nothing, so shapes do not change."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(16, 4)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(16, 16), nn.GELU()) for _ in range(4))
        self.head = nn.Linear(16, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shares = self.gate(x).softmax(-1)
        best, chosen = shares.topk(2, -1)
        weights = torch.zeros_like(shares).scatter(-1, chosen, best / best.sum(-1, keepdim=True))
        outputs = torch.stack([expert(x) for expert in self.experts], -1)
        return self.head((outputs * weights[..., None, :]).sum(-1))


def gan() -> nn.ModuleDict:
    made = nn.Sequential(nn.Linear(4, 16), nn.LeakyReLU(0.2), nn.Linear(16, 16), nn.Tanh())
    judge = nn.Sequential(nn.Linear(16, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
    return nn.ModuleDict({"judge": judge, "net": made})


def samples(generator: torch.Generator) -> Batch:
    return torch.randn(6, 16, generator=generator), torch.randn(6, 4, generator=generator)


def judged(models: nn.ModuleDict, batch: Batch) -> torch.Tensor:
    models["judge"].requires_grad_(True)
    true, false = models["judge"](batch[0]), models["judge"](models["net"](batch[1]).detach())
    ones, zeros = torch.ones_like(true), torch.zeros_like(false)
    return F.binary_cross_entropy_with_logits(true, ones) + F.binary_cross_entropy_with_logits(false, zeros)


def fooled(models: nn.ModuleDict, batch: Batch) -> torch.Tensor:
    models["judge"].requires_grad_(False)
    judgement = models["judge"](models["net"](batch[1]))
    return F.binary_cross_entropy_with_logits(judgement, torch.ones_like(judgement))


def alone(build: Callable[[], nn.Module]) -> Callable[[], nn.ModuleDict]:
    return lambda: nn.ModuleDict({"net": build()})


def sgd(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.02, momentum=0.9, weight_decay=1e-3)


TASKS = {
    "mlp": Task(alone(mlp), vectors, {"net": classified}),
    "resnet18": Task(resnet18, images, {"net": classified}, sgd, frozen=(nn.BatchNorm2d,)),
    "gpt": Task(alone(Gpt), tokens, {"net": classified}),
    "lstm": Task(alone(Lstm), tokens, {"net": classified}),
    "gan": Task(gan, samples, {"judge": judged, "net": fooled}),
    "unet": Task(alone(UNet), noisy, {"net": denoised}),
    "vit": Task(vit, images, {"net": classified}),
    "moe": Task(alone(Moe), vectors, {"net": classified}),
}


class Training:
    """One run. The optimizers are built before the move, on purpose, as programs for CUDA may do."""

    def __init__(self, task: Task, device: torch.device, seed: int = 0, amp: torch.dtype | None = None) -> None:
        torch.manual_seed(seed)
        self.task, self.device, self.amp = task, device, amp
        self.models = task.build()
        self.optimizers = {key: task.optimizer(self.models[key].parameters()) for key in task.losses}
        self.schedulers = [
            torch.optim.lr_scheduler.OneCycleLR(
                optimizer, max_lr=optimizer.param_groups[0]["lr"], total_steps=STEPS // 2
            )
            for optimizer in self.optimizers.values()
        ]
        self.models.to(device)
        self.scaler = shim.GradScaler()
        self.step = 0

    def state(self) -> dict[str, Any]:
        """What a checkpoint holds."""
        return {
            "models": self.models.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers.values()],
            "schedulers": [scheduler.state_dict() for scheduler in self.schedulers],
            "scaler": self.scaler.state_dict(),
            "step": self.step,
        }

    def load(self, state: dict[str, Any]) -> None:
        self.models.load_state_dict(state["models"])
        for optimizer, saved in zip(self.optimizers.values(), state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        for scheduler, saved in zip(self.schedulers, state["schedulers"], strict=True):
            scheduler.load_state_dict(saved)
        self.scaler.load_state_dict(state["scaler"])
        self.step = state["step"]

    def epoch(self) -> list[float]:
        """The losses of half of the steps, and of an evaluation after them."""
        self.models.train()
        for module in self.models.modules():
            if self.step >= STEPS // 2 and isinstance(module, self.task.frozen):
                module.eval()
        generator = torch.Generator().manual_seed(100 + self.step)
        losses = []
        for batch in shim.steps([self.task.batch(generator) for _ in range(STEPS // 2)]):
            self.step += 1
            moved = tuple(part.to(self.device, non_blocking=True) for part in batch)
            for key, loss_of in self.task.losses.items():
                with shim.autocast(enabled=self.amp is not None, dtype=self.amp):
                    loss = loss_of(self.models, moved)
                self.scaler.scale(loss / 2).backward()
                if self.step % 2 == 0:
                    self._update(key)
                losses.append(loss.detach())
        return [loss.item() for loss in losses] + self._evaluate()

    def _update(self, key: str) -> None:
        optimizer = self.optimizers[key]
        self.scaler.unscale_(optimizer)
        shim.clip_grad_norm_(self.models[key].parameters(), 1.0)
        self.scaler.step(optimizer)
        self.scaler.update()
        optimizer.zero_grad(set_to_none=True)
        self.schedulers[list(self.optimizers).index(key)].step()
        if "average" in self.models:
            with torch.no_grad():
                for old, new in zip(self.models["average"].parameters(), self.models["net"].parameters(), strict=True):
                    old.lerp_(new, 0.1)

    def _evaluate(self) -> list[float]:
        self.models.eval()
        batch = tuple(part.to(self.device) for part in self.task.batch(torch.Generator().manual_seed(7)))
        judged_as = nn.ModuleDict({"net": self.models["average"]}) if "average" in self.models else self.models
        with shim.inference_mode():
            return [loss(judged_as, batch).item() for loss in self.task.losses.values()]
