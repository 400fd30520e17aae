"""Tensor parallel with DTensor over Trellis: torchrun --nproc-per-node 2 examples/torch/tensor_parallel.py

With --data 2 and four ranks, the mesh is 2D: FSDP2 across, tensor parallel within.
"""

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import trellis.torch  # noqa: F401  registers the backend


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(64, 256), nn.Linear(256, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(nn.functional.gelu(self.up(x)))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--backend", default="trellis")
    options.add_argument("--steps", type=int, default=10)
    options.add_argument("--data", type=int, default=1, help="groups of data parallelism")
    given = options.parse_args()

    dist.init_process_group(given.backend)
    mesh = dist.init_device_mesh("cpu", (given.data, dist.get_world_size() // given.data), mesh_dim_names=("dp", "tp"))
    torch.manual_seed(1)
    model = nn.Sequential(Block(), Block())
    for block in model:
        parallelize_module(block, mesh["tp"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
    if given.data > 1:
        fully_shard(model, mesh=mesh["dp"])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = torch.Generator().manual_seed(100 + mesh.get_local_rank("dp"))
    for step in range(given.steps):
        x = torch.randn(16, 64, generator=data)
        loss = (model(x) - x.sin()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if dist.get_rank() == 0:
            print(f"step {step} loss {loss.item().hex()}")
    total = sum(p.detach().full_tensor().double().sum() for p in model.parameters())
    print(f"rank {dist.get_rank()} parameters {total.item().hex()}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
