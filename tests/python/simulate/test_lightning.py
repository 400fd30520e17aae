"""Lightning's Trainer, not changed."""

import pathlib
from collections import Counter

import pytest

pytest.importorskip("torch")
pytest.importorskip("lightning")

from trellis.simulate.match import prove  # noqa: E402
from trellis.simulate.ranks.record_job import record_job  # noqa: E402

JOB = pathlib.Path(__file__).parent / "jobs" / "lightning_trainer.py"
WEIGHTS = 2 * 4 * 512 * 512 + 4 * 512 + 512


def recorded(strategy):
    job = record_job(["torchrun", str(JOB), strategy], 8, 8, "any", 0, 1 << 34)
    assert prove(job).collectives
    told = [Counter() for _ in job.classes]
    for one, sizes in zip(job.classes, told, strict=True):
        for event in one.record.events:
            if event[0] == "collective" and event[6].startswith(("float", "bfloat")):
                sizes[event[3], event[6]] += event[5]
    return job, told


def test_ddp_sums_all_gradients():
    job, (told,) = recorded("ddp")
    assert told == {("all_reduce", "float32"): 4 * WEIGHTS} and job.classes[0].record.parameters == WEIGHTS


def test_fsdp_gathers_weights_and_scatters_gradients():
    """All is one piece, cut evenly; which parameters are in a rank's shard differs, and so do updates."""
    job, told = recorded("fsdp")
    assert WEIGHTS % 8 == 0 and len(job.classes) > 1
    for one, sizes in zip(job.classes, told, strict=True):
        assert sizes == {("all_gather", "bfloat16"): 2 * WEIGHTS, ("reduce_scatter", "bfloat16"): 2 * WEIGHTS}
        assert one.record.parameters == WEIGHTS // 8
