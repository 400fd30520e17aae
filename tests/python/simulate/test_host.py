"""When a step's host waits: for streams, for events, for all of the device."""

import pytest

pytest.importorskip("numpy")

from test_match import collective, exported, job, message  # noqa: E402
from trellis.simulate.export.tasks import tasks  # noqa: E402
from trellis.simulate.match import Mismatch  # noqa: E402
from trellis.simulate.price.timeline import timed  # noqa: E402
from trellis.simulate.record import Operation  # noqa: E402


def work(stream=0):
    return ("op", stream, 0, 0, "forward")


def seconds(event, ends):
    return 10.0


def gathered_units(count, waits):
    """As FullyShardedDataParallel does: a unit is gathered on a stream of its own when the one before the last is
    freed."""
    events = []
    for unit in range(count):
        if unit >= 2:
            events.append(waits(100 + unit - 2))
        gather = collective(unit, "all_gather", stream=1)
        events += [gather, ("wait", 1, unit), ("mark", 1, unit), ("await", 0, unit), work(), ("mark", 0, 100 + unit)]
    return events


def test_a_host_that_waits_for_an_event_waits_for_no_more():
    """Ten units of 10 s, gathered in 10 s each: all but the first are gathered beside computation."""
    limited = gathered_units(10, lambda event: ("reached", event, 0))
    told = timed(job(limited, limited), seconds)
    assert told.time == 110 and sum(told.classes[0].exposed.values()) == 10
    halted = gathered_units(10, lambda event: ("host", -1, 0))
    assert timed(job(halted, halted), seconds).time == 190
    awaited = [work(), ("mark", 0, 5), work(), ("reached", 5, 0), work(1)]
    assert [span.start for span in timed(job(awaited), seconds).classes[0].spans] == [0, 10, 10]


def test_an_event_of_an_earlier_step_has_been_reached():
    events = [("reached", 5, 0), work()]
    assert timed(job(events), seconds).time == 10


def test_the_hash_is_not_of_where_the_host_waits():
    waits = [("reached", 1, 0), ("reached", 1, 1), ("reached", 2, 0)]
    here, there, other = (job([one]).classes[0].record for one in waits)
    assert here.hash() == there.hash() != other.hash()
    assert here.place(here.events[0]).module == "layers.0"


@pytest.mark.parametrize("waits", [[("host", 1, 0)], [("host", -1, 0)], [("mark", 1, 7), ("reached", 7, 0)]])
def test_what_the_host_waits_for_is_exposed(waits):
    """The first stream stands still for a collective that a side stream waits for, and the host for that."""
    told = [work(), collective(0), ("wait", 1, 0), *waits, work()]
    times = timed(job(told, told), seconds).classes[0]
    assert times.end == 30 and times.busy == 20 and dict(times.exposed) == {1: 10}


def test_an_operation_that_the_host_waits_for_is_exposed():
    times = timed(
        job([work(), work(1), work(1), ("host", 1, 0), collective(0), ("wait", 0, 0), work()]), seconds
    ).classes[0]
    assert times.end == 40 and dict(times.exposed) == {4: 20}
    assert [span.cause for span in times.spans] == [-1, -1, 1, 2, 3]


def test_a_host_that_waits_for_all_waits_for_what_is_communicated():
    """Which no stream waits for; a host that waits for a stream alone does not."""
    told = [work(), collective(0), ("host", -1, 0), work()]
    one = job(told, told)
    times = timed(one, seconds).classes[0]
    assert [span.start for span in times.spans] == [0, 10, 20] and dict(times.exposed) == {1: 10}
    assert [task.after for task in tasks(one, one.classes[0].record)] == [(), (0,), (1,)]
    told[2] = ("host", 0, 0)
    assert [span.start for span in timed(job(told, told), seconds).classes[0].spans] == [0, 10, 10]


def test_hosts_that_wait_for_what_is_not_received_yet_are_told():
    """Both send, wait for all, and receive then."""
    told = [
        [message("send", 0, other), ("host", -1, 0), message("receive", 1, other), ("wait", 0, 1)] for other in (1, 0)
    ]
    with pytest.raises(Mismatch, match="nobody can go on: rank 0 waits for send of .*; rank 1 waits for send of"):
        timed(job(*told), seconds)


@pytest.mark.parametrize("waits", [[("host", 1, 0)], [("host", -1, 0)], [("mark", 1, 7), ("reached", 7, 0)]])
def test_what_is_exported_waits_as_the_host_does(waits, tmp_path):
    """Products behind a wait of the host for a collective, which a stream beside theirs waits for."""
    steps = [collective(0, size=1 << 26, stream=1), ("wait", 1, 0), *waits, *[work()] * 10]
    one = job(*[steps] * 4)
    product = Operation("aten.mm.default", ((2048, 2048), (2048, 2048)), ((2048, 2048),), "bfloat16", 2 * 2048**3, 0, 0)
    for each in one.classes:
        each.record.operations[0] = product
    price, workload, chakra = exported(one, tmp_path)
    assert workload == pytest.approx(price, rel=0.05) and chakra == pytest.approx(price, rel=0.05)


def test_a_task_names_what_the_host_waited_for_once():
    """What the task before it in its lane is after is not named again, nor what is before that in another lane."""
    told = [work(1), ("host", 1, 0), work(), work(), work(1), ("host", -1, 0), ("host", 0, 0), work(2), work(2)]
    one = job(told)
    assert [(task.number, task.after) for task in tasks(one, one.classes[0].record)] == [
        (0, ()), (2, (0,)), (3, ()), (4, ()), (7, (4, 3)), (8, ())]  # fmt: skip
