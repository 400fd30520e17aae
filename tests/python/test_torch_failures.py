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
    if operation == "recv":  # the two ranks know each other
        if rank == 1:
            for to in range(size):
                if to != 1:
                    dist.send(torch.ones(1000), to)
        else:
            dist.recv(torch.ones(1000), 1)
    ranks.meet(rank, size)
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
    results = ranks.run(lose, 3, operation, signal.SIGKILL, timeout=60, lost=(1,))
    for result in (results[0], results[2]):
        assert "rank 1" in result[0] and result[1] < 30, result
        if operation == "recv":  # whose communicator has two ranks, with numbers of their own
            assert "lost rank 1: rank 1 " in result[0] and "rank 0 is" not in result[0], result


def exchange_other_sizes(rank, size):
    x = torch.ones(size * (rank + 1))
    with pytest.raises(dist.DistBackendError) as caught:
        dist.all_to_all_single(torch.empty_like(x), x)
        dist.barrier()
    return str(caught.value)


def test_sizes_of_equal_blocks_that_differ_are_told():
    for text in ranks.run(exchange_other_sizes, 2):
        assert "all_to_all_v of 2 f32" in text and "all_to_all_v of 4 f32" in text, text


@pytest.mark.parametrize("operation", ["all_reduce", "async", "barrier"])
def test_a_rank_stops(operation):
    results = ranks.run(lose, 3, operation, signal.SIGSTOP, timeout=15, lost=(1,))
    for result in (results[0], results[2]):
        assert "rank 1" in result[0] and result[1] < 60, result


def aborted_while_shut_down(rank, size):
    import threading

    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    if rank == 1:
        time.sleep(2)
        return
    work = dist.all_reduce(torch.ones(3), async_op=True)
    threads = [threading.Thread(target=end) for end in (backend.abort, backend.shutdown, backend.abort)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with pytest.raises(dist.DistBackendError):
        work.wait()


def test_abort_and_shutdown_at_once():
    ranks.run(aborted_while_shut_down, 2)


def shrunk(rank, size, flag):
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    store = dist.distributed_c10d._get_default_store()
    if rank == 1:
        if flag:
            store.wait(["shrunk 0", "shrunk 2"], timedelta(seconds=60))
        return None
    if flag:
        dist.all_reduce(torch.ones(3), async_op=True)  # rank 1 never comes
    fewer = backend.shrink([1], flag)
    x = torch.full((3,), float(rank))
    fewer.allreduce(x).wait()
    with pytest.raises(ValueError, match="flags 7"):
        fewer.shrink([1], 7)
    store.set(f"shrunk {rank}", "")
    return x[0].item(), fewer.rank(), fewer.options.global_ranks_in_group


@pytest.mark.parametrize("flag", [0, 1])
def test_a_group_shrinks(flag):
    results = ranks.run(shrunk, 3, flag)
    assert results[0] == (2.0, 0, [0, 2]) and results[2] == (2.0, 1, [0, 2])


def split(rank, size):
    child = dist.group.WORLD.split_group([1, 2], timedelta(seconds=20), None, "child", "a part")
    if rank == 0:
        return None
    x = torch.full((3,), float(rank))
    child.allreduce(x).wait()
    options = child._get_backend(torch.device("cpu")).options
    parent = dist.group.WORLD._get_backend(torch.device("cpu")).options
    assert len(parent.global_ranks_in_group) != 2
    return x[0].item(), options.global_ranks_in_group


def test_a_group_splits():
    results = ranks.run(split, 3)
    assert results[1] == results[2] == (3.0, [1, 2])


def different(rank, size):
    with pytest.raises(dist.DistBackendError, match="differs from the call of rank"):
        if rank == 0:
            dist.all_reduce(torch.ones(4))
        else:
            dist.all_gather_into_tensor(torch.ones(8), torch.ones(4))
        dist.barrier()


def test_different_calls():
    ranks.run(different, 2)


def large_and_different(rank, size):
    x = torch.ones((1 << 20) + rank)
    dist.barrier()
    try:
        dist.all_reduce(x)
    except dist.DistBackendError as error:
        return str(error)  # the process ends then, as a job does


def test_both_sides_of_a_large_operation_say_what_differs():
    for rank, said in enumerate(ranks.run(large_and_different, 2, timeout=60)):
        assert f"differs from the call of rank {1 - rank}" in said, said
        assert "1048576 f32" in said and "1048577 f32" in said, said


def two_roots(rank, size, elements):
    x = torch.full((elements,), float(rank))
    with pytest.raises(dist.DistBackendError, match="differs from the call of rank") as caught:
        dist.broadcast(x, rank % 2)
        dist.barrier()
    return str(caught.value)


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("elements", [4, 1 << 20])
def test_two_that_each_say_they_are_root(elements, size):
    for said in ranks.run(two_roots, size, elements, timeout=60):
        assert "root 0" in said and "root 1" in said, said


def mistyped(rank, size, waits):
    x = torch.arange(4, dtype=torch.int32)
    dist.barrier()
    if rank == 1:
        dist.send(torch.ones(4), 0, tag=1)
        dist.send(x + 1, 0, tag=2)
        dist.recv(x, 0)
        return None
    if not waits:  # the message is there before the tensor is asked for
        later = torch.zeros(4, dtype=torch.int32)
        dist.recv(later, 1, tag=2)
        assert later.tolist() == [1, 2, 3, 4]
    with pytest.raises(dist.DistBackendError) as caught:
        dist.recv(x, 1, tag=1)
    if waits:
        later = torch.zeros(4, dtype=torch.int32)
        dist.recv(later, 1, tag=2)
        assert later.tolist() == [1, 2, 3, 4]
    assert x.tolist() == [0, 1, 2, 3]
    dist.send(x, 1)  # the group goes on
    return str(caught.value)


@pytest.mark.parametrize("waits", [True, False])
def test_a_message_of_another_type(waits):
    said = ranks.run(mistyped, 2, waits)[0]
    assert "differs from the call of rank 1" in said, said
    assert "it sent 16 bytes of Float, and rank 0 receives 16 bytes of Int" in said, said


def mis_sized(rank, size):
    if rank == 1:
        return dist.send(torch.ones(5), 0)
    with pytest.raises(dist.DistBackendError, match="it sent 20 bytes of Float, and rank 0 receives 16 bytes of Float"):
        dist.recv(torch.ones(4), 1)


def test_a_message_of_another_size():
    ranks.run(mis_sized, 2)


def aborted(rank, size):
    group = dist.new_group(list(range(size)))
    if rank == 0:
        time.sleep(0.5)
        group._get_backend(torch.device("cpu")).abort()
    with pytest.raises(dist.DistBackendError, match="abort"):
        dist.all_reduce(torch.ones(3), group=group)


def test_abort():
    ranks.run(aborted, 2, timeout=20)


def recreate(rank, size, file):
    store = dist.FileStore(file, size)
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


def test_groups_leave_nothing_behind(tmp_path):
    before = set(glob.glob("/dev/shm/*"))
    for files, threads in ranks.run(recreate, 2, str(tmp_path / "store")):
        assert files < 40 and threads < 12, (files, threads)
    assert not {name for name in set(glob.glob("/dev/shm/*")) - before if "trellis" in name}
