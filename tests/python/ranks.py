"""Runs a function on several ranks, each a forked process with a torch process group."""

import multiprocessing
import os
import signal
import tempfile
import time
import traceback
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

import trellis.torch

trellis.torch.prepare()
trellis.torch.process_group_module()  # before the ranks start, so that no deadline includes it
torch.set_num_threads(1)


def _enter(function: Callable[..., Any], rank: int, ranks: int, folder: str, timeout: float, backend: str,
           queue: Any, arguments: tuple[Any, ...]) -> None:  # fmt: skip
    try:
        store = dist.FileStore(os.path.join(folder, "store"), ranks)
        dist.init_process_group(
            backend, store=store, rank=rank, world_size=ranks, timeout=timedelta(seconds=timeout)
        )
        result = function(rank, ranks, *arguments)
        if dist.is_initialized():
            dist.destroy_process_group()
        queue.put((rank, None, result))
    except BaseException:
        queue.put((rank, traceback.format_exc(), None))
    queue.close()
    queue.join_thread()
    os._exit(0)


def meet(rank: int, ranks: int) -> None:
    """A group's first barrier, which all have left when it returns: whoever dies then disturbs nobody in it."""
    dist.barrier()
    store = dist.distributed_c10d._get_default_store()
    store.set(f"left the barrier {rank}", "")
    store.wait([f"left the barrier {other}" for other in range(ranks)], timedelta(seconds=60))


def await_operation(number: int) -> None:
    """Until the default group's operation of this number, from 1, has begun on this rank; it may wait for others."""
    while trellis.torch.flight_record().count('"op_id"') < number:
        time.sleep(0.01)


def run(function: Callable[..., Any], ranks: int, *arguments: Any, timeout: float = 30, deadline: float = 600,
        backend: str = "trellis", lost: tuple[int, ...] = ()) -> list[Any]:  # fmt: skip
    """What each rank returned. Ranks in `lost` may die or stop; the others must all come back before the deadline."""
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        processes = [
            context.Process(target=_enter, args=(function, rank, ranks, folder, timeout, backend, queue, arguments))
            for rank in range(ranks)
        ]
        for process in processes:
            process.start()
        try:
            results = _collect(queue, ranks, lost, deadline)
            _end([process for rank, process in enumerate(processes) if rank not in lost])
            return results
        finally:
            for process in processes:
                if process.is_alive() and process.pid:
                    os.kill(process.pid, signal.SIGKILL)
                process.join()


def _end(processes: list[Any], seconds: float = 60) -> None:
    """Those that came back must end by themselves."""
    end = time.monotonic() + seconds
    for process in processes:
        process.join(max(0.01, end - time.monotonic()))
    left = [process.pid for process in processes if process.is_alive()]
    assert not left, f"processes {left} came back but did not end in {seconds} s"


def _collect(queue: Any, ranks: int, lost: tuple[int, ...], deadline: float) -> list[Any]:
    results: dict[int, Any] = dict.fromkeys(lost)
    end = time.monotonic() + deadline
    while len(results) < ranks:
        try:
            rank, error, result = queue.get(timeout=max(0.01, end - time.monotonic()))
        except Exception:
            missing = sorted(set(range(ranks)) - set(results))
            raise AssertionError(f"ranks {missing} did not come back in {deadline} s") from None
        if error:
            raise AssertionError(f"rank {rank}:\n{error}")
        results[rank] = result
    return [results[rank] for rank in range(ranks)]
