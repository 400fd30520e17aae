"""Jobs on a world that isn't there: what is recorded of them, what they cost, how they fail."""

import json
import os
import pathlib
import re
import subprocess
import sys
from collections import Counter

import pytest

pytest.importorskip("torch")

from trellis import sim  # noqa: E402
from trellis.simulate.price.rates import Rates  # noqa: E402
from trellis.simulate.ranks.coordinator import RankFailed, TooShort  # noqa: E402
from trellis.simulate.ranks.record_job import record_job  # noqa: E402
from trellis.simulate.record import Operation, read  # noqa: E402
from trellis.simulate.world.errors import NotUnderstood  # noqa: E402
from trellis.simulate.world.job import environment, program  # noqa: E402
from trellis.simulate.world.settings import Settings  # noqa: E402

TINY = pathlib.Path(__file__).parent / "jobs" / "tiny.py"
WIDTH = 1024
BLOCK = 4 * (2 * 4 * WIDTH * WIDTH + 4 * WIDTH + WIDTH)  # bytes of a block's parameters in f32


def simulate(*words, wrong=False):
    done = subprocess.run(
        [sys.executable, "-m", "trellis.simulate", *map(str, words)],
        capture_output=True, text=True, timeout=400, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert (done.returncode != 0) == wrong, done.stdout[-2000:] + done.stderr[-3000:]
    return done.stderr if wrong else done.stdout


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """The model on 16 ranks, by "neuron": its record's file, and the answer as plain values."""
    folder = tmp_path_factory.mktemp("tiny")
    simulate("--world", 16, "--record", folder / "record", "-o", folder / "answer.json", "-o", folder / "answer.html",
             "-o", folder / "answer.trace.json", "--", "torchrun", TINY, "neuron")  # fmt: skip
    return folder


def test_all_ranks_are_one_class_that_two_of_them_agree_on(tiny):
    (one,) = read(tiny / "record").classes
    assert one.ranks == list(range(16)) and one.recorded == [0, 15]


def test_the_bytes_of_sharded_parameters_are_exact(tiny):
    """Each block is gathered twice and its gradient scattered once."""
    told = json.loads((tiny / "answer.json").read_text())["communication"]
    by_kind = {c["kind"]: (c["count"], c["bytes"]) for c in told}
    assert by_kind["all_gather"] == (4, 4 * BLOCK) and by_kind["reduce_scatter"] == (2, 2 * BLOCK)


def test_flops_are_six_for_each_weight_and_row(tiny):
    record = read(tiny / "record").classes[0].record
    flops = sum(record.operations[e[2]].flops for e in record.events if e[0] == "op")
    products = 2 * 2 * 4 * WIDTH * WIDTH * 64
    first = 2 * 4 * WIDTH * WIDTH * 64  # the gradient of the input is not computed
    assert flops == 2 * products * 3 - first


def test_prefetching_runs_on_streams_of_its_own(tiny):
    record = read(tiny / "record").classes[0].record
    assert record.streams[0] == "compute" and {"all_gather", "reduce_scatter"} <= set(record.streams)
    on = Counter(record.streams[e[1]] for e in record.events if e[0] == "collective")
    assert on["all_gather"] == 4 and on["reduce_scatter"] == 2


def test_what_is_written_over_is_not_read(tiny):
    """Weights that are gathered are copied to where products read them, gradients to where they are scattered from."""
    told = {o.name: o for o in read(tiny / "record").classes[0].record.operations}
    for name in ("fsdp.split_with_sizes_copy", "fsdp.chunk_cat"):
        assert told[name].read == told[name].written > 0, told[name]


def test_an_optimizer_reads_lists_and_writes_one(tiny):
    told = {o.name: o for o in read(tiny / "record").classes[0].record.operations}
    assert told["aten._foreach_lerp_.Scalar"].read == 2 * told["aten._foreach_lerp_.Scalar"].written
    assert told["aten._foreach_addcmul_.Scalar"].read == 3 * told["aten._foreach_addcmul_.Scalar"].written


def test_places_are_the_jobs_own_modules_and_lines(tiny):
    record = read(tiny / "record").classes[0].record
    products = [record.place(e) for e in record.events if e[0] == "op" and record.operations[e[2]].flops]
    assert {p.module for p in products} == {"0.up", "0.down", "1.up", "1.down"}
    assert all(p.line.startswith("tiny.py:") or "/tiny.py:" in p.line for p in products)


def test_memory_has_its_categories(tiny):
    categories = read(tiny / "record").classes[0].record.memory.categories
    assert categories["parameters"] == 2 * BLOCK // 16
    assert categories["optimizer"] >= 2 * categories["parameters"] and BLOCK <= categories["gathered"] <= 4 * BLOCK


def test_the_answer_is_whole(tiny):
    told = json.loads((tiny / "answer.json").read_text())
    assert told["interval"][0] < told["time"] < told["interval"][1] and told["on_defaults"] < 0.2
    names = {e["name"] for e in json.loads((tiny / "answer.trace.json").read_text())["traceEvents"]}
    assert {"aten.mm", "all_gather", "reduce_scatter"} <= names
    assert "<svg" in (tiny / "answer.html").read_text()


def test_a_record_is_priced_on_another_machine_and_compared(tiny):
    slow = simulate("--read", tiny / "record", "-m", "trn1.32xlarge", "--against", tiny / "record")
    assert "on trn1.32xlarge, 16 ranks: a step takes" in slow and "against torchrun" in slow


def test_a_workload_of_trellis_sim_takes_about_as_long(tiny):
    from trellis import sim
    from trellis.simulate.export.workload import workload
    from trellis.simulate.price import price

    out = price(read(tiny / "record"), "trn2.48xlarge")
    played = sim.play(workload(out), "trn2.48xlarge")
    assert played.time == pytest.approx(out.time, rel=0.25)  # there, transfers share links and memory


def test_another_run_and_cuda_give_the_same_bytes(tiny, tmp_path):
    simulate("--world", 16, "--record", tmp_path / "again", "--", "torchrun", TINY, "cuda")
    one, two = read(tiny / "record"), read(tmp_path / "again")
    assert one.classes[0].record.hash() == two.classes[0].record.hash()
    two.command = one.command
    assert two == one


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("swapped", "all_reduce of 4096 B of float32 by sum in .*tiny.py:.*; rank .*all_reduce of 8192 B"),
        ("unknown", "0 at .*tiny.py:.*tests.unknown.* has no fake implementation.*torch.library.register_fake"),
        ("data", "0 at .*tiny.py:.*depends on data"),
        ("large", "tiny.py:.*of the host has no room.*on the device"),
        ("any source", "tiny.py:.*a message comes from any rank; name its source"),
        ("sparse", "tiny.py:.*gives a sparse tensor, and only data says how large it is; make it dense"),
        ("mesh", "tiny.py.*Mesh should not be bigger than default world size 16"),
    ],
)
def test_what_cannot_be_simulated_is_said_with_its_line(what, said):
    told = simulate("--world", 16, "--", "torchrun", TINY, "neuron", what, wrong=True)
    assert re.search(said, told, re.S), told


