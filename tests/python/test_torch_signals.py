"""Ctrl-C in calls that wait: they raise KeyboardInterrupt at once, and it is said what becomes of the group."""

import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
from datetime import timedelta

import pytest

torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402

import ranks  # noqa: E402

PATIENCE = 120  # seconds of the groups: far more than any test takes


def interrupted(call, operation):
    """Ctrl-C comes while the call waits, soon after the group's operation of that number has begun."""

    def interrupt():
        ranks.await_operation(operation)
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGINT)

    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        threading.Thread(target=interrupt, daemon=True).start()
        call()
    assert time.monotonic() - begun < PATIENCE / 2


def fall_asleep(process):
    """Until its main thread has slept for a while: what it called waits for others."""
    looks = 0
    while looks < 10 and process.poll() is None:
        state = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        looks = looks + 1 if state == "S" else 0
        time.sleep(0.05)


def blocking(rank, size, operation):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    store = dist.distributed_c10d._get_default_store()
    x = torch.ones(1 << 16)
    ranks.meet(rank, size)
    if rank == 0:
        interrupted({"all_reduce": lambda: dist.all_reduce(x), "barrier": lambda: dist.barrier(),
                     "broadcast": lambda: dist.broadcast(x, 1)}[operation], 2)  # fmt: skip
        store.set("interrupted", "")
        with pytest.raises(dist.DistBackendError, match="interrupted"):
            dist.barrier()
        return None
    store.wait(["interrupted"], timedelta(seconds=PATIENCE))
    with pytest.raises(dist.DistBackendError, match="aborted by rank 0") as caught:
        dist.all_reduce(x)
    return str(caught.value)


@pytest.mark.parametrize("operation", ["all_reduce", "barrier", "broadcast"])
def test_a_call_that_waits_ends_and_aborts_the_group(operation):
    ranks.run(blocking, 2, operation, timeout=PATIENCE)


def patient(rank, size):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    x, y = torch.full((1000,), rank + 1.0), torch.zeros(4)
    dist.barrier()
    if rank == 0:
        work = dist.all_reduce(x, async_op=True)
        interrupted(work.wait, 2)
        arrives = dist.irecv(y, 1)
        interrupted(arrives.wait, 2)
        dist.send(torch.ones(1), 1)
        work.wait()
        arrives.wait()
        assert y.tolist() == [5] * 4
    else:
        dist.recv(torch.ones(1), 0)
        dist.all_reduce(x)
        dist.send(torch.full((4,), 5.0), 0)
    assert x.tolist() == [3] * 1000
    dist.barrier()


def test_a_wait_ends_and_the_operation_goes_on():
    ranks.run(patient, 2, timeout=PATIENCE)


ALONE = """
import sys, torch.distributed as dist
import trellis.torch
trellis.torch.prepare()
store = dist.FileStore(sys.argv[1], 2)
try:
    print("waits", flush=True)
    dist.init_process_group("trellis", store=store, rank=0, world_size=2)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_the_meeting_of_the_ranks(tmp_path):
    words = [sys.executable, "-c", ALONE, str(tmp_path / "store")]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "waits\n"
        fall_asleep(process)
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=PATIENCE)[0] == "interrupted\n"
    finally:
        process.kill()


SHUTTING = """
import sys, time, torch, torch.distributed as dist
import trellis.torch
rank = int(sys.argv[1])
dist.init_process_group("trellis", store=dist.FileStore(sys.argv[2] + "/store", 2), rank=rank, world_size=2)
dist.barrier()
if rank == 1:
    print("ready", flush=True)
    sys.stdin.read()
    sys.exit()
dist.all_reduce(torch.ones(4), async_op=True)
try:
    print("ready", flush=True)
    dist.destroy_process_group()
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_destroying_a_group_whose_operations_wait(tmp_path):
    started = [subprocess.Popen([sys.executable, "-c", SHUTTING, str(rank), str(tmp_path)], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, text=True) for rank in range(2)]  # fmt: skip
    try:
        for process in started:
            assert process.stdout.readline() == "ready\n"
        fall_asleep(started[0])
        started[0].send_signal(signal.SIGINT)
        assert started[0].communicate(timeout=PATIENCE)[0] == "interrupted\n"
        assert started[0].returncode == 0
    finally:
        for process in started:
            process.kill()
