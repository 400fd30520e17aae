"""Ranks that die, stop, or call something else: the others raise in time, and say which rank it was."""

import glob
import os
import signal
import time
from datetime import timedelta

import pytest

torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402

import ranks  # noqa: E402


def call(operation, rank, size):
    x = torch.ones(1000)
    if operation == "all_reduce":
        dist.all_reduce(x)
    elif operation == "async":
        dist.all_reduce(x, async_op=True).wait()
    elif operation == "all_gather":
        dist.all_gather([torch.ones(1000) for _ in range(size)], x)
    elif operation == "barrier":
        dist.barrier()
    elif operation == "recv":
        dist.recv(x, 1)


def lose(rank, size, operation, how):
    dist.barrier()
    if operation == "recv":  # the two ranks know each other
        if rank == 1:
            for to in range(size):
                if to != 1:
                    dist.send(torch.ones(1000), to)
        else:
            dist.recv(torch.ones(1000), 1)
    if rank == 1:
        os.kill(os.getpid(), how)
        return None
    begun = time.monotonic()
    with pytest.raises(dist.DistBackendError) as caught:
        for _ in range(3):
            call(operation, rank, size)
    return str(caught.value), time.monotonic() - begun


@pytest.mark.parametrize("operation", ["all_reduce", "async", "all_gather", "barrier", "recv"])
def test_a_rank_dies(operation):
    results = ranks.run(lose, 3, operation, signal.SIGKILL, timeout=20, lost=(1,))
    for result in (results[0], results[2]):
        assert "rank 1" in result[0] and result[1] < 10, result


@pytest.mark.parametrize("operation", ["all_reduce", "async", "barrier"])
def test_a_rank_stops(operation):
    results = ranks.run(lose, 3, operation, signal.SIGSTOP, timeout=2, lost=(1,))
    for result in (results[0], results[2]):
        assert "rank 1" in result[0] and result[1] < 15, result


def test_a_receive_without_a_send_times_out():
    def case(rank, size):
        if rank == 0:
            with pytest.raises(dist.DistBackendError, match=r"recv \d+ on rank 0.*timed out.*it waits for rank 1"):
                dist.recv(torch.ones(3), 1)
        else:
            time.sleep(3)

    ranks.run(case, 2, timeout=1)


def different(rank, size):
    with pytest.raises(dist.DistBackendError, match="differs from the call of rank"):
        if rank == 0:
            dist.all_reduce(torch.ones(4))
        else:
            dist.all_gather_into_tensor(torch.ones(8), torch.ones(4))
        dist.barrier()


def test_different_calls():
    ranks.run(different, 2, timeout=10)


def aborted(rank, size):
    group = dist.new_group(list(range(size)))
    if rank == 0:
        time.sleep(0.5)
        group._get_backend(torch.device("cpu")).abort()
    with pytest.raises(dist.DistBackendError, match="abort"):
        dist.all_reduce(torch.ones(3), group=group)


def test_abort():
    ranks.run(aborted, 2, timeout=20)


def patience(rank, size):
    if rank == 0:
        work = dist.all_reduce(torch.ones(3), async_op=True)
        with pytest.raises(dist.DistBackendError, match="timed out"):
            work.wait(timedelta(milliseconds=200))
        dist.send(torch.ones(1), 1)
        work.wait()
    else:
        dist.recv(torch.ones(1), 0)
        dist.all_reduce(torch.ones(3))


def test_a_wait_has_its_own_patience():
    ranks.run(patience, 2)


def recreate(rank, size):
    store = dist.FileStore(f"/tmp/trellis_recreate_{os.getppid()}", size)
    dist.destroy_process_group()
    for turn in range(10):
        dist.init_process_group("trellis", store=dist.PrefixStore(f"turn{turn}", store), rank=rank, world_size=size)
        x = torch.ones(100)
        dist.all_reduce(x)
        assert x[0] == size
        dist.destroy_process_group()
    if rank == 0:
        time.sleep(0.2)
    return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))


def test_groups_leave_nothing_behind():
    before = set(glob.glob("/dev/shm/*"))
    try:
        for files, threads in ranks.run(recreate, 2):
            assert files < 40 and threads < 12, (files, threads)
    finally:
        if os.path.exists(path := f"/tmp/trellis_recreate_{os.getpid()}"):
            os.remove(path)
    assert not {name for name in set(glob.glob("/dev/shm/*")) - before if "trellis" in name}
