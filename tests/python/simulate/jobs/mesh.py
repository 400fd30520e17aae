"""Two axes, sharded data and tensors: mesh.py TENSOR_RANKS."""

import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

WIDTH = 1024


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(nn.functional.gelu(self.up(x)))


def main() -> None:
    dist.init_process_group("neuron")
    tensor = int(sys.argv[1])
    mesh = dist.init_device_mesh("neuron", (dist.get_world_size() // tensor, tensor), mesh_dim_names=("dp", "tp"))
    model = nn.Sequential(Block(), Block()).to("neuron")
    for block in model:
        parallelize_module(block, mesh["tp"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
        fully_shard(block, mesh=mesh["dp"])
    fully_shard(model, mesh=mesh["dp"])
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        loss = model(torch.randn(64, WIDTH, device="neuron")).square().mean()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        told = loss.detach().clone()
        dist.all_reduce(told, group=mesh["dp"].get_group())
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
