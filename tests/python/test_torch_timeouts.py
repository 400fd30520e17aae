"""Operations whose time is over: they raise in time, hold up no process, and monitored_barrier says who is missing."""

import time
from datetime import timedelta

import pytest

torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402

import ranks  # noqa: E402


def impatient(seconds):
    """The group's calls from now on end by then. Its timeout, by which all must have come to what succeeds, is long."""
    dist.group.WORLD._get_backend(torch.device("cpu")).set_timeout(timedelta(seconds=seconds))


def test_a_receive_without_a_send_times_out():
    def case(rank, size):
        if rank == 0:
            impatient(1)
            with pytest.raises(dist.DistBackendError, match=r"recv \d+ on rank 0.*timed out.*it waits for rank 1"):
                dist.recv(torch.ones(3), 1)
            dist.distributed_c10d._get_default_store().set("ended", "")
        else:
            dist.distributed_c10d._get_default_store().wait(["ended"], timedelta(seconds=60))

    ranks.run(case, 2, timeout=60)


def given_up(rank, size):
    store = dist.distributed_c10d._get_default_store()
    impatient(1)
    if rank == 0:
        with pytest.raises(dist.DistBackendError, match=r"send \d+ on rank 0.*timed out"):
            dist.send(torch.ones(4), 1)
        dist.destroy_process_group()
        store.set("gone", "")
        return
    store.wait(["gone"], timedelta(seconds=60))
    with pytest.raises(dist.DistBackendError, match=r"recv \d+ on rank 1.*timed out"):
        dist.recv(torch.ones(4), 0)


def test_a_sender_that_has_given_up_does_not_keep_a_late_receiver_from_ending():
    ranks.run(given_up, 2)


def polled_or_by_future(rank, size, how):
    if rank == 1:
        dist.distributed_c10d._get_default_store().wait(["ended"], timedelta(seconds=60))
        return
    impatient(1)
    work = dist.irecv(torch.ones(3), 1)
    with pytest.raises((dist.DistBackendError, RuntimeError), match=r"recv \d+ on rank 0.*it waits for rank 1"):
        if how == "future":
            work.get_future().wait()
        else:
            while not work.is_completed():
                time.sleep(0.01)
            work.wait()
    dist.distributed_c10d._get_default_store().set("ended", "")


@pytest.mark.parametrize("how", ["future", "poll"])
def test_a_receive_that_nobody_waits_for_times_out(how):
    ranks.run(polled_or_by_future, 2, how, timeout=60)


def shorter(rank, size):
    store = dist.distributed_c10d._get_default_store()
    dist.all_reduce(torch.ones(3))
    impatient(5)
    if rank == 1:
        store.wait(["ended"], timedelta(seconds=60))
        return
    with pytest.raises(dist.DistBackendError, match=r"all_reduce 2 on rank 0.*timed out: it has not ended in 5000 ms"):
        dist.all_reduce(torch.ones(3))
    store.set("ended", "")


def test_a_timeout_can_be_shortened():
    ranks.run(shorter, 2)


def left(rank, size):
    store = dist.distributed_c10d._get_default_store()
    ranks.meet(rank, size)
    if rank == 1:
        store.wait(["left"], timedelta(seconds=60))
        return
    options = dist.BarrierOptions()
    options.timeout = timedelta(seconds=1)
    begun = time.monotonic()
    with pytest.raises(dist.DistBackendError, match=r"barrier 2 on rank 0.*timed out: it has not ended in 1000 ms"):
        dist.group.WORLD.barrier(options).wait()
    dist.destroy_process_group()
    assert time.monotonic() - begun < 20
    store.set("left", "")


def test_a_process_leaves_an_operation_that_it_gave_up():
    ranks.run(left, 2, timeout=60)


