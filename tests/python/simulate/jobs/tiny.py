"""A small model on an accelerator, trained by FSDP2: tiny.py [DEVICE [WHAT]]; WHAT makes it go wrong in one way."""

import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

WIDTH = 1024


@torch.library.custom_op("tests::unknown", mutates_args=())
def unknown(x: torch.Tensor) -> torch.Tensor:
    return x * 2


class Block(nn.Module):
    def __init__(self, what: str) -> None:
        super().__init__()
        self.up, self.down, self.what = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH), what

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.what == "unknown":
            x = unknown(x)
        if self.what == "data":
            x = x[x.sum(-1) > 0]
        return x + self.down(nn.functional.gelu(self.up(x)))


def swapped(rank: int, device: str) -> None:
    """Half of the ranks do two collectives in another order."""
    a, b = torch.ones(1024, device=device), torch.ones(2048, device=device)
    for one in (a, b) if rank < dist.get_world_size() // 2 else (b, a):
        dist.all_reduce(one)


def main() -> None:
    device, what = [*sys.argv[1:], *["neuron", ""][len(sys.argv) - 1 :]][:2]
    dist.init_process_group("nccl" if device == "cuda" else device)
    if what == "large":
        torch.arange(1 << 50)
    if what == "mesh":
        dist.init_device_mesh(device, (3, dist.get_world_size() // 3 + 1))
    if what == "any source":
        dist.recv(torch.empty(4, device=device))
    if what == "sparse":
        nn.Embedding(8, 8, sparse=True, device=device)(
            torch.zeros(2, dtype=torch.int64, device=device)
        ).sum().backward()
    model = nn.Sequential(Block(what), Block(what)).to(device)
    for block in model:
        fully_shard(block)
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        model(torch.randn(64, WIDTH, device=device)).square().mean().backward()
        if what == "swapped":
            swapped(dist.get_rank(), device)
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
