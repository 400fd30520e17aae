"""A mesh of three axes over Trellis: torchrun --nproc-per-node 8 examples/torch/mesh.py

Stages of a pipeline (1F1B) across, FSDP2 between, tensor parallel within. With --pipeline 1 the mesh has two axes in
use, and four ranks do.
"""

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
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
    options.add_argument("--pipeline", type=int, default=2, help="stages")
    options.add_argument("--tensor", type=int, default=2, help="ranks that share a layer")
    given = options.parse_args()

    dist.init_process_group(given.backend)
    data_parallel = dist.get_world_size() // (given.pipeline * given.tensor)
    mesh = dist.init_device_mesh(
        "cpu", (given.pipeline, data_parallel, given.tensor), mesh_dim_names=("pp", "dp", "tp")
    )
    place, stages = mesh.get_local_rank("pp"), given.pipeline
    torch.manual_seed(1)
    block = [Block() for _ in range(stages)][place]
    parallelize_module(block, mesh["tp"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
    fully_shard(block, mesh=mesh["dp"])
    stage = PipelineStage(block, place, stages, torch.device("cpu"), group=mesh.get_group("pp"))
    schedule = Schedule1F1B(stage, n_microbatches=4, loss_fn=lambda y, t: (y - t).square().mean())
    optimizer = torch.optim.SGD(block.parameters(), lr=0.01)
    data = torch.Generator().manual_seed(100 + mesh.get_local_rank("dp"))
    for step in range(given.steps):
        x = torch.randn(32, 64, generator=data)
        losses: list[torch.Tensor] = []
        optimizer.zero_grad()
        last = {"target": x.sin(), "losses": losses} if place == stages - 1 else {}
        schedule.step(*([x] if place == 0 else []), **last)
        optimizer.step()
        if dist.get_rank() == dist.get_world_size() - 1:
            print(f"step {step} loss {torch.stack(losses).mean().item().hex()}")
    total = sum(p.detach().full_tensor().double().sum() for p in block.parameters())
    print(f"rank {dist.get_rank()} parameters {total.item().hex()}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
