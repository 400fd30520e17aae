"""The memory that a record tells of is what the same job really allocates, as torch's profiler sees it."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("torch")

from trellis.simulate.ranks.record_job import record_job  # noqa: E402

JOB = pathlib.Path(__file__).parent / "jobs" / "memory.py"


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """(what torch's profiler saw on the host, what was recorded), in bytes by category"""
    output = tmp_path_factory.mktemp("memory") / "peak.json"
    subprocess.run([sys.executable, str(JOB), "cpu", str(output)], check=True, capture_output=True, timeout=600,
                   env={**os.environ, "OMP_NUM_THREADS": "1"})  # fmt: skip
    (one,) = record_job([sys.executable, str(JOB), "neuron"], 1, 1, "neuron", 0, 1 << 34).classes
    return json.loads(output.read_text()), one.record.memory


def test_the_peak_is_within_a_tenth(both):
    real, ours = both
    assert ours.peak == pytest.approx(sum(real.values()), rel=0.1), (real, ours)


@pytest.mark.parametrize(
    ("name", "theirs"), [("parameters", "PARAMETER"), ("optimizer", "OPTIMIZER_STATE"), ("gradients", "GRADIENT")]
)
def test_each_category_of_the_model_is_within_a_tenth(both, name, theirs):
    real, ours = both
    assert ours.categories.get(name, 0) == pytest.approx(real.get(theirs, 0), rel=0.1, abs=1 << 20), (real, ours)


def test_the_rest_is_within_a_tenth(both):
    """Activations, inputs and what is short-lived: torch tells them apart in another way."""
    real, ours = both
    known = ("PARAMETER", "OPTIMIZER_STATE", "GRADIENT")
    theirs = sum(size for name, size in real.items() if name not in known)
    mine = sum(size for name, size in ours.categories.items() if name not in ("parameters", "optimizer", "gradients"))
    assert mine == pytest.approx(theirs, rel=0.1, abs=1 << 20), (real, ours)
