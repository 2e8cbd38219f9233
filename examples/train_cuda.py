"""Train a small network on one NVIDIA GPU, with mixed precision. Plain PyTorch, written for CUDA."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, width=64, classes=4):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(20, width), nn.ReLU(), nn.Linear(width, classes))

    def forward(self, x):
        return self.layers(x)


def make_loader(samples, batch_size):
    """Points around four centres; the network is to tell which centre a point belongs to."""
    generator = torch.Generator().manual_seed(0)
    centres = torch.randn(4, 20, generator=generator) * 3
    labels = torch.randint(4, (samples,), generator=generator)
    points = centres[labels] + torch.randn(samples, 20, generator=generator)
    return DataLoader(TensorDataset(points, labels), batch_size=batch_size, pin_memory=True)


def train_epoch(model, loader, criterion, optimizer, scaler):
    model.train()
    total = torch.zeros((), device="cuda")
    for x, y in loader:
        x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
        optimizer.zero_grad()
        with torch.cuda.amp.autocast():
            loss = criterion(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        total += loss.detach()
    return total.item() / len(loader)


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    correct = 0
    for x, y in loader:
        correct += (model(x.cuda()).argmax(1) == y.cuda()).sum().item()
    return correct / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", default="net.pt")
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    torch.cuda.manual_seed_all(args.seed)
    torch.backends.cudnn.benchmark = True

    loader = make_loader(samples=1024, batch_size=64)
    model = Net().cuda()
    print(f"training on {next(model.parameters()).device}")
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scaler = torch.cuda.amp.GradScaler()
    for epoch in range(args.epochs):
        loss = train_epoch(model, loader, criterion, optimizer, scaler)
        print(f"epoch {epoch}: loss {loss:.4f}")
    print(f"accuracy {accuracy(model, loader):.3f}")
    print(f"peak memory {torch.cuda.max_memory_allocated() / 2**20:.0f} MiB")

    torch.save(model.state_dict(), args.output)
    model.load_state_dict(torch.load(args.output, map_location="cuda"))


if __name__ == "__main__":
    main()
