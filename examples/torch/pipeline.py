"""Pipeline parallel over Trellis: torchrun --nproc-per-node 2 examples/torch/pipeline.py --schedule 1f1b

Schedules: gpipe, 1f1b, interleaved, zero_bubble.
"""

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
)

import trellis.torch  # noqa: F401  registers the backend

SCHEDULES = {
    "gpipe": (ScheduleGPipe, 1),
    "1f1b": (Schedule1F1B, 1),
    "interleaved": (ScheduleInterleaved1F1B, 2),
    "zero_bubble": (ScheduleInterleavedZeroBubble, 2),
}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--backend", default="trellis")
    options.add_argument("--steps", type=int, default=10)
    options.add_argument("--schedule", choices=SCHEDULES, default="1f1b")
    given = options.parse_args()

    dist.init_process_group(given.backend)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    kind, per_rank = SCHEDULES[given.schedule]
    torch.manual_seed(1)
    layers = [nn.Sequential(nn.Linear(64, 64), nn.Tanh()) for _ in range(ranks * per_rank)]
    mine = range(rank, len(layers), ranks)
    stages = [PipelineStage(layers[i], i, len(layers), torch.device("cpu")) for i in mine]
    schedule = kind(
        stages if per_rank > 1 else stages[0], n_microbatches=4, loss_fn=lambda y, t: (y - t).square().mean()
    )
    optimizer = torch.optim.SGD([p for i in mine for p in layers[i].parameters()], lr=0.1)
    data = torch.Generator().manual_seed(7)
    for step in range(given.steps):
        x = torch.randn(32, 64, generator=data)
        losses: list[torch.Tensor] = []
        optimizer.zero_grad()
        last = {"target": x.sin(), "losses": losses} if rank == ranks - 1 else {}
        schedule.step(*([x] if rank == 0 else []), **last)
        optimizer.step()
        if rank == ranks - 1:
            print(f"step {step} loss {torch.stack(losses).mean().item().hex()}")
    total = sum(p.detach().double().sum() for i in mine for p in layers[i].parameters())
    print(f"rank {rank} parameters {total.item().hex()}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
