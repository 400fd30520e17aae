"""Processes that were forked from a rank: they cannot take its place, and end without disturbing it."""

import os
import signal
import subprocess
import sys
import time

import pytest

torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402

import ranks  # noqa: E402


def in_child(work, seconds=60):
    """Forks a process that does it. What it says; it must end by itself."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reads)
        try:
            said = work()
            os.write(writes, (said or "").encode())
        except BaseException as error:
            os.write(writes, f"{type(error).__name__}: {error}".encode())
        os.close(writes)
        os._exit(0)
    os.close(writes)
    end = time.monotonic() + seconds
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise AssertionError(f"the child has not ended in {seconds} s")
        time.sleep(0.01)
    with os.fdopen(reads) as pipe:
        return pipe.read()


def expect_right(size):
    for _ in range(3):
        x = torch.full((4,), float(dist.get_rank() + 1))
        dist.all_reduce(x)
        assert x.tolist() == [size * (size + 1) / 2] * 4


def calls(pending):
    x, other = torch.full((4,), 100.0), 1 - dist.get_rank()
    return {
        "all_reduce": lambda: dist.all_reduce(x),
        "all_reduce async": lambda: dist.all_reduce(x, async_op=True),
        "broadcast": lambda: dist.broadcast(x, 0),
        "all_gather": lambda: dist.all_gather([x, x.clone()], x),
        "barrier": lambda: dist.barrier(),
        "send": lambda: dist.send(x, other),
        "recv": lambda: dist.recv(x, other),
        "batch": lambda: dist.batch_isend_irecv([dist.P2POp(dist.isend, x, other)]),
        "objects": lambda: dist.all_gather_object([None, None], "here"),
        "new group": lambda: dist.new_group([0, 1]),
        "monitored barrier": lambda: dist.group.WORLD.monitored_barrier(),
        "wait": pending.wait,
    }


def refused(rank, size):
    expect_right(size)
    if rank == 0:
        # The other rank sends later, so that the child has something to wait for.
        pending = dist.irecv(torch.zeros(4), 1)

        def each():
            for name, call in calls(pending).items():
                try:
                    call()
                except dist.DistBackendError as error:
                    if "forked from the one that made the process group" not in str(error):
                        return f"{name}: {error}"
                else:
                    return f"{name}: it was done"
            return "all were refused"

        assert in_child(each) == "all were refused"
        dist.send(torch.zeros(1), 1)
        pending.wait()
    else:
        dist.recv(torch.zeros(1), 0)
        dist.send(torch.ones(4), 0)
    expect_right(size)


def test_no_call_takes_the_parents_place():
    ranks.run(refused, 2)


def ended(rank, size, how):
    expect_right(size)
    work = dist.all_reduce(torch.ones(4), async_op=True)  # the group has its threads
    work.wait()
    dist.send(torch.ones(4), 1) if rank == 0 else dist.recv(torch.ones(4), 0)

    def end():
        if how == "destroy":
            dist.destroy_process_group()
        elif how == "own":
            dist.destroy_process_group()
            dist.init_process_group("trellis", store=dist.HashStore(), rank=0, world_size=1)
            x = torch.ones(4)
            dist.all_reduce(x)
            dist.all_reduce(x, async_op=True).wait()
            assert x.tolist() == [1] * 4
            dist.destroy_process_group()
        elif how == "abort":
            dist.distributed_c10d._get_default_group()._get_backend(torch.device("cpu")).abort()
        return "well"

    said = in_child(end)
    assert said == "well", said
    expect_right(size)


@pytest.mark.parametrize("how", ["destroy", "abort", "own"])
def test_what_a_child_ends_stays_the_parents(how):
    ranks.run(ended, 2, how)


EXITING = """
import os, sys, time, torch, torch.distributed as dist
import trellis.torch
rank, folder = int(sys.argv[1]), sys.argv[2]
dist.init_process_group("trellis", store=dist.FileStore(folder + "/store", 2), rank=rank, world_size=2)
def right():
    x = torch.full((4,), rank + 1.0)
    dist.all_reduce(x)
    dist.all_reduce(x.clone(), async_op=True).wait()
    assert x.tolist() == [3] * 4
right()
dist.send(torch.ones(4), 1) if rank == 0 else dist.recv(torch.ones(4), 0)
pending = dist.irecv(torch.ones(4), 1 - rank, tag=7)
if os.fork() == 0:
    sys.exit(0)  # the interpreter ends as ever, with the group
assert os.wait()[1] == 0
right()
dist.send(torch.ones(4), 1 - rank, tag=7)
pending.wait()
right()
dist.destroy_process_group()
print("well", rank)
"""


def test_a_child_that_exits_without_a_word(tmp_path):
    words = [[sys.executable, "-c", EXITING, str(rank), str(tmp_path)] for rank in range(2)]
    started = [subprocess.Popen(w, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for w in words]
    try:
        for rank, process in enumerate(started):
            out, err = process.communicate(timeout=600)
            assert process.returncode == 0 and out == f"well {rank}\n", err
    finally:
        for process in started:
            process.kill()


class Logged(torch.utils.data.Dataset):
    """A worker that communicates while it collects."""

    def __init__(self, communicates):
        self.communicates = communicates

    def __len__(self):
        return 4

    def __getitem__(self, index):
        if self.communicates:
            dist.all_reduce(torch.full((4,), 100.0))
        return torch.tensor(float(index))


def loaded(rank, size):
    expect_right(size)
    loader = torch.utils.data.DataLoader(Logged(False), num_workers=2, multiprocessing_context="fork")
    assert sorted(float(x) for x in loader) == [0, 1, 2, 3]
    if rank == 0:
        with pytest.raises(Exception, match="forked from the one that made the process group"):
            list(torch.utils.data.DataLoader(Logged(True), num_workers=1, multiprocessing_context="fork"))
    expect_right(size)


def test_workers_that_load_data():
    ranks.run(loaded, 2)
