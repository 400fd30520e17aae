"""Hugging Face's Trainer, not changed, where it finds cuda."""

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


def recorded(folder, device="any"):
    job = record_job(["torchrun", str(JOB), str(folder)], 8, 8, device, 0, 1 << 34)
    assert prove(job).collectives
    return job


def communicated(job):
    """Bytes by kind and type."""
    told = Counter()
    for event in job.classes[0].record.events:
        if event[0] == "collective":
            told[event[3], event[6]] += event[5]
    return told


def test_the_trainer_sums_all_gradients(tmp_path):
    """In f32, as its weights are."""
    job = recorded(tmp_path, device="cuda")
    (one,) = job.classes
    attention = HIDDEN * HIDDEN * 2 + HIDDEN * HIDDEN // 2 * 2
    weights = 2 * 2048 * HIDDEN + HIDDEN + LAYERS * (attention + 3 * HIDDEN * INNER + 2 * HIDDEN)
    assert one.record.parameters == weights and one.record.tokens == TOKENS
    assert communicated(job)["all_reduce", "float32"] == pytest.approx(4 * weights, abs=64)  # and the loss
