"""DistributedDataParallel over Trellis: torchrun --nproc-per-node 2 examples/torch/ddp.py"""

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import trellis.torch


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--backend", default="trellis")
    options.add_argument("--steps", type=int, default=10)
    options.add_argument("--bf16-wire", action="store_true", help="gradients travel as bf16, stochastically rounded")
    given = options.parse_args()

    dist.init_process_group(given.backend)
    rank = dist.get_rank()
    torch.manual_seed(1)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 8)))
    if given.bf16_wire:
        model.register_comm_hook(trellis.torch.Bf16Wire(seed=1), trellis.torch.bf16_stochastic_hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = torch.Generator().manual_seed(100 + rank)
    for step in range(given.steps):
        x = torch.randn(32, 64, generator=data)
        loss = (model(x) - x[:, :8].sin()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        dist.all_reduce(mean := loss.detach() / dist.get_world_size())
        if rank == 0:
            print(f"step {step} loss {mean.item().hex()}")
    total = sum(p.detach().double().sum() for p in model.parameters())
    print(f"rank {rank} parameters {total.item().hex()}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
