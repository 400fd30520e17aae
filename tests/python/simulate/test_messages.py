"""Messages between the stages of a pipeline: when they are over, and what they cost."""

import pytest

pytest.importorskip("numpy")

from test_match import PRODUCT, collective, job, message, seconds  # noqa: E402
from trellis import sim  # noqa: E402
from trellis.simulate.export import as_workload  # noqa: E402
from trellis.simulate.match import prove  # noqa: E402
from trellis.simulate.price import price  # noqa: E402
from trellis.simulate.price.rates import Rates  # noqa: E402
from trellis.simulate.price.timeline import timed  # noqa: E402
from trellis.simulate.record import Family  # noqa: E402
from trellis.simulate.report.trace import trace  # noqa: E402


def test_a_gradient_does_not_arrive_before_it_is_sent_where_a_stage_has_two_classes():
    """Rank 0 alone reads its loss, so that the first stage has two classes, of which both receive."""
    first = [*[("op", 0, 0, 0, "forward")] * 2, message("send", 0, 1), message("receive", 1, 1), ("wait", 0, 1)]
    second = [message("receive", 0, 0), ("wait", 0, 0), ("op", 0, 0, 0, "forward"), message("send", 1, 0)]
    told = job([*first, ("op", 0, 0, 0, "forward")], first, second, second)
    two, three = told.classes[2:]
    two.ranks.extend(three.ranks)
    told.classes.remove(three)
    told.families[0] = Family("pp", ((0, 2), (1, 3)))
    prove(told)
    times = timed(told, seconds)
    assert [one.end for one in times.classes] == [2 + 5 + 1 + 5 + 1, 2 + 5 + 1 + 5, 2 + 5 + 1 + 5]


def test_messages_of_pairs_that_no_class_ties_do_not_wait_for_each_other():
    """Of three stages, the first two differ between two groups, and those of one send more."""
    more = [message("send", 0, 1), message("send", 1, 1)], [message("receive", 0, 0), message("receive", 1, 0)]
    told = job(more[0], more[0][:1], more[1], more[1][:1], [])
    told.classes[4].ranks.append(5)
    told.families[0] = Family("pp", ((0, 2, 4), (1, 3, 5)))
    prove(told)
    assert [one.end for one in timed(told, seconds).classes] == [10, 5, 10, 5, 0]


def test_messages_have_the_price_of_their_own_ends():
    """From host to host they are slower than within one, whichever is asked for first."""
    stages = Family("pp", tuple((i, i + 32, i + 64, i + 96) for i in range(32)))
    families = [Family("world", (tuple(range(128)),)), stages]
    inside, between = (0, 1), (1, 2)
    prices = []
    for hops in ((inside, between), (between, inside)):
        rates = Rates(sim.Machine("trn2.48xlarge x 2"), families)
        prices.append({hop: rates.message(1, *hop, 1 << 24) for hop in hops})
    assert prices[0] == prices[1] and prices[0][between] > 1.5 * prices[0][inside]


@pytest.mark.parametrize("defect", ["slow:{}-{}:0.1", "straggler:{}:0.2", "hbm:{}:0.1"])
def test_a_defect_outside_the_first_group_costs_as_much(defect):
    """The second host's ranks begin at 32."""
    ranks = tuple(range(64))
    families = [Family("world", (ranks,)), Family("tp", tuple(ranks[i : i + 8] for i in ranks[::8])),
                Family("pp", ((0, 4), (8, 12), (32, 36)))]  # fmt: skip
    whole = sim.Machine("trn1.32xlarge x 2")
    usual, first, other = (
        Rates(machine, families)
        for machine in (whole, whole.what_if(defect.format(0, 4)), whole.what_if(defect.format(32, 36)))
    )
    reduced = [rates.collective("all_reduce", 1, 64 << 20, -1) for rates in (usual, first, other)]
    assert reduced[1] == pytest.approx(reduced[2], rel=1e-3) and reduced[1] > 2 * reduced[0]
    sent = [rates.message(2, 0, 1, 64 << 20) for rates in (usual, first, other)]
    assert sent[1] == pytest.approx(sent[2], rel=1e-3) and sent[1] >= sent[0]


def test_a_straggler_computes_as_slowly_as_it_is():
    """And others that do the same take as long as the slowest of them."""
    told = job([("op", 0, 0, 0, "forward")], [])
    told.classes[0].ranks.append(told.classes.pop().ranks[0])
    whole = sim.Machine("trn1.32xlarge")
    machines = (whole, whole.what_if("straggler:1:0.2"), whole.what_if("straggler:5:0.2"))
    usual, slow, other = (price(told, machine) for machine in machines)
    assert slow.time == pytest.approx(5 * usual.time) and other.time == usual.time
    assert [o.time for o in slow.operators] == pytest.approx([5 * o.time for o in usual.operators])


