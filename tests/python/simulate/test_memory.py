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


BUCKETS = """
import sys, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("nccl")
model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(4)]).to("cuda")
model = DistributedDataParallel(model, gradient_as_bucket_view=sys.argv[1] == "views")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    optimizer.zero_grad(set_to_none=False)
    model(torch.rand(1, 1024, device="cuda")).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize("how", ["copies", "views"])
def test_buckets_of_gradients_are_no_activations(how, tmp_path):
    """DistributedDataParallel copies gradients into buckets as large, unless they are views of the buckets."""
    (tmp_path / "job.py").write_text(BUCKETS)
    job = record_job(["torchrun", str(tmp_path / "job.py"), how], 2, 2, "any", 0, 1 << 34)
    held, size = job.classes[0].record.memory.categories, 4 * 4 * 1025 * 1024
    assert held["gradients"] == size and held.get("buckets", 0) == (size if how == "copies" else 0), held
    assert held.get("activations", 0) < size // 16, held
