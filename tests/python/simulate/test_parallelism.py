"""Ways of parallelism that PyTorch offers, each as a small job: what is recorded of it."""

import pathlib
from collections import Counter

import pytest

torch = pytest.importorskip("torch")

from trellis.simulate.match import prove  # noqa: E402
from trellis.simulate.price.rules import rule_of  # noqa: E402
from trellis.simulate.ranks.coordinator import RankFailed  # noqa: E402
from trellis.simulate.ranks.record_job import record_job  # noqa: E402

JOBS = pathlib.Path(__file__).parent / "jobs"


def recorded(name, *arguments, world=2, routing="", step=0):
    return record_job(["torchrun", str(JOBS / f"{name}.py"), *map(str, arguments)], world, world, "any", step, 1 << 34,
                      routing)  # fmt: skip


def kinds(record):
    return Counter(e[3] if e[0] == "collective" else e[0] for e in record.events if e[0] not in ("mark", "await"))


@pytest.mark.parametrize(("schedule", "hops"), [("interleaved", 3), ("zero_bubble", 3), ("zbv", 2)])
def test_all_messages_of_a_pipeline_fit(schedule, hops):
    """Eight micro-batches cross each boundary between two ranks' stages forth and back."""
    job = recorded("pipeline", schedule)
    assert prove(job).messages == 2 * 2 * 8 * hops
    first, last = (job.classes[job.class_of(rank)].record for rank in (0, 1))
    assert kinds(first)["send"] == kinds(last)["receive"] == 8 * hops
    products = [sum(r.operations[e[2]].flops for e in r.events if e[0] == "op") for r in (first, last)]
    each = 2 * 32 * 256 * 256
    assert products == [each * 5, each * 5 if schedule == "zbv" else each * 6] or schedule == "zbv"


@pytest.mark.parametrize(("schedule", "stages"), [("1f1b", 4), ("interleaved", 8)])
def test_messages_of_four_ranks_fit(schedule, stages):
    job = recorded("pipeline", schedule, world=4)
    assert [c.ranks for c in job.classes] == [[0], [1], [2], [3]]
    assert prove(job).messages == 2 * 2 * 8 * (stages - 1)


def test_attention_over_a_shared_sequence_rotates_keys_and_values():
    """Each of two rings, one forth and one back, goes one place further; scores are of half of the sequence."""
    job = recorded("context")
    record = job.classes[0].record
    assert kinds(record)["shift"] + kinds(record)["all_gather"] >= 2
    shifts = [e for e in record.events if e[0] == "collective" and e[3] == "shift"]
    assert {e[8] for e in shifts} <= {1}
    attention = [record.operations[e[2]] for e in record.events if e[0] == "op"
                 and "attention" in record.operations[e[2]].name]  # fmt: skip
    assert attention and all(o.inputs[0][2] <= 1024 for o in attention)


def test_experts_without_a_policy_are_an_error_at_the_line_that_reads_counts():
    with pytest.raises(
        RankFailed, match=r"experts.py:\d+: \d+ whole numbers are read that depend on data; say --routing"
    ):
        recorded("experts")


def test_experts_take_as_many_tokens_as_the_policy_says():
    job = recorded("experts", world=4, routing="uniform")
    (one,) = job.classes
    sizes = [e[5] for e in one.record.events if e[0] == "collective" and e[3] == "all_to_all" and e[6] == "float32"]
    assert sizes.count(512 * 2 * 256 * 4) == 3 and "uniform" in " ".join(job.assumptions)
    assert prove(job).collectives


def test_with_a_skew_the_fullest_rank_decides_and_all_of_them_agree():
    job = recorded("experts", world=4, routing="skew=1")
    assert prove(job).collectives
    by_rank = {c.recorded[0]: c.record for c in job.classes}
    rows = {rank: sum(o.flops for o in r.operations) for rank, r in by_rank.items()}
    assert rows[0] > 2 * rows[3]
    sizes = {max(e[5] for e in r.events if e[0] == "collective") for r in by_rank.values()}
    assert len(sizes) == 1 and sizes.pop() > 512 * 2 * 256 * 4 * 2


def test_a_policy_that_is_none_is_refused():
    from trellis.simulate.routing import counts

    assert counts(10, 4, "uniform") == [3, 3, 2, 2] and sum(counts(1000, 16, "skew=0.7")) == 1000
    with pytest.raises(ValueError, match="--routing skew=x: expected uniform or skew=S"):
        counts(10, 4, "skew=x")


def test_sharding_of_the_first_kind_gathers_and_scatters_each_block():
    (one,) = recorded("sharded").classes
    told = kinds(one.record)
    assert told["all_gather"] == 4 and told["reduce_scatter"] == 2  # the root has no parameters of its own
    gathered = sum(e[5] for e in one.record.events if e[0] == "collective" and e[3] == "all_gather")
    assert gathered == 4 * 2 * 1024 * 4096 * 2


