"""Groups of ranks, most of which have no process here: how they are made, and how they are told."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("torch")

DEBUGGED = """
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("nccl")
pairs = [dist.new_group([first, first + 1]) for first in range(0, 8, 2)]
model = DistributedDataParallel(torch.nn.Linear(64, 64).cuda(), device_ids=[0])
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(4):
    model(torch.randn(8, 64, device="cuda")).sum().backward()
    dist.all_reduce(torch.zeros(4, device="cuda"), group=pairs[dist.get_rank() // 2])
    optimizer.step()
"""


def simulate(folder, script, world=8, limit=200, **variables):
    (folder / "train.py").write_text(script)
    words = [sys.executable, "-m", "trellis.simulate", "--world", str(world), "--", "torchrun", str(folder / "train.py")]
    environ = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
    done = subprocess.run(words, capture_output=True, text=True, timeout=limit, env=environ)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    return done.stdout


def test_what_torch_asks_of_all_ranks_waits_for_none(tmp_path):
    """By gloo, or by a store, for as long as torch's limit of 30 minutes."""
    asks = {"TORCH_DISTRIBUTED_DEBUG": "DETAIL", "TORCH_DIST_INIT_BARRIER": "1"}
    assert "all_reduce" in simulate(tmp_path, DEBUGGED, **asks)
