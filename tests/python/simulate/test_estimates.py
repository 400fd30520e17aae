"""Inductor's scheduler asks the simulated machine how long collectives take, whatever the process group."""

import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

JOB = """
import torch, torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch._inductor import config
from trellis import sim
from trellis.torch.estimates import runtime_estimation

dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=8)
estimate, asked = runtime_estimation("trn2.48xlarge"), []

def told(node, size=None):
    time = estimate(node, size)
    if time is not None:
        asked.append((node.target._schema.name, time))
    return time

settings = config.aten_distributed_optimizations
settings.enable_overlap_scheduling, settings.custom_runtime_estimation = True, told

def step(x, w):
    gathered = funcol.all_gather_tensor(x, 0, dist.group.WORLD)
    return (w @ w).sum() + funcol.all_reduce(gathered @ w, "sum", dist.group.WORLD).sum()

torch.compile(step)(torch.rand(128, 256), torch.rand(256, 256))
sizes = {"all_gather_into_tensor": ("all_gather", 8 * 128 * 256 * 4), "all_reduce": ("all_reduce", 8 * 128 * 256 * 4)}
product = sim.operation_time("product", chip="trn2", cores=2, rows=256, inner=256, columns=256, type="f32").total
for name, time in asked:
    if name == "aten::mm":
        continue
    kind, size = sizes[name.partition("::")[2].rstrip("_")]
    ranks = "ranks 8\\ngroup g 0,1,2,3,4,5,6,7\\n"
    assert abs(time - 1e3 * sim.play(f"{ranks}{kind} c {size}B on g\\n", "trn2.48xlarge").time) < 1e-9, (name, time)
assert min(time for name, time in asked if name == "aten::mm") == 1e3 * product
print("asked for", sorted({name for name, _ in asked}))
"""


def test_the_scheduler_is_told_what_the_machine_would_take(tmp_path):
    from torch._inductor import config

    if not hasattr(config.aten_distributed_optimizations, "custom_runtime_estimation"):
        pytest.skip(f"torch {torch.__version__} has no such setting")
    (tmp_path / "job.py").write_text(JOB)
    done = subprocess.run([sys.executable, str(tmp_path / "job.py")], capture_output=True, text=True, timeout=500,
                          env={**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")})  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert "'_c10d_functional::all_gather_into_tensor', '_c10d_functional::all_reduce" in done.stdout


def test_a_machine_has_to_be_named(monkeypatch):
    from trellis.torch.estimates import runtime_estimation

    monkeypatch.delenv("TRELLIS_SIMULATE", raising=False)
    with pytest.raises(ValueError, match="expected its name, as in runtime_estimation"):
        runtime_estimation()
