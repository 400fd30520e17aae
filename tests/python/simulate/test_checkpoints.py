"""What a job saves without data is loaded again by its ranks, and no file of it is there."""

import pathlib
import pickle

import pytest

pytest.importorskip("torch")

from trellis.simulate.ranks.coordinator import RankFailed  # noqa: E402
from trellis.simulate.ranks.record_job import record_job  # noqa: E402

RESTORED = pathlib.Path(__file__).parent / "jobs" / "restored.py"


def test_what_ranks_save_they_load(tmp_path):
    """The job itself asserts what it is given."""
    (one,) = record_job(["torchrun", str(RESTORED), str(tmp_path)], 4, 4, "any", 0, 1 << 34).classes
    assert one.ranks == [0, 1, 2, 3] and not list(tmp_path.iterdir())


NOT_SAVED = """
import sys, torch, torch.distributed as dist
dist.init_process_group("nccl")
model = torch.nn.Linear(512, 512).to("cuda")
optimizer = torch.optim.SGD(model.parameters())
if dist.get_rank() == 0:
    torch.save(model.state_dict(), sys.argv[1])
else:
    torch.load(sys.argv[1])
for _ in range(3):
    model(torch.rand(8, 512, device="cuda")).sum().backward()
    optimizer.step()
"""


def test_without_a_barrier_the_error_says_what_to_do(tmp_path):
    (tmp_path / "job.py").write_text(NOT_SAVED)
    with pytest.raises(RankFailed, match="No such file(?s:.*)let rank 0 save, call .*barrier.*, then load"):
        record_job(["torchrun", str(tmp_path / "job.py"), str(tmp_path / "saved.pt")], 2, 2, "any", 0, 1 << 34)


class Written:
    def __reduce__(self):
        return print, ("read",)


def test_bytes_that_the_job_did_not_write_are_not_read(tmp_path):
    """A file with the mark of a structure may be anybody's: what it holds is not unpickled."""
    mark = b"\0trellis simulate: a structure without data\n"
    (tmp_path / "saved.pt").write_bytes(mark + bytes(32) + pickle.dumps(Written()))
    (tmp_path / "job.py").write_text("import sys, torch\ntorch.load(sys.argv[1], weights_only=True)\n")
    with pytest.raises(RankFailed, match="saved.pt was saved by another simulated job, without data"):
        record_job(["torchrun", str(tmp_path / "job.py"), str(tmp_path / "saved.pt")], 1, 1, "any", 0, 1 << 34)
