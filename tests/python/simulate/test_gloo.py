"""What a simulated rank records is what a rank of a real job over gloo does: operations, order, bytes, groups."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("torch")

from trellis.simulate.ranks.record_job import record_job  # noqa: E402

HERE = pathlib.Path(__file__).parent
EXAMPLES = HERE.parents[2] / "examples" / "torch"
JOBS = [  # an example, its ranks and arguments, the step
    ("ddp", 4, [], 3),
    ("fsdp2", 4, ["--bf16"], 2),
    ("tensor_parallel", 4, ["--data", "2"], 2),
    ("pipeline", 4, ["--schedule", "1f1b"], 2),
    ("fsdp2", 8, ["--bf16"], 2),
    ("tensor_parallel", 8, ["--data", "2"], 2),
]


def by_gloo(folder, name, ranks, arguments, step):
    """Of each rank: what it communicated after its first `step - 1` updates, until the next one was made."""
    output = folder / "log"
    subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}",
         str(HERE / "gloo_rank.py"), str(output), str(EXAMPLES / f"{name}.py"), "--steps", "4", "--backend", "gloo",
         *arguments],
        check=True, capture_output=True, timeout=300, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    logs = {rank: json.loads(output.with_name(f"log.{rank}").read_text()) for rank in range(ranks)}
    return {
        rank: [(kind, size, tuple(group), peer) for at, kind, size, group, peer in log if at == step - 1]
        for rank, log in logs.items()
    }


def simulated(name, ranks, arguments, step):
    command = ["torchrun", str(EXAMPLES / f"{name}.py"), "--steps", "4", *arguments]
    job = record_job(command, ranks, ranks, "cpu", step, 1 << 34)
    told = {}
    for rank in range(ranks):
        record = job.classes[job.class_of(rank)].record
        told[rank] = []
        for event in record.events:
            if event[0] == "collective":
                told[rank].append((event[3], event[5], job.families[event[4]].of(rank), -1))
            elif event[0] in ("send", "receive"):
                told[rank].append((event[0], event[5], job.families[event[3]].of(rank), event[4]))
    return told


@pytest.mark.parametrize("job", JOBS, ids=[f"{name}-{ranks}" for name, ranks, _, _ in JOBS])
def test_a_record_equals_what_gloo_does(tmp_path, job):
    real, ours = by_gloo(tmp_path, *job), simulated(*job)
    assert any(real.values())
    for rank in real:
        assert ours[rank] == real[rank], f"rank {rank}"