def test_a_class_with_a_faster_rank_takes_as_long_as_its_others():
    """One rank by itself is as fast as it is."""
    told = job([("op", 0, 0, 0, "forward")], [])
    machines = (sim.Machine("trn1.32xlarge"), sim.Machine("trn1.32xlarge").what_if("straggler:0:2"))
    alone = [price(told, machine).time for machine in machines]
    told.classes[0].ranks.append(told.classes.pop().ranks[0])
    usual, faster = (price(told, machine).time for machine in machines)
    assert faster == usual and alone[1] == pytest.approx(alone[0] / 2)


def test_slow_memory_of_a_rank_slows_what_its_class_computes():
    """As slow memory of all of them does."""
    told = job([("op", 0, 0, 0, "forward")], [])
    told.classes[0].ranks.append(told.classes.pop().ranks[0])
    told.classes[0].record.operations[0] = PRODUCT._replace(
        name="aten.add", inputs=((4096, 4096),) * 2, outputs=((4096, 4096),), flops=0, read=4 << 24, written=2 << 24
    )
    whole = sim.Machine("trn1.32xlarge")
    rate = whole.figures["hbm.rate"].value
    usual, slow, other, all_slow = (
        price(told, machine)
        for machine in (
            whole,
            whole.what_if("hbm:1:0.25"),
            whole.what_if("hbm:5:0.25"),
            whole.with_figure("hbm.rate", rate / 4),
        )
    )
    assert slow.time == pytest.approx(all_slow.time) and slow.time > 1.5 * usual.time and other.time == usual.time
    assert [o.time for o in slow.operators] == pytest.approx([o.time for o in all_slow.operators])
    assert (slow.low, slow.high) == pytest.approx((all_slow.low, all_slow.high))
    assert whole.what_if("hbm:1:0.25").memory_at_defects == {1: 4.0} and whole.memory_at_defects == {}


def test_a_workload_is_refused_where_ranks_differ_in_what_they_communicate():
    """Its text has one program for all ranks."""
    told = job([collective(0, family=1)], [], [collective(0, "all_gather", family=1)], [])
    for which in (2, 0):
        told.classes[which].ranks.append(told.classes.pop(which + 1).ranks[0])
    told.families.append(Family("halves", ((0, 1), (2, 3))))
    prove(told)
    with pytest.raises(ValueError, match="ranks like 0 and 2 differ in what they communicate.*--chakra"):
        as_workload(price(told, "trn2.48xlarge"))
    told.classes[1].record.events[0] = collective(0, family=1)
    assert "all_reduce c0 4096B on g1" in as_workload(price(told, "trn2.48xlarge"))


def test_a_refused_workload_names_ranks_that_differ_in_what_they_communicate():
    """Rank 1, whose host waits, communicates what rank 0 does."""
    reduces, gathers = [collective(0, family=1)], [collective(0, "all_gather", family=1)]
    told = job(reduces, [("host", -1, 0), *reduces], gathers, gathers)
    told.families.append(Family("halves", ((0, 1), (2, 3))))
    with pytest.raises(ValueError, match="ranks like 0 and 2 differ"):
        as_workload(price(told, "trn2.48xlarge"))


def test_messages_that_are_under_way_at_once_have_rows_of_their_own():
    """Viewers drop what overlaps a part of another event of its row, and draw what lies within as its child."""
    work = ("op", 0, 0, 0, "forward")
    first = [message("send", 0, 1, size=1 << 28), message("receive", 1, 1, size=1 << 28), ("wait", 0, 1), work]
    second = [message("receive", 0, 0, size=1 << 28), *[work] * 50, message("send", 1, 0, size=1 << 28), ("wait", 0, 0)]
    told = trace(price(job(first, second), "trn2.48xlarge"))["traceEvents"]
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in told if e["name"] == "thread_name"}
    assert list(names.values()).count("communication of world (2)") == 2
    rows = {}
    for event in (e for e in told if e["ph"] == "X"):
        rows.setdefault((event["pid"], event["tid"]), []).append((event["ts"], event["ts"] + event["dur"]))
    assert set(rows) == set(names) and sum(map(len, rows.values())) == 55
    for spans in map(sorted, rows.values()):
        assert all(one[1] <= other[0] + 1e-6 for one, other in zip(spans, spans[1:], strict=False)), spans
