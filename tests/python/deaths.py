"""Ranks die or stop at random moments of training: python tests/python/deaths.py [rounds] [seed]

Each round trains by DDP, FSDP2, tensor parallel or a pipeline on two to four ranks, and loses one. Every other rank
must raise a DistBackendError in time, and one of them names it. Nothing may stay behind in shared memory.
"""

import glob
import os
import random
import signal
import sys
import threading
import time

import ranks
import torch
import torch.distributed as dist
from torch import nn

TIMEOUT = 3


def ddp():
    model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(64, 256), nn.Linear(256, 8)))
    return lambda: model(torch.ones(4, 64)).sum().backward()


def fsdp2():
    from torch.distributed.fsdp import fully_shard

    model = nn.Sequential(nn.Linear(64, 256), nn.Linear(256, 8))
    fully_shard(model, mesh=dist.init_device_mesh("cpu", (dist.get_world_size(),)))
    return lambda: model(torch.ones(4, 64)).sum().backward()


def tensor_parallel():
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    model = nn.Sequential(nn.Linear(64, 240), nn.Linear(240, 8))
    mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
    parallelize_module(model, mesh, {"0": ColwiseParallel(), "1": RowwiseParallel()})
    return lambda: model(torch.ones(4, 64)).sum().backward()


def pipeline():
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    rank, size = dist.get_rank(), dist.get_world_size()
    stage = PipelineStage(nn.Linear(64, 64), rank, size, torch.device("cpu"))
    schedule = Schedule1F1B(stage, n_microbatches=4, loss_fn=lambda y, t: (y - t).square().mean())
    first, last = [torch.ones(8, 64)] if rank == 0 else [], {"target": torch.ones(8, 64)} if rank == size - 1 else {}
    return lambda: schedule.step(*first, **last)


def train(rank, size, kind, lost, how, after):
    step = kind()
    if rank == lost:
        threading.Timer(after, lambda: os.kill(os.getpid(), how)).start()
    begun = None
    try:
        for _ in range(100_000):
            begun = time.monotonic()
            step()
    except dist.DistBackendError as error:
        return str(error), time.monotonic() - begun
    raise AssertionError("no error came")


def one(rng):
    kind = rng.choice([ddp, fsdp2, tensor_parallel, pipeline])
    size = rng.choice([2, 3, 4])
    lost, how = rng.randrange(size), rng.choice([signal.SIGKILL, signal.SIGSTOP])
    results = ranks.run(train, size, kind, lost, how, rng.random(), timeout=TIMEOUT, deadline=60, lost=(lost,))
    told = [result for result in results if result]
    assert len(told) == size - 1 and all(seconds < TIMEOUT * 4 for _, seconds in told), told
    assert any(f"rank {lost}" in text for text, _ in told), told
    return kind.__name__, size, how.name


def main():
    given = [int(word) for word in sys.argv[1:]]
    rounds, seed = given[0] if given else 20, given[1] if len(given) > 1 else 1
    rng = random.Random(seed)
    before = set(glob.glob("/dev/shm/*"))
    for number in range(rounds):
        print(number, *one(rng), flush=True)
    left = set(glob.glob("/dev/shm/*")) - before
    assert not left, left


if __name__ == "__main__":
    main()
