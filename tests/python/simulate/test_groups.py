"""Groups of ranks, most of which have no process here: how they are made, and how they are told."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("torch")

from trellis.simulate.match import Mismatch  # noqa: E402
from trellis.simulate.ranks.families import joined  # noqa: E402
from trellis.simulate.ranks.record_job import record_job  # noqa: E402
from trellis.simulate.record import Family  # noqa: E402

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
    words = [
        sys.executable,
        "-m",
        "trellis.simulate",
        "--world",
        str(world),
        "--",
        "torchrun",
        str(folder / "train.py"),
    ]
    environ = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
    done = subprocess.run(words, capture_output=True, text=True, timeout=limit, env=environ)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    return done.stdout


def test_what_torch_asks_of_all_ranks_waits_for_none(tmp_path):
    """By gloo, or by a store, for as long as torch's limit of 30 minutes."""
    asks = {"TORCH_DISTRIBUTED_DEBUG": "DETAIL", "TORCH_DIST_INIT_BARRIER": "1"}
    assert "all_reduce" in simulate(tmp_path, DEBUGGED, **asks)


BY_MEMBERS = """
import torch, torch.distributed as dist

dist.init_process_group("nccl")
rank = dist.get_rank()
pair = dist.new_group([rank // 2 * 2, rank // 2 * 2 + 1], use_local_synchronization=True)
apart = dist.new_group([rank % 4, rank % 4 + 4], use_local_synchronization=True)
half = dist.split_group(split_ranks=[[0, 1, 2, 3], [4, 5, 6, 7]])
quarter = dist.split_group(half, [[0, 1], [2, 3]])
some = dist.split_group(half, [[1, 2]])
assert dist.get_process_group_ranks(quarter) == [rank // 2 * 2, rank // 2 * 2 + 1], quarter
member = some not in (None, dist.GroupMember.NON_GROUP_MEMBER)
assert member == (rank % 4 in (1, 2)) and \
(some is None) == (not member and not hasattr(dist.distributed_c10d, "_NonGroupMember"))
weight = torch.nn.Parameter(torch.zeros(64, 64, device="cuda"))
optimizer = torch.optim.SGD([weight], 0.1)
for _ in range(4):
    weight.sum().backward()
    for group in (pair, apart, half, quarter, *([some] if member else [])):
        dist.all_reduce(weight.grad, group=group)
    optimizer.step()
"""


def test_groups_that_their_members_alone_make_are_all_told(tmp_path):
    """Ranks 0 and 7 run, and each makes its own."""
    (tmp_path / "train.py").write_text(BY_MEMBERS)
    job = record_job(["torchrun", str(tmp_path / "train.py")], 8, 8, "any", 0, 1 << 34)
    used = [e[4] for e in job.classes[0].record.events if e[0] == "collective"]
    pairs, apart = ((0, 1), (2, 3), (4, 5), (6, 7)), ((0, 4), (1, 5), (2, 6), (3, 7))
    assert [job.families[f].groups for f in used] == [pairs, apart, ((0, 1, 2, 3), (4, 5, 6, 7)), pairs]
    assert job.families[-1].groups == ((1, 2), (5, 6))
    assert sum("made by their members alone: those of ranks that did not run" in told for told in job.assumptions) == 2


def test_groups_that_nobody_knows_are_refused():
    def known(*groups):
        return [Family("world", (tuple(range(8)),)), Family("group", groups)], {1: -1}

    assert joined(8, {0: known((0, 2)), 7: known((5, 7))})[0][1].groups == ((0, 2), (1, 3), (4, 6), (5, 7))
    for first, last in (((0, 1), (4, 7)), ((0, 3), (4, 7)), ((0, 7), (1, 7))):
        with pytest.raises(Mismatch, match="groups group are made by their members alone, and .* of 8 ranks are"):
            joined(8, {0: known(first), 7: known(last)})
    nested, pairs = ((0, 7), (1, 6), (2, 5), (3, 4)), ((0, 1), (2, 3))
    for whole in (nested, pairs):  # made by all ranks
        families, assumed = joined(8, {0: known(*whole), 7: known(*whole)})
        assert families[1].groups == whole and not assumed
    with pytest.raises(
        Mismatch, match="ranks 0 and 7 do not make the same groups .world of 8, group of 2; world of 8, group of 3"
    ):
        joined(8, {0: known((0, 1)), 7: known((5, 6, 7))})
