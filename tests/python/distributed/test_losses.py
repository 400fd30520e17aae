"""What is left of a group after a loss, or after a call that raised."""

import time

import pytest

torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402

import ranks  # noqa: E402


def served(rank, size):
    x = torch.full((4,), float(rank))
    if rank == 1:
        dist.send(x, 0)
        return None
    assert dist.recv(x) == 1 and x[0] == 1
    begun, raised = time.monotonic(), 0
    for _ in range(2):
        try:
            dist.recv(x)
        except Exception:
            raised += 1
    return raised, time.monotonic() - begun


def test_receives_from_any_rank_raise_after_all_are_lost():
    raised, seconds = ranks.run(served, 2, timeout=45, lost=(1,))[0]
    assert raised == 2 and seconds < 40


def types_differ(rank, size):
    group = dist.group.WORLD
    narrow, wide = ([torch.zeros(4, dtype=t) for _ in range(size)] for t in (torch.float32, torch.float64))
    with pytest.raises(ValueError, match="the input is Double, the output Float"):
        group.alltoall(narrow, wide).wait()
    with pytest.raises(ValueError, match="the input is Double, the output Float"):
        group.reduce_scatter([narrow[0]], [wide]).wait()


def test_types_of_input_and_output_are_compared():
    ranks.run(types_differ, 2)


def batches_go_on(rank, size):
    x, y = torch.full((4,), float(rank)), torch.zeros(4)
    for _ in range(2):
        with pytest.raises(ValueError):
            dist.batch_isend_irecv([dist.P2POp(dist.isend, x, rank)])
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, x, 1 - rank), dist.P2POp(dist.irecv, y, 1 - rank)]):
        work.wait()
    assert (y == 1 - rank).all()


def test_a_batch_that_raised_does_not_spoil_the_next():
    ranks.run(batches_go_on, 2)
