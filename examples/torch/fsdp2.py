"""FSDP2 (fully_shard) over Trellis, with AdamW by Trellis: torchrun --nproc-per-node 2 examples/torch/fsdp2.py"""

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard

import trellis.torch


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--backend", default="trellis")
    options.add_argument("--steps", type=int, default=10)
    options.add_argument("--bf16", action="store_true", help="compute in bf16, sum gradients in float32")
    options.add_argument("--adamw", action="store_true", help="trellis.torch.AdamW instead of SGD")
    given = options.parse_args()

    dist.init_process_group(given.backend)
    rank = dist.get_rank()
    mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
    torch.manual_seed(1)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(64, 64), nn.GELU()) for _ in range(3)), nn.Linear(64, 8))
    precision = MixedPrecisionPolicy(torch.bfloat16, torch.float32) if given.bf16 else MixedPrecisionPolicy()
    for layer in model:
        fully_shard(layer, mesh=mesh, mp_policy=precision)
    fully_shard(model, mesh=mesh, mp_policy=precision)
    for part in model.modules():
        if isinstance(part, FSDPModule):
            part.set_allocate_memory_from_process_group_for_comm(True)  # memory that peers read
    if given.adamw:
        optimizer: torch.optim.Optimizer = trellis.torch.AdamW(model.parameters(), lr=1e-2)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = torch.Generator().manual_seed(100 + rank)
    for step in range(given.steps):
        x = torch.randn(32, 64, generator=data)
        loss = (model(x).float() - x[:, :8].sin()).square().mean()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        dist.all_reduce(mean := loss.detach() / dist.get_world_size())
        if rank == 0:
            print(f"step {step} loss {mean.item().hex()}")
    total = sum(p.detach().full_tensor().double().sum() for p in model.parameters())
    print(f"rank {rank} parameters {total.item().hex()}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
