"""Jobs with threads of their own: what those may do, and how a job ends where they do more."""

import re

import pytest

pytest.importorskip("torch")

from trellis.simulate.ranks.coordinator import RankFailed  # noqa: E402
from trellis.simulate.ranks.record_job import record_job  # noqa: E402

JOB = """
import queue, threading
from concurrent.futures import ThreadPoolExecutor
import torch, torch.distributed as dist

dist.init_process_group("nccl")
model = torch.nn.Linear(64, 64).to("cuda")
optimizer = torch.optim.SGD(model.parameters())
ready = queue.Queue(2)

class Reader(threading.Thread):
    def run(self):
        for _ in range(4):
            ready.put(batch())

def batch():
    rows = torch.arange(8 * 64.0).reshape(8, 64).sqrt()
    assert rows[0, 4] == 2
    return WHAT

Reader(daemon=True).start()
pool = ThreadPoolExecutor(1)
for _ in range(4):
    loss = model(ready.get().to("cuda")).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    pool.submit(lambda kept: kept.double(), loss.detach()).result()
"""


def recorded(tmp_path, what):
    (tmp_path / "job.py").write_text(JOB.replace("WHAT", what))
    return record_job(["torchrun", str(tmp_path / "job.py")], 1, 1, "any", 0, 1 << 34)


def test_a_thread_may_work_on_the_host(tmp_path):
    job = recorded(tmp_path, "rows")
    used = {job.classes[0].record.operations[e[2]].name for e in job.classes[0].record.events if e[0] == "op"}
    assert "aten.addmm" in used and "aten.sqrt" not in used
    assert any("another thread works with tensors of the device: what it does is not recorded" in told
               for told in job.assumptions)  # fmt: skip


@pytest.mark.parametrize(
    ("what", "operator"),
    [
        ("rows.pin_memory().to('cuda')", "to"),
        ("rows.cuda()", "cuda"),
        ("torch.rand(8, 64, device='cuda')", "rand"),
        ("dist.all_reduce(model.weight.detach())", "c10d.allreduce_.default"),
        ("model.weight.detach().nonzero()", "aten.nonzero.default"),
        ("model.bias.detach().numpy()", "numpy"),
    ],
    ids=["moved", "by name", "made", "communicated", "of data", "read"],
)
def test_a_thread_that_works_on_the_device_ends_the_job(tmp_path, what, operator):
    with pytest.raises(RankFailed) as told:
        recorded(tmp_path, what)
    said = rf"job.py:\d+: {re.escape(operator)} runs on the device in the thread Thread-1, and only the script's own"
    assert re.search(said, str(told.value)), told.value
