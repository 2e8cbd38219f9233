"""A file of a thousand lines in which everything is looked at and nothing is rewritten."""

from __future__ import annotations

HEAD = '''"""A made-up program that has been migrated from cuda already: the word lets no prefilter skip it."""
import torch
from torch import nn
from torch.nn import functional as F
from torchport import shim

'''
BLOCK = '''
class Block{n}(nn.Module):
    """One layer of many, formerly on cuda.

    Args:
        width: features in and out.
        heads: parallel parts.
        dropout: probability of a zero.
    """

    def __init__(
        self,
        width: int = {n},
        heads: int = 4,
        dropout: float = 0.1,
        bias: bool = True,
        norm_layer: type[nn.Module] = nn.LayerNorm,
        activation: type[nn.Module] = nn.GELU,
    ):
        super().__init__()
        assert width % heads == 0, "width has to be divisible by heads"
        self.width = width
        self.scale = width ** -0.5

        self.norm = norm_layer(width)
        self.first = nn.Linear(
            width,
            4 * width,
            bias=bias,
        )
        self.activation = activation()
        # the second one brings the features back to their width
        self.second = nn.Linear(
            4 * width,
            width,
            bias=bias,
        )
        self.drop = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor, mask=None) -> torch.Tensor:
        y = self.norm(x)
        y = self.activation(self.first(y))
        if mask is not None:
            y = y.masked_fill(mask[:, None], 0.0)
        y = self.drop(self.second(y))
        return x + y * self.scale


def train{n}(model, loader, optimizer, log=print):
    """One epoch; returns the mean loss."""
    model.to(shim.device())
    model.train()
    total = 0.0

    for step, (x, y) in enumerate(shim.steps(loader)):
        x = x.to(shim.device(), non_blocking=True)
        y = y.to(shim.device(), non_blocking=True)

        with shim.autocast():
            loss = F.cross_entropy(
                model(x),
                y,
                label_smoothing=0.1,
            )
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

        total += loss.detach()
        if step % 100 == 0:
            log(f"{{step}}: {{total:.4f}}")

    return total / len(loader)

'''
LINES = 1000


def thousand_lines() -> str:
    """The text, brought to size with comments at its end. It is about as dense as model code of real repositories."""
    count = (LINES - HEAD.count("\n")) // BLOCK.count("\n")
    text = HEAD + "".join(BLOCK.format(n=number + 1) for number in range(count))
    return text + "# nothing of cuda here\n" * (LINES - text.count("\n"))