def test_the_host_waits_for_the_unit_that_is_freed_and_not_for_the_device():
    """Before it gathers a unit, FullyShardedDataParallel waits until one of an earlier gather is freed, at first of the
    step before."""
    (one,) = recorded("sharded").classes
    told = one.record.events
    gathers = [i for i, e in enumerate(told) if e[0] == "collective" and e[3] == "all_gather"]
    assert [told[i - 1][0] for i in gathers] == ["reached"] * 4
    assert told[gathers[-1] - 1][1] in {e[2] for e in told[: gathers[-2]] if e[0] == "mark" and e[1] == 0}


GATHERED_ONCE = """
import torch, torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy
from torch.distributed.fsdp.wrap import ModuleWrapPolicy

dist.init_process_group("nccl")
model = nn.Sequential(nn.Sequential(nn.Linear(64, 64)), nn.Sequential(nn.Linear(64, 64)))
model = FullyShardedDataParallel(model, auto_wrap_policy=ModuleWrapPolicy({nn.Linear}), device_id=0,
                                 sharding_strategy=ShardingStrategy.SHARD_GRAD_OP, use_orig_params=True)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    model(torch.rand(8, 64, device="cuda")).sum().backward()
    model.clip_grad_norm_(1.0)
    optimizer.step()
    optimizer.zero_grad()
"""


def test_the_first_kind_may_keep_what_it_gathered_and_its_original_parameters(tmp_path):
    (tmp_path / "job.py").write_text(GATHERED_ONCE)
    for one in record_job(["torchrun", str(tmp_path / "job.py")], 2, 2, "any", 0, 1 << 34).classes:
        told = kinds(one.record)
        assert told["all_gather"] == told["reduce_scatter"] == 2 and told["all_reduce"] == 1


UNRECORDED = """
import torch
model = torch.nn.Linear(64, 64, device="cuda")
optimizer = torch.optim.SGD(model.parameters())
for _ in range(4):
    model(torch.ones(8, 64, device="cuda")).sum().backward()
    torch.cuda.Event().synchronize()
    optimizer.step()
    optimizer.zero_grad()
"""


def test_an_event_that_was_never_recorded_is_not_waited_for(tmp_path):
    (tmp_path / "job.py").write_text(UNRECORDED)
    (one,) = record_job(["torchrun", str(tmp_path / "job.py")], 1, 1, "any", 0, 1 << 34).classes
    assert {e[0] for e in one.record.events} == {"op"}


ON_THE_HOST = """
import sys, torch, torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import CPUOffload, CPUOffloadPolicy, FullyShardedDataParallel, fully_shard

dist.init_process_group("nccl")
model = nn.Sequential(nn.Linear(64, 64), nn.LayerNorm(64), nn.Linear(64, 512), nn.Linear(512, 512))
model[2].bias.data = torch.full((512,), 2.0)
model[3].weight.data = torch.zeros(512, 512)
model[3].weight.tag = "kept"
if "moved" in sys.argv:
    model.to("cuda")
elif "by data" in sys.argv:
    for parameter in model.parameters():
        parameter.data = parameter.data.to("cuda")
    assert model[3].weight.tag == "kept"
assert model[2].bias[3].item() == 2
if "first kind" in sys.argv:
    model = FullyShardedDataParallel(model, device_id=0, cpu_offload=CPUOffload(True))
policy = {"offload_policy": CPUOffloadPolicy()} if "offload" in sys.argv else {}
for part in (*model, model):
    fully_shard(part, **policy)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    model(torch.rand(8, 64, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def test_a_model_of_the_host_is_sharded_as_one_of_the_device(tmp_path):
    (tmp_path / "job.py").write_text(ON_THE_HOST)

    def record(how):
        return record_job(["torchrun", str(tmp_path / "job.py"), how], 4, 4, "any", 0, 1 << 34).classes[0].record

    moved = record("moved")
    assert sum(e[3] == "all_gather" for e in moved.events if e[0] == "collective") == 8
    assert record("on the host").hash() == record("by data").hash() == moved.hash()
    assert record("offload").parameters == moved.parameters
    with pytest.raises(RankFailed, match="keeps parameters on the host, which is not understood; .*use fully_shard"):
        record("first kind")


def test_a_checkpoint_is_counted_and_memory_queries_are_answered(tmp_path):
    """The job itself asserts what it is told of the device's memory."""
    (one,) = recorded("sharded", tmp_path / "checkpoint").classes
    ((_, own, whole),) = one.record.saves
    assert own == 2 * 2 * 1024 * 4096 * 4 // 2 and whole == 8
    assert not (tmp_path / "checkpoint" / ".metadata").exists()


def test_what_is_compiled_is_known():
    (one,) = recorded("compiled").classes
    places = [one.record.places[i] for i in one.record.compiled]
    assert {p.module for p in places} == {"0", "0.up", "0.down", ""}


def test_shapes_that_a_distributed_tensor_asks_for_are_no_work():
    """In the first step it asks, with operators on tensors of the whole model, and keeps the answer."""
    first, later = (recorded("mesh", 2, world=4, step=step).classes[0].record for step in (1, 2))
    products = [[r.operations[e[2]] for e in r.events if e[0] == "op" and r.operations[e[2]].flops]
                for r in (first, later)]  # fmt: skip
    assert len(products[0]) == len(products[1]) > 0
    assert max(o.inputs[0][-1] for o in products[0]) == 2048


