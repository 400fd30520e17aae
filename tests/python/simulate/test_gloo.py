"""What a simulated rank records is what a rank of a real job over gloo does: operations, order, bytes, groups."""

import importlib.util
import json
import pathlib

import pytest

pytest.importorskip("torch")

import programs  # noqa: E402
import titan  # noqa: E402

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


def by_gloo(folder, script, ranks, arguments, step):
    """Of each rank: what it communicated after its first `step - 1` updates, until the next one was made."""
    output = folder / "log"
    done = programs.torchrun(ranks, HERE / "gloo_rank.py", output, script, *arguments, over_gloo=True)
    assert done.returncode == 0, done.stderr[-3000:]
    logs = {rank: json.loads(output.with_name(f"log.{rank}").read_text()) for rank in range(ranks)}
    return {
        rank: [(kind, size, tuple(group), peer) for at, kind, size, group, peer in log if at == step - 1]
        for rank, log in logs.items()
    }


def simulated(command, ranks, step, device):
    job = record_job(command, ranks, ranks, device, step, 1 << 34)
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
    name, ranks, arguments, step = job
    script, words = EXAMPLES / f"{name}.py", ["--steps", "4", *arguments]
    real = by_gloo(tmp_path, script, ranks, [*words, "--backend", "gloo"], step)
    ours = simulated(["torchrun", str(script), *words], ranks, step, "cpu")
    assert any(real.values())
    for rank in real:
        assert ours[rank] == real[rank], f"rank {rank}"


# Of torchtitan's Llama 3, the debug model: ranks, options, the step.
TITANS = {
    "ddp": (4, ["--parallelism.data-parallel-replicate-degree", "4",
                          "--parallelism.data-parallel-shard-degree", "1"], 3),
    "fsdp2": (4, [], 2),
    "tensor": (4, ["--parallelism.tensor-parallel-degree", "2"], 2),
    "pipeline": (4, ["--parallelism.pipeline-parallel-degree", "4",
                               "--parallelism.pipeline-parallel-schedule", "1F1B"], 2),
    "all": (8, ["--parallelism.pipeline-parallel-degree", "2", "--parallelism.tensor-parallel-degree", "2",
                          "--parallelism.pipeline-parallel-schedule", "Interleaved1F1B"], 2),
}  # fmt: skip
MISSING = [name for name in ("torchtitan", "tokenizers") if importlib.util.find_spec(name) is None]


@pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
@pytest.mark.parametrize("name", TITANS)
def test_a_record_of_torchtitan_equals_what_gloo_does(tmp_path, name):
    """As it computes on the host; and where triton is, which torchtitan imports, as it is, on the device."""
    ranks, options, step = TITANS[name]
    titan.prepare(tmp_path, "debugmodel")
    words = titan.arguments(tmp_path, "debugmodel", "--training.seq-len", "64", *options)
    script = HERE / "titan_on_host.py"
    real = by_gloo(tmp_path, script, ranks, words, step)
    assert any(real.values())
    commands = {"cpu": ["torchrun", str(script), *words]}
    if importlib.util.find_spec("triton"):
        commands["any"] = ["torchrun", "-m", "torchtitan.train", *words]
    for device, command in commands.items():
        ours = simulated(command, ranks, step, device)
        for rank in real:
            assert ours[rank] == real[rank], f"rank {rank}, {device}"
