"""Hugging Face's Trainer, not changed, where it finds cuda and where it finds neuron; experts of Mixtral."""

import json
import pathlib
import subprocess
from collections import Counter

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("accelerate")

from trellis import sim  # noqa: E402
from trellis._where import PROGRAM  # noqa: E402
from trellis.simulate.match import prove  # noqa: E402
from trellis.simulate.price.rates import Rates  # noqa: E402
from trellis.simulate.ranks.record_job import record_job  # noqa: E402

JOB = pathlib.Path(__file__).parent / "jobs" / "trainer.py"
ROWS = 1024
TOKENS, HIDDEN, INNER, LAYERS = 2 * ROWS, 256, 512, 2


def recorded(folder, *model, device="any", routing=""):
    command = ["torchrun", str(JOB), str(folder), *model]
    job = record_job(command, 8, 8, device, 0, 1 << 34, routing)
    assert prove(job).collectives
    return job


def communicated(job):
    """Bytes by kind and type."""
    told = Counter()
    for event in job.classes[0].record.events:
        if event[0] == "collective":
            told[event[3], event[6]] += event[5]
    return told


@pytest.mark.parametrize("device", ["cuda", "neuron"])
def test_the_trainer_sums_all_gradients(device, tmp_path):
    """In f32, as its weights are."""
    job = recorded(tmp_path, device=device)
    (one,) = job.classes
    attention = HIDDEN * HIDDEN * 2 + HIDDEN * HIDDEN // 2 * 2
    weights = 2 * 2048 * HIDDEN + HIDDEN + LAYERS * (attention + 3 * HIDDEN * INNER + 2 * HIDDEN)
    assert one.record.parameters == weights and one.record.tokens == TOKENS
    assert communicated(job)["all_reduce", "float32"] == pytest.approx(4 * weights, abs=64)  # and the loss
    attention = [o for o in one.record.operations if "attention" in o.name]
    half = 2 * 2 * ROWS * ROWS * HIDDEN // 2 * 2  # of two sequences: scores, and what they weigh; causal
    assert {o.flops for o in attention} == {half, half * 5 // 2}


def test_weights_that_modules_share_are_one():
    """BERT's words, which are large, and the bias of its head, which is not."""
    command = ["torchrun", str(JOB.with_name("bert.py")), "1"]
    (one,) = record_job(command, 2, 2, "any", 2, 1 << 34).classes
    layer = 4 * (1024 * 1024 + 1024) + 2 * 4096 * 1024 + 4096 + 1024 + 4 * 1024
    words = (30522 + 512 + 2) * 1024 + 2 * 1024
    heads = 2 * (1024 * 1024 + 1024) + 2 * 1024 + 30522 + 2 * 1024 + 2  # pooler, transform and its norm, bias, two
    assert one.record.parameters == 24 * layer + words + heads
    told = [e for e in one.record.events if e[0] == "collective" and e[6] == "bfloat16"]
    assert sum(e[5] for e in told) == 2 * one.record.parameters


SAME = """
name: same
distributed_strategy: {zero1: false}
data: {micro_batch_size: 2, global_batch_size: 16, seq_length: 1024}
model:
  architecture: llama
  vocab_size: 2048
  hidden_size: 256
  num_layers: 2
  num_attention_heads: 8
  num_key_value_heads: 4
  intermediate_size: 512
  optim: {name: adamw, lr: 1.0e-4}
precision: {type: mixed_precision}
"""


def test_the_same_model_of_trellis_train_communicates_as_many_bytes_at_the_same_price(tmp_path):
    (tmp_path / "same.yaml").write_text(SAME)
    words = [PROGRAM, "train", "price", str(tmp_path / "same.yaml"), "-m", "trn2.48xlarge", "-n", "8", "--json"]
    told = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)["exchanges"]
    (theirs,) = [e for e in told if e["size_bytes"] > 1024]  # beside it they sum the gradients' norm
    job = recorded(tmp_path, device="cuda")
    events = job.classes[0].record.events
    ours = [e for e in events if e[0] == "collective" and e[5] > 1024]  # buckets of DistributedDataParallel
    assert {e[3] for e in ours} == {theirs["exchange"]} and sum(e[5] for e in ours) == theirs["size_bytes"]
    rates = Rates(sim.Machine("trn2.48xlarge"), job.families)
    seconds = rates.collective(theirs["exchange"], ours[0][4], int(theirs["size_bytes"]), -1)
    assert seconds == pytest.approx(theirs["together_us"] * 1e-6, rel=0.05)


def test_gradients_are_read_once_and_written_once_into_buckets(tmp_path):
    record = recorded(tmp_path).classes[0].record
    told = {e[2] for e in record.events if e[0] == "op"}
    copies = [record.operations[i] for i in told if record.operations[i].name in ("aten.mul.out", "aten.copy_")]
    assert {o.name for o in copies} == {"aten.mul.out", "aten.copy_"}
    assert all(o.read == o.written for o in copies)


def test_experts_compute_what_is_routed_to_them(tmp_path):
    job = recorded(tmp_path, "mixtral", routing="uniform")
    record = job.classes[0].record
    grouped = [record.operations[e[2]] for e in record.events if e[0] == "op"
               and "grouped" in record.operations[e[2]].name]  # fmt: skip
    chosen = TOKENS * 2
    forth = LAYERS * 2 * chosen * 3 * HIDDEN * INNER
    assert sum(o.flops for o in grouped) == 3 * forth
    assert "uniform" in " ".join(job.assumptions)
