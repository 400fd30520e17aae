"""Where the time of a small all_reduce goes, from Python down: one rank alone, so that nobody is waited for."""

import statistics
import time
from collections.abc import Callable

import torch
import torch.distributed as dist

import trellis.torch


def us(what: Callable[[], object]) -> float:
    """Microseconds a call: the median of 15 rounds."""
    rounds = []
    for _ in range(15):
        begun = time.perf_counter()
        for _ in range(2000):
            what()
        rounds.append((time.perf_counter() - begun) / 2000 * 1e6)
    return statistics.median(rounds)


def main() -> None:
    dist.init_process_group("trellis", store=dist.HashStore(), rank=0, world_size=1)
    x = torch.ones(2)
    group = dist.group.WORLD
    backend = group._get_backend(torch.device("cpu"))
    options = dist.AllreduceOptions()
    options.asyncOp = False
    tensors = [x]
    whole = us(lambda: dist.all_reduce(x))
    dispatched = us(lambda: group.allreduce(tensors, options).wait())
    direct = us(lambda: backend.allreduce(tensors, options).wait())
    options.asyncOp = True
    later = us(lambda: backend.allreduce(tensors, options).wait())
    print(f"dist.all_reduce in all                {whole:6.2f} us")
    print(f"  torch.distributed's Python          {whole - dispatched:6.2f} us")
    print(f"  the process group and dispatcher    {dispatched - direct:6.2f} us")
    print(f"  Trellis with torch's binding        {direct:6.2f} us")
    print(f"asynchronous, on the group's thread   {later:6.2f} us")
    dist.destroy_process_group()


if __name__ == "__main__":
    trellis.torch.prepare()
    main()
