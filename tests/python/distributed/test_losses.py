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
