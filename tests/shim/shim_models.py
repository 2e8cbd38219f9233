"""Small models of the usual shapes, and one training loop, as a migrated program would write it."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

from torchport import shim

VOCABULARY, WIDTH, LENGTH = 17, 16, 5


class Block(nn.Module):
    """A pre-norm block of attention and a small network."""

    def __init__(self, causal: bool = True) -> None:
        super().__init__()
        self.causal = causal
        self.before_attention = nn.LayerNorm(WIDTH)
        self.attention = nn.Linear(WIDTH, 3 * WIDTH)
        self.projection = nn.Linear(WIDTH, WIDTH)
        self.before_mlp = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        q, k, v = (
            part.view(batch, length, 2, WIDTH // 2).transpose(1, 2)
            for part in self.attention(self.before_attention(x)).split(WIDTH, dim=2)
        )
        # TorchTPU's CPU plug-in has a backward pass for the MATH kernel only; bring_up() switches the others off
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.projection(y.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.mlp(self.before_mlp(x))


class Gpt(nn.Module):
    """Two blocks with causal attention; the head shares its weight with the embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.position = nn.Parameter(torch.zeros(LENGTH, WIDTH))
        self.blocks = nn.Sequential(Block(), Block())
        self.last = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.last(self.blocks(self.embedding(tokens) + self.position)))


class Lstm(nn.Module):
    """An LSTM language model; one layer and five tokens, as TorchTPU compiles each of its time steps."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.lstm = nn.LSTM(WIDTH, WIDTH, batch_first=True)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.lstm(self.embedding(tokens))[0])


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(WIDTH, 32), nn.ReLU(), nn.LayerNorm(32), nn.Linear(32, 10))


MODELS: dict[str, Callable[[], nn.Module]] = {"mlp": mlp, "gpt": Gpt, "lstm": Lstm}


def batches(model: str, count: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Seeded input and target batches for a model of ``MODELS``."""
    generator = torch.Generator().manual_seed(7)
    made = []
    for _ in range(count):
        if model in ("gpt", "lstm"):
            tokens = torch.randint(0, VOCABULARY, (4, LENGTH + 1), generator=generator)
            made.append((tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()))
        else:
            made.append((torch.randn(4, WIDTH, generator=generator), torch.randint(0, 10, (4,), generator=generator)))
    return made


def train(
    model: nn.Module,
    data: list[tuple[torch.Tensor, torch.Tensor]],
    device: torch.device,
    *,
    amp: torch.dtype | None = None,
    optimizer: torch.optim.Optimizer | None = None,
) -> list[float]:
    """Train as a migrated program does, and return the losses. The optimizer is built before the move, on purpose."""
    optimizer = optimizer or torch.optim.AdamW(model.parameters(), lr=1e-2)
    model.to(device)
    scaler = shim.GradScaler()
    losses = []
    for x, y in shim.steps(data):
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad(set_to_none=True)
        with shim.autocast(enabled=amp is not None, dtype=amp):
            output = model(x)
            loss = F.cross_entropy(output.reshape(-1, output.size(-1)), y.reshape(-1))
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.detach())
    return [value.item() for value in losses]
