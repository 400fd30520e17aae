"""torch.distributed over Trellis and over Gloo, in one run, alternating; medians of the slowest rank.

    python bench/python/against_gloo.py [--ranks 2] [--most 256MiB] [--train]

With --train it times steps of DistributedDataParallel and of FSDP2 with a model of 30 million parameters.
"""

import argparse
import multiprocessing
import os
import statistics
import tempfile
import time
import warnings
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

import trellis.torch  # noqa: E402
from trellis.sizes import in_bytes  # noqa: E402

warnings.filterwarnings("ignore", category=FutureWarning)  # of the names that 2.13 has beside new ones
OPERATIONS = ["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast"]


def call(operation: str, x: torch.Tensor, y: torch.Tensor, group: Any) -> None:
    if operation == "all_reduce":
        dist.all_reduce(x, group=group)
    elif operation == "all_gather":
        dist.all_gather_into_tensor(y, x[: y.numel() // dist.get_world_size()], group=group)
    elif operation == "reduce_scatter":
        dist.reduce_scatter_tensor(y[: y.numel() // dist.get_world_size()], x, group=group)
    elif operation == "all_to_all":
        dist.all_to_all_single(y, x, group=group)
    else:
        dist.broadcast(x, 0, group=group)


def timed(operation: str, x: torch.Tensor, y: torch.Tensor, group: Any, calls: int) -> float:
    """Seconds a call."""
    dist.barrier(group)
    begun = time.perf_counter()
    for _ in range(calls):
        call(operation, x, y, group)
    return (time.perf_counter() - begun) / calls


def operations(groups: dict[str, Any], rank: int, ranks: int, most: int) -> None:
    for operation in OPERATIONS:
        if rank == 0:
            print(f"\n| {operation} | gloo us | trellis us | times faster | in peers' sight us | times faster |")
            print("|---|---|---|---|---|---|")
        size = 8 * ranks
        while size <= most:
            x, y = (torch.ones(max(ranks, size // 4)) for _ in range(2))
            with trellis.torch.allocator():
                seen = tuple(torch.ones(max(ranks, size // 4)) for _ in range(2))
            kinds = {"gloo": (x, y, "gloo"), "trellis": (x, y, "trellis"), "seen": (*seen, "trellis")}
            calls = max(2, min(200, (1 << 22) // size))
            rounds: dict[str, list[float]] = {kind: [] for kind in kinds}
            for turn in range(8):
                for kind, (a, b, name) in kinds.items():
                    took = timed(operation, a, b, groups[name], calls)
                    everyone: list[Any] = [None] * ranks
                    dist.all_gather_object(everyone, took)
                    if turn:
                        rounds[kind].append(max(everyone))
            if rank == 0:
                us = {kind: statistics.median(times) * 1e6 for kind, times in rounds.items()}
                print(
                    f"| {size} B | {us['gloo']:.1f} | {us['trellis']:.1f} | {us['gloo'] / us['trellis']:.1f} | "
                    f"{us['seen']:.1f} | {us['gloo'] / us['seen']:.1f} |",
                    flush=True,
                )
            size *= 8


def model() -> torch.nn.Module:
    torch.manual_seed(1)
    return torch.nn.Sequential(*(torch.nn.Linear(1370, 1370) for _ in range(16)))


def trainer(kind: str, group: Any) -> Any:
    if kind == "ddp":
        net: Any = torch.nn.parallel.DistributedDataParallel(model(), process_group=group)
    else:
        from torch.distributed.fsdp import FSDPModule, fully_shard

        net = model()
        mesh = dist.DeviceMesh.from_group(group, "cpu")
        for layer in net:
            fully_shard(layer, mesh=mesh)
        fully_shard(net, mesh=mesh)
        for part in net.modules():
            if isinstance(part, FSDPModule):
                part.set_allocate_memory_from_process_group_for_comm(True)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)
    x = torch.ones(16, 1370)

    def step() -> None:
        net(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def training(groups: dict[str, Any], rank: int) -> None:
    for kind in ("ddp", "fsdp2"):
        steps = {name: trainer(kind, group) for name, group in groups.items()}
        times: dict[str, list[float]] = {name: [] for name in steps}
        for turn in range(8):
            for name, step in steps.items():
                dist.barrier()
                begun = time.perf_counter()
                step()
                if turn:
                    times[name].append(time.perf_counter() - begun)
        if rank == 0:
            ms = {name: statistics.median(each) * 1e3 for name, each in times.items()}
            print(f"{kind}: gloo {ms['gloo']:.0f} ms, trellis {ms['trellis']:.0f} ms: {ms['trellis'] / ms['gloo']:.2f}")


def enter(rank: int, ranks: int, folder: str, most: int, train: bool) -> None:
    torch.set_num_threads(1)
    store = dist.FileStore(os.path.join(folder, "store"), ranks)
    dist.init_process_group("trellis", store=store, rank=rank, world_size=ranks)
    groups = {"gloo": dist.new_group(backend="gloo"), "trellis": dist.group.WORLD}
    if train:
        training(groups, rank)
    else:
        operations(groups, rank, ranks, most)
    dist.destroy_process_group()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--ranks", type=int, default=2)
    options.add_argument("--most", default="256MiB")
    options.add_argument("--train", action="store_true")
    given = options.parse_args()
    trellis.torch.prepare()
    with tempfile.TemporaryDirectory() as folder:
        context = multiprocessing.get_context("fork")
        arguments = (given.ranks, folder, in_bytes(given.most), given.train)
        processes = [context.Process(target=enter, args=(rank, *arguments)) for rank in range(given.ranks)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()


if __name__ == "__main__":
    main()
