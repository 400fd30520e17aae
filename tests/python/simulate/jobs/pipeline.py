"""A pipeline on an accelerator: pipeline.py SCHEDULE."""

import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import pipelining as p

SCHEDULES = {
    "1f1b": p.Schedule1F1B, "interleaved": p.ScheduleInterleaved1F1B,
    "zero_bubble": p.ScheduleInterleavedZeroBubble, "zbv": p.ScheduleZBVZeroBubble,
}  # fmt: skip
WIDTH, DEVICE = 256, torch.device("neuron")


def main() -> None:
    dist.init_process_group("neuron")
    rank, ranks, name = dist.get_rank(), dist.get_world_size(), sys.argv[1]
    count = ranks if name == "1f1b" else 2 * ranks
    mine = [rank, count - 1 - rank] if name == "zbv" else list(range(rank, count, ranks))
    layers = {i: nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()).to(DEVICE) for i in mine}
    stages = [p.PipelineStage(layers[i], i, count, DEVICE) for i in mine]
    schedule = SCHEDULES[name](
        stages[0] if name == "1f1b" else stages, n_microbatches=8, loss_fn=lambda y, t: (y - t).square().mean()
    )
    optimizer = torch.optim.SGD([q for layer in layers.values() for q in layer.parameters()], lr=0.1)
    for _ in range(3):
        x = torch.randn(32, WIDTH, device=DEVICE)
        optimizer.zero_grad()
        last = {"target": x.sin(), "losses": []} if count - 1 in mine else {}
        schedule.step(*([x] if rank == 0 else []), **last)
        optimizer.step()


if __name__ == "__main__":
    main()
