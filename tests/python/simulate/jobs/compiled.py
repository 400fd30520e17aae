"""One block and the loss are compiled, the other block is not."""

import torch
import torch.distributed as dist
from torch import nn


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(1024, 4096), nn.Linear(4096, 1024)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(nn.functional.silu(self.up(x)) * 0.5 + 1.0)


@torch.compile
def loss_of(y: torch.Tensor) -> torch.Tensor:
    return (y * 2.0 + 1.0).square().mean()


def main() -> None:
    dist.init_process_group("neuron")
    model = nn.Sequential(torch.compile(Block()), Block()).to("neuron")
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        loss_of(model(torch.randn(4096, 1024, device="neuron"))).backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