def test_a_job_that_computes_on_the_host_is_told_how_it_is_recorded():
    ddp = pathlib.Path(__file__).parents[3] / "examples" / "torch" / "ddp.py"
    said = simulate("--world", 8, "--", "torchrun", ddp, wrong=True)
    assert "computed nothing on device neuron or cuda" in said and "--device cpu" in said
    assert "all_reduce" in simulate("--world", 8, "--device", "cpu", "--", "torchrun", ddp, "--steps", 3)


def test_what_is_read_of_the_device_is_taken_as_one_and_listed():
    job = record_job(["torchrun", str(TINY.with_name("read.py"))], 2, 2, "any", 0, 1 << 34)
    for said in ("a value .* depends on data: taken as 1.0", "a value .*: taken as 1", "20 values .*: taken as False"):
        assert any(re.search(rf"read.py:\d+ reads {said}$", told) for told in job.assumptions), said
    assert any("compares tensors that depend on data: taken as False" in told for told in job.assumptions)
    assert any("checks values that depend on data: they are valid" in told for told in job.assumptions)


def test_several_whole_numbers_are_an_error_that_fits_counts_and_predictions():
    with pytest.raises(RankFailed, match=r"read.py:\d+: 4 whole numbers are read that depend on data; say --routing "
                       "uniform .* of others, as predictions, nothing is known"):  # fmt: skip
        record_job(["torchrun", str(TINY.with_name("read.py")), "whole"], 1, 1, "any", 0, 1 << 34)


