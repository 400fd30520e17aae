"""Estimates of collectives that torch asks the process group for: the time on the machine of TRELLIS_SIMULATE."""

import pytest

torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402

import ranks  # noqa: E402
from trellis import sim  # noqa: E402

MACHINE = "trn2.48xlarge"


def asked(call):
    with dist._time_estimator() as told:
        call()
    return told.estimated_time


def estimates(rank, size):
    """Microseconds: of all ranks, of an upper half, of a message, of two collectives one after the other."""
    upper = dist.new_group([2, 3])
    tensor = torch.full((1 << 18,), 1.0)
    told = [asked(lambda: dist.all_reduce(tensor))]
    if rank >= 2:
        with dist._time_estimator(upper) as one:
            dist.all_reduce(tensor, group=upper)
        told.append(one.estimated_time)
    told.append(asked(lambda: dist.send(tensor, 1) if rank == 0 else dist.recv(tensor, 0)) if rank < 2 else 0.0)
    told.append(asked(lambda: (dist.all_reduce(tensor), dist.broadcast(tensor, 3))))
    assert bool((tensor == 1).all())  # nothing was done
    dist.all_reduce(tensor)
    assert bool((tensor == size).all())
    return told


def microseconds(*lines):
    return sim.play("\n".join(["ranks 4", *lines, ""]), MACHINE).time * 1e6


def test_an_estimate_is_the_simulators_time_and_does_nothing(monkeypatch):
    monkeypatch.setenv("TRELLIS_SIMULATE", MACHINE)
    told = ranks.run(estimates, 4)
    size = "1048576B"
    whole = microseconds(f"all_reduce a {size}")
    message = microseconds(f"send_recv m {size} from 0 to 1")
    both = microseconds(f"all_reduce a {size}", f"broadcast b {size} root 3")
    assert told[0] == pytest.approx([whole, message, both], rel=1e-5) and told[1] == told[0]
    half = microseconds(f"all_reduce a {size} on 2-3")
    assert told[2] == pytest.approx([whole, half, 0.0, both], rel=1e-5) and told[3] == told[2]


def refused(rank, size):
    with pytest.raises(ValueError, match="TRELLIS_SIMULATE=trn7: no machine is called 'trn7'"):
        asked(lambda: dist.all_reduce(torch.ones(4)))
    dist.all_reduce(torch.ones(4))


def test_a_machine_that_is_none_is_named(monkeypatch):
    monkeypatch.setenv("TRELLIS_SIMULATE", "trn7")
    ranks.run(refused, 2)


def none(rank, size):
    with pytest.raises(NotImplementedError, match="not supported"):
        asked(lambda: dist.all_reduce(torch.ones(4)))


def test_without_a_machine_torch_says_that_there_is_no_estimate(monkeypatch):
    monkeypatch.delenv("TRELLIS_SIMULATE", raising=False)
    ranks.run(none, 2)
