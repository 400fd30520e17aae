"""Records of jobs as values: their file, what of them fits together, when what happens."""

import pytest

pytest.importorskip("numpy")

from trellis.simulate.match import Mismatch, prove  # noqa: E402
from trellis.simulate.price.timeline import timed  # noqa: E402
from trellis.simulate.record import (  # noqa: E402
    Family, JobRecord, Memory, Operation, Place, RankClass, RankRecord, read, write,
)  # fmt: skip

GIB = 1 << 30
PLACES = [Place("layers.0", "train.py:10"), Place("layers.1", "train.py:20")]
PRODUCT = Operation("aten.mm", ((128, 64), (64, 32)), ((128, 32),), "bfloat16", 2 * 128 * 64 * 32, 20480, 8192)


def collective(number, kind="all_reduce", size=4096, family=0, place=0, stream=0):
    return ("collective", stream, number, kind, family, size, "float32", "sum", -1, place, "forward")


def message(kind, number, peer, place=0, size=64):
    return (kind, 0, number, 0, peer, size, "float32", 0, place, "forward")


def job(*events_of_ranks):
    families = [Family("world", (tuple(range(len(events_of_ranks))),))]
    classes = [
        RankClass([rank], [rank], RankRecord(rank, list(events), [PRODUCT], list(PLACES), ["compute", "side"]))
        for rank, events in enumerate(events_of_ranks)
    ]
    return JobRecord(len(events_of_ranks), "2.13.0", "neuron", ["torchrun", "train.py"], families, classes)


def seconds(event, ends):
    return {"op": 1.0, "collective": 10.0}.get(event[0], 5.0)