@pytest.mark.parametrize("how", ["", "fused"])
def test_no_step_in_half_precision_is_skipped(how):
    """Gradients that nobody knows are finite, and so is what a script asks of them."""
    job = record_job(["torchrun", str(TINY.with_name("half.py")), how], 2, 2, "any", 0, 1 << 34)
    (one,) = job.classes
    told = {one.record.operations[e[2]].name for e in one.record.events if e[0] == "op" and e[4] == "optimizer"}
    assert told and any("_fused_adamw_" in name for name in told) == bool(how)
    assert any("half.py" in what and "is finite: it is" in what for what in job.assumptions)
    products = [o for o in one.record.operations if o.flops]
    assert len(products) > 4 and {o.type for o in products} == {"float16"}


def test_what_is_computed_on_the_host_is_real_and_goes_on_with_what_is_taken():
    job = record_job(["torchrun", str(TINY.with_name("collated.py"))], 2, 2, "any", 0, 1 << 34)
    assert job.classes[0].record.tokens == 32 * 2048
    assert sum("collated.py" in told and "reads a value that depends on data" in told for told in job.assumptions) == 3
    assert any("puts whole numbers that depend on data into a tensor of the host" in told for told in job.assumptions)


NESTED = """
import torch
model = torch.nn.Linear(64, 64).to("cuda")
optimizer = torch.optim.SGD(model.parameters())
copies = torch.cuda.Stream()
other = torch.cuda.Stream()

def fetch():
    with torch.cuda.stream(copies):
        return torch.rand(8, 64, device="cuda")

for _ in range(4):
    with torch.cuda.stream(copies):
        with torch.cuda.stream(other), copies:
            x = fetch()
            assert torch.cuda.current_stream() == copies
        assert torch.cuda.current_stream() == copies
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
    torch.cuda.current_stream().wait_stream(copies)
    model(x).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def test_a_stream_that_is_entered_within_itself_is_left(tmp_path):
    (tmp_path / "train.py").write_text(NESTED)
    (one,) = record_job(["torchrun", str(tmp_path / "train.py")], 1, 1, "any", 0, 1 << 34).classes
    told = [(one.record.streams[e[1]], one.record.operations[e[2]].name) for e in one.record.events if e[0] == "op"]
    assert [name for stream, name in told if stream == "copies"] == ["aten.rand"]
    assert len([name for stream, name in told if stream == "compute"]) == len(told) - 1 > 4


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("torchrun --nproc-per-node 8 train.py --lr 1", "train.py --lr 1"),
        ("/usr/bin/torchrun --no-python python -u train.py", "train.py"),
        ("torchrun --nnodes=2 -m pkg.train --lr 1", "-m pkg.train --lr 1"),
        ("python -m torch.distributed.run train.py", "train.py"),
        ("python3.11 -u -m torch.distributed.launch --use_env --nproc_per_node=8 train.py a", "train.py a"),
        ("python -m torch.distributed.launch train.py a", "train.py --local-rank=0 a"),
        ("python3 /usr/bin/torchrun train.py", "train.py"),
        ("python -W ignore -Xfaulthandler -X dev -uB train.py -W x", "train.py -W x"),
        ("python -Wignore -um pkg.train a", "-m pkg.train a"),
        ("python --check-hash-based-pycs always train.py", "train.py"),
        ("python3.13t train.py", "train.py"),
        ("/usr/bin/python3-dbg train.py", "train.py"),
        ("accelerate launch --num_processes 8 train.py a", "train.py a"),
        ("accelerate launch --num_processes 8 -m pkg.train a", "-m pkg.train a"),
        ("python -m accelerate.commands.launch train.py", "train.py"),
    ],
)
def test_the_script_of_a_command(command, words):
    told, module = program(command.split())
    assert ["-m"] * module + told == words.split()


def test_a_folder_with_a_main_is_a_script(tmp_path):
    with pytest.raises(NotUnderstood, match="is not known: expected torchrun, python"):
        program([str(tmp_path)])
    (tmp_path / "__main__.py").write_text("")
    assert program([str(tmp_path), "a"]) == ([str(tmp_path), "a"], False)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("srun python train.py", "'srun' of the job's command is not known: expected torchrun, python"),
        ("python -c print()", "no script or module in what python is told"),
        ("python -u", "no script or module in what python is told"),
        ("accelerate launch --num_processes 8", "no script or module in what accelerate launch is told"),
    ],
)
def test_a_command_without_a_script_is_refused(command, said):
    with pytest.raises(NotUnderstood, match=said):
        program(command.split())


def test_the_environment_is_torchruns(monkeypatch):
    """Ranks 16 to 23 of 24 are on a second host of 16."""
    monkeypatch.setattr(os, "environ", {})
    environment(Settings(20, 24, 16, "any", 0, 1 << 34, []))
    told = {
        name: os.environ[name] for name in ("RANK", "ROLE_RANK", "ROLE_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE")
    }
    assert list(told.values()) == ["20", "20", "24", "1", "2"]
    assert os.environ["TORCHELASTIC_RESTART_COUNT"] == os.environ["TORCHELASTIC_MAX_RESTARTS"] == "0"


COLLECTOR = """
import gc
import torch
gc.disable()
assert gc.isenabled()
model = torch.nn.Linear(64, 64).to("neuron")
optimizer = torch.optim.SGD(model.parameters())
for _ in range(4):
    model(torch.randn(64, 64, device="neuron")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def test_a_job_does_not_turn_the_collector_off(tmp_path):
    """Fake tensors leave cycles, 2 KB for each of the 512 pieces that fully_shard cuts a weight into."""
    (tmp_path / "train.py").write_text(COLLECTOR)
    simulate("--world", 2, "--", "torchrun", tmp_path / "train.py")


def test_a_step_begins_within_a_model_whose_rows_the_host_draws():
    (one,) = record_job(["torchrun", str(TINY.with_name("prefetch.py"))], 2, 2, "any", 0, 1 << 34).classes
    record = one.record
    assert record.tokens == 2 * 256
    used = [record.operations[e[2]] for e in record.events if e[0] == "op"]
    assert [o.outputs[0] for o in used if o.name == "aten.embedding"] == [(2, 256, 128)]
    assert {record.places[i].module for i in record.compiled} >= {"words", "up", "head"}


def test_what_has_no_elements_takes_no_time():
    rates = Rates(sim.Machine("trn2.48xlarge"), [])
    shapes = ((0, 64), (64, 32)), ((0, 32),)
    assert rates.operation(Operation("aten.mm", *shapes, "bfloat16", 0, 64 * 32 * 2, 0)) == 0


SHORT = """
import sys, torch, torch.multiprocessing as mp, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

def main(rank, updates, path):
    dist.init_process_group("nccl", rank=rank, world_size=2)
    model = DistributedDataParallel(torch.nn.Linear(1024, 1024).to(rank), device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(updates):
        model(torch.rand(8, 1024, device=rank)).sum().backward()
        optimizer.step()
        if rank == 0:
            torch.save({"model": model.module.state_dict(), "optimizer": optimizer.state_dict()}, path)

if __name__ == "__main__":
    mp.spawn(main, args=(int(sys.argv[1]), sys.argv[2]), nprocs=2)
    sys.exit(0)
"""


def test_a_script_that_spawns_its_ranks_and_makes_one_update(tmp_path):
    """What it saves is counted, as the first rank writes it, and nothing is written."""
    (tmp_path / "short.py").write_text(SHORT)
    words = ["python", str(tmp_path / "short.py"), "1", str(tmp_path / "saved.pt")]
    job = record_job(words, 2, 2, "any", 0, 1 << 34)
    assert [c.ranks for c in job.classes] == [[0], [1]]
    assert [[save[1:] for save in c.record.saves] for c in job.classes] == [[(0, 2 * 1025 * 1024 * 4)], []]
    assert not (tmp_path / "saved.pt").exists()
    assert any("makes 1 updates: its step 1 is recorded" in told for told in job.assumptions)


def test_a_job_that_is_over_too_early_says_what_to_do(tmp_path):
    (tmp_path / "short.py").write_text(SHORT)
    words = ["python", str(tmp_path / "short.py"), "2", str(tmp_path / "saved.pt")]
    with pytest.raises(TooShort, match="ended after 2 updates by its optimizer, .* ask for an earlier one with --step"):
        record_job(words, 2, 2, "any", 5, 1 << 34)
    with pytest.raises(TooShort, match="ended without an update by an optimizer of torch"):
        record_job([*words[:2], "0", words[3]], 2, 2, "any", 0, 1 << 34)
