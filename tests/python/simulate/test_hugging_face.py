"""Hugging Face's Trainer, not changed, where it finds cuda and where it finds neuron; experts of Mixtral."""

import pathlib
from collections import Counter

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("accelerate")

from trellis.simulate.match import prove  # noqa: E402
from trellis.simulate.ranks.record_job import record_job  # noqa: E402

JOB = pathlib.Path(__file__).parent / "jobs" / "trainer.py"
TOKENS, HIDDEN, INNER, LAYERS = 2 * 256, 256, 512, 2


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


def test_experts_compute_what_is_routed_to_them(tmp_path):
    job = recorded(tmp_path, "mixtral", routing="uniform")
    record = job.classes[0].record
    grouped = [record.operations[e[2]] for e in record.events if e[0] == "op"
               and "grouped" in record.operations[e[2]].name]  # fmt: skip
    chosen = TOKENS * 2
    forth = LAYERS * 2 * chosen * 3 * HIDDEN * INNER
    assert sum(o.flops for o in grouped) == 3 * forth
    assert "uniform" in " ".join(job.assumptions)