def test_a_record_that_is_resized_is_the_one_recorded_at_that_size():
    """64 ranks made 512, of which fully_shard has 8 and then 64, beside tensor parallelism of 8."""
    from trellis.simulate.record import data_axis, resize

    small, large = recorded("mesh", 8, world=64), recorded("mesh", 8, world=512)
    assert data_axis(small) == "dp"
    made = resize(small, "dp", 64)
    assert made.families == large.families and made.world == large.world
    for ours, theirs in zip(made.classes, large.classes, strict=True):
        assert ours.record.hash() == theirs.record.hash()
        assert (ours.ranks, ours.recorded) == (theirs.ranks, theirs.recorded)
        assert ours.record.memory == theirs.record.memory and ours.record.parameters == theirs.record.parameters
    with pytest.raises(ValueError, match="not divided evenly: record the job at that size"):
        resize(small, "dp", 96)
    with pytest.raises(ValueError, match="no axis data: expected one of world, dp, tp"):
        resize(small, "data", 8)


def test_attention_of_narrow_values_and_by_flex_attention():
    job = recorded("masked", world=1)
    record = job.classes[0].record
    used = [record.operations[e[2]] for e in record.events if e[0] == "op"]
    ways = {o.name.removeprefix("aten._scaled_dot_product_"): o for o in used if "attention" in o.name}
    assert {name.split("_attention")[0] for name in ways} == {"efficient", "flash"}
    pairs = 2 * 2 * 4 * 256 * 256 // 2  # causal halves
    assert [o.flops for name, o in ways.items() if "backward" not in name] == [pairs * (48 + 32), pairs * (32 + 32)]
    assert ways["efficient_attention"].outputs[0] == (2, 4, 256, 32)
    assert any("flex_attention's mask is taken as causal" in told for told in job.assumptions)


def test_what_is_overwritten_has_no_old_value():
    told = recorded("overwritten", world=4).assumptions
    assert any("reads a value that depends on data: taken as 1" in one for one in told)


def test_convolutions_have_the_flops_of_what_they_do():
    """A transposed one's are of its input's positions; a bias's gradient is no convolution, an `out` no operand."""
    record = recorded("convolutions", world=1).classes[0].record
    used = [record.operations[e[2]] for e in record.events if e[0] == "op"]
    told = [(o.name, o.flops, rule_of(o).shape) for o in used if o.flops]
    first, second = 2 * 32 * 32 * 256 * 3 * 9, 2 * 32 * 32 * 256 * 128 * 4
    assert [(name.split(".")[1], flops) for name, flops, _ in told] == [
        ("convolution", first), ("convolution", second), ("convolution_backward", 2 * second),
        ("convolution_backward", first), ("mm", 2 * 8 * 32 * 16)]  # fmt: skip
    for name, flops, shape in told:
        assert flops == 2 * shape["batch"] * shape["rows"] * shape["inner"] * shape["columns"], name


def test_recurrent_layers_compute_a_cell_for_each_row():
    """Packed, a step's rows are those of the sequences that are so long: 15 rows in 7 steps, each way."""
    record = recorded("recurrent", world=1).classes[0].record
    used = [record.operations[e[2]] for e in record.events if e[0] == "op"]
    cells = [o.outputs for o in used if o.name == "aten._thnn_fused_gru_cell"]
    rows = Counter((state[0], state[1]) for state, kept in cells if kept == (state[0], 5 * state[1]))
    assert rows == {(3, 24): 6, (2, 24): 4, (1, 24): 4, (3, 8): 1}
    backward = [o for o in used if "_thnn_fused_gru_cell_backward" in o.name]
    assert len(backward) == 15 and {len(o.outputs) for o in backward} == {3, 5}


def test_losses_have_the_shapes_of_the_host():
    """Of CTC, states for each label of the longest target and for blanks around them: what the host's own gives."""
    told = torch.ops.aten._ctc_loss(torch.zeros(50, 3, 20), torch.ones(3, 10, dtype=torch.long), [50] * 3, [4, 7, 5])
    assert [tuple(t.shape) for t in told] == [(3,), (3, 50, 15)]
    record = recorded("losses", world=1).classes[0].record
    used = [record.operations[e[2]] for e in record.events if e[0] == "op"]
    states = [o.outputs for o in used if o.name.startswith("aten._ctc_loss") and "backward" not in o.name]
    assert states == 4 * [((3,), (3, 50, 15))]
    for name, count, shape in (("_ctc_loss_backward", 4, (50, 3, 20)), ("multi_margin_loss_backward", 1, (3, 20)),
                               ("multilabel_margin_loss_backward", 1, (3, 20))):  # fmt: skip
        found = [o for o in used if o.name.startswith(f"aten.{name}")]
        assert [o.outputs for o in found] == count * [(shape,)], name
        assert all(o.read > 0 and o.written > 0 for o in found), name