def test_a_record_comes_back_from_its_file_and_is_the_same_bytes_each_time(tmp_path):
    one = job([collective(0), ("wait", 0, 0), ("op", 0, 0, 0, "forward")], [collective(0)])
    write(one, tmp_path / "a")
    write(one, tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert read(tmp_path / "a") == one


def test_a_file_that_is_no_record_is_refused(tmp_path):
    (tmp_path / "x").write_bytes(b"something else\n")
    with pytest.raises(ValueError, match="no record of a simulated job"):
        read(tmp_path / "x")
    write(job([]), tmp_path / "y")
    (tmp_path / "y").write_bytes((tmp_path / "y").read_bytes()[:-5])
    with pytest.raises(ValueError, match="damaged"):
        read(tmp_path / "y")
    (tmp_path / "z").write_bytes(b"trellis simulated job 99\n")
    with pytest.raises(ValueError, match="version '99': expected 1"):
        read(tmp_path / "z")


def test_the_hash_is_of_what_is_done_and_not_of_where():
    here, there = job([collective(0)], [collective(0, place=1)]).classes
    other = job([collective(0, size=8)]).classes[0]
    assert here.record.hash() == there.record.hash() != other.record.hash()


def test_two_collectives_in_another_order_are_refused_with_both_lines():
    ordered = [collective(0, "all_gather"), collective(1, "all_reduce", place=1)]
    swapped = [collective(0, "all_reduce", place=1), collective(1, "all_gather")]
    assert prove(job(ordered, ordered)).collectives == 4
    with pytest.raises(Mismatch) as told:
        prove(job(ordered, swapped))
    assert "rank 0 does all_gather of 4096 B of float32 by sum in layers.0 at train.py:10" in str(told.value)
    assert "rank 1 does all_reduce of 4096 B of float32 by sum in layers.1 at train.py:20" in str(told.value)


def test_a_missing_collective_and_another_size_are_refused():
    with pytest.raises(Mismatch, match="rank 1 does nothing more there"):
        prove(job([collective(0), collective(1)], [collective(0)]))
    with pytest.raises(Mismatch, match="4096 B.*8 B"):
        prove(job([collective(0)], [collective(0, size=8)]))


def test_a_message_needs_a_receiver_that_expects_it():
    sends, receives = [message("send", 0, 1)], [message("receive", 0, 0)]
    assert prove(job(sends, receives)).messages == 2
    with pytest.raises(Mismatch, match="message 1 of a group world differs"):
        prove(job(sends, []))
    with pytest.raises(Mismatch, match="64 B.*128 B"):
        prove(job(sends, [message("receive", 0, 0, size=128)]))


def test_ranks_that_wait_in_a_circle_are_refused():
    first = [message("receive", 0, 1), ("wait", 0, 0), message("send", 1, 1)]
    second = [message("receive", 0, 0, 1), ("wait", 0, 0), message("send", 1, 0, 1)]
    one = job(first, second)
    prove(one)  # every message has both ends
    with pytest.raises(Mismatch, match="nobody can go on: rank 0 waits .*train.py:10; rank 1 waits .*train.py:20"):
        timed(one, seconds)


def test_what_runs_beside_computation_costs_no_time_and_what_is_waited_for_does():
    beside = [collective(0), *[("op", 0, 0, 0, "forward")] * 20, ("wait", 0, 0), ("op", 0, 0, 0, "forward")]
    awaited = [collective(0), ("wait", 0, 0), *[("op", 0, 0, 0, "forward")] * 21]
    assert timed(job(beside, beside), seconds).time == 21
    late = timed(job(awaited, awaited), seconds)
    assert late.time == 31 and sum(late.classes[0].exposed.values()) == 10


def test_streams_are_ordered_by_events():
    """A collective on a side stream begins when the mark on the first stream is reached, not when it is issued."""
    events = [
        ("op", 0, 0, 0, "forward"), ("mark", 0, 7), ("op", 0, 0, 0, "forward"), ("await", 1, 7),
        collective(0, stream=1), ("wait", 0, 0), ("op", 0, 0, 0, "forward"),
    ]  # fmt: skip
    times = timed(job(events, events), seconds)
    assert times.time == 1 + 10 + 1 and times.classes[0].busy == 3


def test_a_pipeline_of_two_stages_has_its_bubble():
    work = [("op", 0, 0, 0, "forward")] * 4
    first = [*work, message("send", 0, 1)]
    second = [message("receive", 0, 0), ("wait", 0, 0), *work]
    times = timed(job(first, second), seconds)
    assert times.time == 4 + 5 + 4 and sum(times.classes[1].exposed.values()) == 9


def test_flags_beside_is_causal_do_not_halve_attention():
    flops = pytest.importorskip("trellis.simulate.world.flops")
    shapes = ((2, 8, 256, 64),) * 3
    whole = 2 * 2 * 8 * 256 * 256 * 128
    name = "aten._scaled_dot_product_efficient_attention.default"
    assert flops.of(name, [True, 0.0, False], shapes, ()) == whole
    assert flops.of(name, [True, 0.0, True], shapes, ()) == whole // 2
    assert flops.of("aten._scaled_dot_product_flash_attention.default", [0.0, True], shapes, ()) == whole // 2


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("values", [64, 48])
def test_scores_that_a_gradient_computes_again_are_not_useful(causal, values):
    """So attention is worth three times its forward pass."""
    from trellis import sim
    from trellis.simulate.price import price

    flops = pytest.importorskip("trellis.simulate.world.flops")
    query, of_values = (2, 8, 256, 64), (2, 8, 256, values)
    operations = []
    for way, inputs in (("", (query, query, of_values)), ("_backward", (of_values, query, query, of_values))):
        name = f"aten._scaled_dot_product_flash_attention{way}.default"
        count = flops.of(name, [0.0, causal], inputs, inputs[-1:])
        operations.append(Operation(name, inputs, inputs[-1:], "bfloat16", count, 1 << 20, 1 << 20))
    told = job([("op", 0, 0, 0, "forward"), ("op", 0, 1, 0, "backward"), ("op", 0, 0, 0, "recompute")])
    told.classes[0].record.operations[:] = operations
    assert price(told, sim.Machine("trn2.48xlarge")).flops == 3 * operations[0].flops


def compiled(*names):
    """(a record of these operations on (4096, 4096), all compiled, the machine's rates)"""
    from trellis import sim
    from trellis.simulate.price.rates import Rates

    shape = (4096, 4096)
    told = {
        "mm": Operation("aten.mm.default", (shape, shape), (shape,), "bfloat16", 2 * 4096**3, 1 << 26, 1 << 25),
        "add": Operation("aten.add.Tensor", (shape, shape), (shape,), "bfloat16", 0, 1 << 26, 1 << 25),
        "silu": Operation("aten.silu.default", (shape,), (shape,), "bfloat16", 0, 1 << 25, 1 << 25),
        "clone": Operation("aten.clone.default", (shape,), (shape,), "bfloat16", 0, 1 << 25, 1 << 25),
        "out": Operation("aten.mul.out", (shape, shape), (shape,), "bfloat16", 0, 1 << 25, 1 << 25),
        "softmax": Operation("aten._softmax.default", (shape,), (shape,), "bfloat16", 0, 1 << 25, 1 << 25),
        "unknown": Operation("mine.other", (shape,), (shape,), "bfloat16", 0, 1 << 25, 1 << 25),
    }
    operations = list(told.values())
    events = [("op", 0, list(told).index(name), 0, "forward") for name in names]
    return RankRecord(0, events, operations, list(PLACES), ["compute"], compiled=[0]), Rates(
        sim.Machine("trn2.48xlarge"), [])  # fmt: skip


def test_what_merges_takes_what_its_passes_take():
    """As operations that a compiler fuses in `trellis train price`: of a copy nothing is left."""
    from trellis import sim
    from trellis.simulate.price.merging import merged_times

    record, rates = compiled("mm", "add", "clone", "silu", "softmax", "unknown", "mm")
    times = merged_times(record, rates)
    assert set(times) == {1, 2, 3} and times[2] == 0
    shape = {"rows": 4096, "columns": 4096, "type": "bf16", "chip": "trn2", "cores": rates._cores}
    add = sim.operation_time("elementwise", inputs=2, outputs=1, vector=1, scalar=0, fused=True, **shape)
    assert times[1] == add.total == add.vector < rates.operation(record.operations[1])
    assert times[3] == sim.operation_time("gelu", fused=True, **shape).total


def test_what_a_region_begins_and_ends_with_goes_through_memory():
    from trellis.simulate.price.merging import merged_times

    record, rates = compiled("add", "silu", "add")
    whole = rates.operation(record.operations[1])
    times = merged_times(record, rates)
    assert times[1] < times[2] < times[0] < whole  # two operands are read, one is written
    record, rates = compiled("add")
    assert merged_times(record, rates) == {}
    record, rates = compiled("mm", "add", "mm")
    record.compiled = []
    assert merged_times(record, rates) == {}


def test_what_is_written_to_an_out_is_no_part_of_a_region():
    from trellis.simulate.price.merging import merged_times

    record, rates = compiled("mm", "add", "out", "add", "mm")
    assert set(merged_times(record, rates)) == {1, 3}


def test_a_step_whose_regions_are_merged_is_shorter_by_what_is_saved():
    from trellis.simulate.price import price

    record, _ = compiled("mm", "add", "silu", "mm")
    told = price(JobRecord(1, "2.13.0", "neuron", ["train.py"], [Family("world", ((0,),))],
                           [RankClass([0], [0], record)]), "trn2.48xlarge")  # fmt: skip
    assert told.merged.operations == 2 and told.merged.saved > 0
    assert told.merged.time == pytest.approx(told.time - told.merged.saved)


def exported(one, tmp_path):
    """(the price, what `trellis sim` says of the workload, and of the Chakra traces) in seconds"""
    import re
    import subprocess

    from trellis._where import PROGRAM
    from trellis.simulate.export import as_chakra, as_workload
    from trellis.simulate.price import price

    out = price(one, "trn2.48xlarge")
    (tmp_path / "step.txt").write_text(as_workload(out))
    for rank, trace in as_chakra(out):
        (tmp_path / f"step.{rank}.et").write_bytes(trace)
    told = [out.time]
    for name in ("step.txt", "step.0.et"):
        done = subprocess.run([PROGRAM, "sim", name, "--machine", "trn2.48xlarge"], cwd=tmp_path, check=False,
                              capture_output=True, text=True)  # fmt: skip
        assert done.returncode == 0, done.stderr
        value, unit = re.search(r": ([\d.]+) (\w+)\n", done.stdout).groups()
        told.append(float(value) * {"us": 1e-6, "ms": 1e-3}[unit])
    return told


@pytest.mark.parametrize("kind", ["all_reduce", "all_gather", "shift"])
def test_what_is_exported_takes_as_long(kind, tmp_path):
    """Four ranks, so that a shift takes two rounds; one communication beside the products, one awaited."""
    root = 1 if kind == "shift" else -1
    large = ("collective", 1, 0, kind, 0, 1 << 24, "float32", "", root, 0, "forward")
    steps = [large, *[("op", 0, 0, 0, "forward")] * 50, ("wait", 0, 0), (*large[:2], 1, *large[3:]), ("wait", 0, 1)]
    product = Operation("aten.mm.default", ((2048, 2048), (2048, 2048)), ((2048, 2048),), "bfloat16", 2 * 2048**3, 0, 0)
    one = job(*[[*steps, ("op", 0, 0, 0, "forward")]] * 4)
    classes = [RankClass([0, 1, 2, 3], [0, 3], one.classes[0].record)]
    classes[0].record.operations[0] = product
    one.classes = classes
    price, workload, chakra = exported(one, tmp_path)
    assert workload == pytest.approx(price, rel=0.05) and chakra == pytest.approx(price, rel=0.05)


def test_traces_are_as_astra_sim_reads_them(tmp_path):
    """Its reader takes each attribute from one field of the message, and process groups by number."""
    import json
    import re

    from trellis.simulate.export.chakra import chakra, chakra_groups
    from trellis.simulate.price import price

    one = job(*[[("collective", 1, 0, "all_reduce", 0, 1 << 20, "float32", "sum", -1, 0, "forward"), ("wait", 0, 0),
                 ("op", 0, 0, 0, "forward")]] * 4)  # fmt: skip
    out = price(one, "trn2.3xlarge")
    traces = dict(chakra(out))
    groups = json.loads(chakra_groups(out))

    def has(trace, name, field):
        return bytes([10, len(name)]) + name.encode() + bytes([field << 3]) in trace

    for rank, trace in traces.items():
        assert has(trace, "num_ops", 9) and has(trace, "comm_size", 9) and has(trace, "tensor_size", 13)
        number = re.search(rb"\x0a\x07pg_name\xea\x01.(\d+)", trace, re.DOTALL)[1].decode()
        assert rank in groups[number]


def test_what_if_of_the_machine_reaches_computation():
    from trellis import sim
    from trellis.simulate.price.rates import Rates
    from trellis.simulate.record import Operation

    mm = Operation("aten.mm", ((4096, 4096), (4096, 4096)), ((4096, 4096),), "bfloat16", 2 * 4096**3, 1 << 26, 1 << 25)
    usual = Rates(sim.Machine("trn2.48xlarge"), []).operation(mm)
    assert Rates(sim.Machine("trn2.48xlarge").what_if("tensor.clock=1GHz"), []).operation(mm) > 1.5 * usual


def test_groups_are_priced_beside_those_that_share_their_hosts():
    """Tensor parallelism of 8 on 4 hosts of 64 ranks: what other hosts do is nothing to a group."""
    from trellis import sim
    from trellis.simulate.price.rates import Rates, ranks_words

    groups = [tuple(range(r, r + 8)) for r in range(0, 256, 8)]
    data = [tuple(range(r, 256, 8)) for r in range(8)]
    families = [Family(name, tuple(g)) for name, g in (("world", [tuple(range(256))]), ("tp", groups), ("dp", data))]
    machine = sim.Machine("trn2.48xlarge x 4")
    asked = []
    rates = Rates(machine, families)
    play = rates._play
    rates._play = lambda *lines: asked.append(lines) or play(*lines)
    told = rates.collective("all_gather", 1, 1 << 26, -1)
    assert [len(lines[0].split()) - 2 for lines in asked] == [1, 8]  # a group alone, then the first host's
    words = " ".join(ranks_words(g) for g in groups)
    algorithm = rates.algorithms["all_gather", 1, 1 << 26, -1]
    every = sim.play(f"ranks 256\ngroup g {words}\nall_gather c {1 << 26}B on g by {algorithm}\n", machine)
    assert told == pytest.approx(every.time, rel=1e-3)
    rates.collective("all_gather", 2, 1 << 26, -1)
    assert [len(lines[0].split()) - 2 for lines in asked[2:]] == [1, 8]  # all of these meet on every host


def priced(device="cuda", **memory):
    from trellis.simulate.price import price

    work = [("op", 0, 0, 0, "forward")]
    one = job(work, work)
    one.device = device
    for each in one.classes:
        each.record.memory = Memory(16 * GIB, 0, {"activations": 16 * GIB}, 20 * GIB)
    for name, value in memory.items():
        setattr(one.classes[1].record.memory, name, value * GIB)
    return price(one, "trn2.48xlarge")


@pytest.mark.parametrize(("device", "memory", "verdict", "line"), [
    ("cuda", {}, ": fits", "allocator would have reserved 20 GiB"),
    ("cuda", {"reserved": 25}, ": fits in tensors, DOES NOT FIT as reserved",
     "allocator would have reserved 25 GiB of rank 1, more than there is"),
    ("cuda", {"peak": 25, "reserved": 26}, ": DOES NOT FIT",
     "would have reserved 26 GiB of rank 1, more than there is"),
    ("any", {}, ": fits", "allocator would have reserved 20 GiB; Neuron's has its own rules"),
    ("any", {"reserved": 25}, ": fits",
     "would have reserved 25 GiB of rank 1, more than there is; Neuron's has its own"),
    ("neuron", {"reserved": 25}, ": fits", None),
])  # fmt: skip
def test_what_would_be_reserved_counts_where_the_job_is_for_cuda(device, memory, verdict, line):
    from trellis.simulate.report import picture, plain, text

    out = priced(device, **memory)
    told = text.text(out).splitlines()
    (head,) = (row for row in told if row.startswith("  memory "))
    assert head.endswith(f"of 24 GiB{verdict}")
    assert f"of 24 GiB{verdict.lower()}" in picture.picture(out)
    about = [row for row in told if "reserved" in row and row is not head]
    assert len(about) == (line is not None) and (line is None or line in about[0])
    values = plain.plain(out)
    assert values["fits"] == ("peak" not in memory)
    assert values["cuda_reserved_fits"] == ("reserved" not in memory)


def test_what_is_exposed_in_neither_answer_is_not_new():
    from trellis.simulate.report.against import against

    assert "  exposed       0 ns -> 0 ns, +0%\n" in against(priced(), priced())


def test_of_a_record_that_does_not_know_what_is_reserved_nothing_is_told():
    from trellis.simulate.report import plain, text

    one = priced()
    for each in one.job.classes:
        each.record.memory.reserved = 0  # as in a resized record
    assert plain.plain(one)["cuda_reserved_fits"] is None and "reserved" not in text.text(one)


def test_a_machine_without_figures_of_its_chips_is_refused():
    from trellis.simulate.price import price

    work = [("op", 0, 0, 0, "forward")]
    with pytest.raises(ValueError, match=r"gpu\.hgx has no chip: expected one .*as trn1\.32xlarge"):
        price(job(work, work), "gpu.hgx")


def test_the_command_refuses_it_as_well(monkeypatch, capsys):
    from trellis.simulate import command

    monkeypatch.setattr("sys.argv", ["simulate", "-m", "gpu.hgx", "--", "torchrun", "train.py"])
    with pytest.raises(SystemExit, match="2"):
        command.main()
    assert "gpu.hgx has no chip" in capsys.readouterr().err