def late_but_well(rank, size):
    store = dist.distributed_c10d._get_default_store()
    x = torch.ones(3)
    if rank == 1:
        store.wait(["raised"], timedelta(seconds=60))
        dist.barrier()
        store.set("came", "")
        store.wait(["leaves"], timedelta(seconds=60))
        time.sleep(1)
        dist.all_reduce(x)
        return x.tolist()
    options = dist.BarrierOptions()
    options.timeout = timedelta(seconds=1)
    with pytest.raises(dist.DistBackendError, match="timed out"):
        dist.group.WORLD.barrier(options).wait()
    store.set("raised", "")
    store.wait(["came"], timedelta(seconds=60))
    work = dist.all_reduce(x, async_op=True)
    ranks.await_operation(2)
    store.set("leaves", "")
    dist.destroy_process_group()
    work.wait()
    return x.tolist()


def test_an_operation_that_ended_well_after_it_was_given_up_ends_no_other():
    assert ranks.run(late_but_well, 2, timeout=60) == [[2, 2, 2]] * 2


def timeouts(rank, size):
    from torch._C._distributed_c10d import Backend

    def timeout(group):
        return group._get_backend(torch.device("cpu")).options._timeout.total_seconds()

    patient = Backend.Options("trellis", timeout=timedelta(seconds=77))
    everyone = list(range(size))
    assert timeout(dist.group.WORLD) == 30
    assert timeout(dist.new_group(everyone, pg_options=patient)) == 77
    assert timeout(dist.new_group(everyone, pg_options=patient, timeout=timedelta(seconds=88))) == 88
    assert timeout(dist.new_group(everyone, timeout=timedelta(seconds=88))) == 88
    assert timeout(dist.new_group(everyone)) == 1800  # torch's, as with gloo
    mesh = dist.init_device_mesh(
        "cpu", (size, 1), mesh_dim_names=("shard", "alone"), backend_override={"shard": patient, "alone": patient}
    )
    assert timeout(mesh.get_group("shard")) == timeout(mesh.get_group("alone")) == 77
    assert timeout(dist.group.WORLD.split_group(everyone, opts=patient, group_name="part")) == 77
    assert timeout(dist.group.WORLD.split_group(everyone, group_name="as the whole")) == 30


def test_a_group_with_options_of_its_own_keeps_their_timeout():
    ranks.run(timeouts, 2)


def monitored(rank, size, waits_for_all):
    group = dist.group.WORLD
    barrier = getattr(group, "monitored_barrier")  # noqa: B009  (dist.monitored_barrier of torch 2.13 wants gloo's name)
    for _ in range(3):
        barrier(timedelta(seconds=60))
    if rank in (1, 2):
        dist.recv(torch.ones(1), 0)
        return None
    with pytest.raises(dist.DistBackendError) as caught:
        barrier(timedelta(seconds=6), waits_for_all)
    if rank == 0:
        for absent in (1, 2):
            dist.send(torch.ones(1), absent)
    return str(caught.value)


@pytest.mark.parametrize("waits_for_all", [False, True])
def test_a_monitored_barrier_names_who_is_missing(waits_for_all):
    told = ranks.run(monitored, 4, waits_for_all, timeout=60)
    for said in (told[0], told[3]):
        whom = "Ranks 1, 2" if waits_for_all else "Rank 1"
        assert f"{whom} failed to pass monitoredBarrier in 6000 ms" in said, said


def monitored_without_the_first(rank, size):
    if rank == 0:
        return dist.recv(torch.ones(1), 1)
    with pytest.raises(dist.DistBackendError, match="Rank 0 failed to pass monitoredBarrier in 100 ms"):
        dist.group.WORLD.monitored_barrier(timedelta(milliseconds=100))
    dist.send(torch.ones(1), 0)


def test_a_monitored_barrier_without_its_first_rank():
    ranks.run(monitored_without_the_first, 2, timeout=60)


def monitored_with_a_late_first(rank, size):
    if rank == 2:
        return dist.recv(torch.ones(1), 0)
    if rank == 0:
        time.sleep(6)
    with pytest.raises(dist.DistBackendError, match="Rank 2 failed to pass monitoredBarrier in 30000 ms"):
        dist.group.WORLD.monitored_barrier(timedelta(seconds=30))
    if rank == 0:
        dist.send(torch.ones(1), 2)


def test_a_monitored_barrier_whose_first_rank_is_late_names_who_is_missing():
    ranks.run(monitored_with_a_late_first, 3, timeout=60)


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
