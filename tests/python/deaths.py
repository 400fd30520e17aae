"""Ranks die or stop at random moments of training: python tests/python/deaths.py [rounds] [seed]

Each round trains by DDP, FSDP2, tensor parallel, a pipeline or a mesh of two axes, or saves checkpoints, on two to four
ranks, and loses one. Every other rank must raise a DistBackendError in time, name a lost rank, and end. Where all are
in one group they all name the rank that was lost; elsewhere one does, and those that had nothing to do with it may name
the rank that raised before them. Nothing may stay behind in shared memory.
"""

import glob
import os
import random
import re
import signal
import sys
import tempfile
import threading
import time
import warnings
from datetime import timedelta

import ranks
import torch
import torch.distributed as dist
from torch import nn

TIMEOUT = 3
FOLDER = tempfile.TemporaryDirectory()


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


def mesh():
    from torch.distributed.fsdp import fully_shard

    size = dist.get_world_size()
    table = torch.arange(size).reshape(2 if size % 2 == 0 else 1, -1)
    limit = timedelta(seconds=TIMEOUT)  # new groups have torch's half an hour, not that of the whole
    groups = [dist.new_subgroups_by_enumeration(axis.tolist(), timeout=limit)[0] for axis in (table.T, table)]
    model = nn.Sequential(nn.Linear(64, 256), nn.Linear(256, 8))
    names = ("replicate", "shard")
    fully_shard(model, mesh=dist.DeviceMesh.from_group(groups, "cpu", mesh=table, mesh_dim_names=names))
    return lambda: model(torch.ones(4, 64)).sum().backward()


def checkpoint():
    import torch.distributed.checkpoint as dcp
    from torch.distributed.fsdp import fully_shard

    warnings.simplefilter("ignore")  # that it writes over the last one
    model = nn.Linear(64, 256)
    fully_shard(model, mesh=dist.init_device_mesh("cpu", (dist.get_world_size(),)))
    return lambda: dcp.save(model.state_dict(), storage_writer=dcp.FileSystemWriter(FOLDER.name, overwrite=True))


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


def blamed(text):
    found = re.search(r"(?:lost|waits for) rank (\d+)(?: \(rank (\d+) of the job\))?", text)
    assert found, text
    return int(found[2] or found[1])


IN_ONE_GROUP = [ddp, fsdp2, tensor_parallel, checkpoint]


def one(rng):
    kind = rng.choice([*IN_ONE_GROUP, pipeline, mesh])
    size = rng.choice([2, 3, 4])
    lost, how = rng.randrange(size), rng.choice([signal.SIGKILL, signal.SIGSTOP])
    results = ranks.run(train, size, kind, lost, how, rng.random(), timeout=TIMEOUT, deadline=60, lost=(lost,))
    told = [result for result in results if result]
    assert len(told) == size - 1 and all(seconds < TIMEOUT * 4 for _, seconds in told), told
    enough = all if kind in IN_ONE_GROUP else any
    assert enough([blamed(text) == lost for text, _ in told]), (kind.__name__, size, lost, how.name, told)
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
