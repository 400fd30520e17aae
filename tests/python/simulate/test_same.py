"""One model, cut the same way by DTensor and by `trellis train`: what is communicated is equal but for what is named
here, and so is the price, within 5%."""

import json
import pathlib
import subprocess
from collections import Counter

import pytest

pytest.importorskip("torch")

from trellis._where import PROGRAM  # noqa: E402
from trellis.simulate.price import price  # noqa: E402
from trellis.simulate.ranks.record_job import record_job  # noqa: E402

JOBS = pathlib.Path(__file__).parent / "jobs"
LAYOUTS = {"tensor": (8, 1), "pipeline": (4, 2)}  # ranks that share a layer, stages
ROWS, WIDTH, WORD = 2 * 2048, 2048, 2  # of a micro-batch; bytes of bf16
GATHERED = ROWS * WIDTH * WORD
SET = {"pipeline": {"distributed_strategy.tensor_model_parallel_size": 4,
                    "distributed_strategy.pipeline_model_parallel_size": 2, "data.global_batch_size": 8}}  # fmt: skip
# AdamW as one pass, which reads four arrays and writes three where a pass of `trellis train` reads two and writes one;
# every exchange of the tensor axis waited for, as DTensor does; no release's software.
SAME = [f"operation.update.adamw={7 / 3:.6f}", "step.exposed.tensor=1", "step.level=1.08"]


def trained(name, *words):
    changes = [f"--set={key}={value}" for key, value in SET.get(name, {}).items()]
    done = subprocess.run([PROGRAM, "train", words[0], str(JOBS / "same_tensor.yaml"), "-n", "8", *words[1:], *changes],
                          check=True, capture_output=True, text=True)  # fmt: skip
    return done.stdout


def laid_out(name):
    """Of each stage: how often `trellis train` does which exchange, of how many bytes."""
    told = [Counter() for _ in range(LAYOUTS[name][1])]
    for line in trained(name, "export").splitlines():
        kind, *words = line.split()
        if kind in ("all_gather", "reduce_scatter", "all_reduce") and words[3].startswith("tensor"):
            told[int(words[3].removeprefix("tensor") or 0)][kind, int(words[1].removesuffix("B"))] += 1
        elif kind == "send_recv":
            source = int(words[3].split(",")[0]) // LAYOUTS[name][0]
            told[source]["send", int(words[1].removesuffix("B"))] += 1
    return told


def recorded(name, *more):
    tensor, stages = LAYOUTS[name]
    words = ["torchrun", str(JOBS / "same_tensor.py"), str(tensor), str(stages), *more]
    return record_job(words, 8, 8, "any", 0, 1 << 35)


def exchanged(job):
    """The same of each class of ranks, which are stages."""
    return [Counter((e[3] if e[0] == "collective" else "send", e[5]) for e in one.record.events
                    if e[0] in ("collective", "send")) for one in job.classes]  # fmt: skip


@pytest.fixture(scope="module", params=LAYOUTS)
def both(request):
    return request.param, recorded(request.param)


def test_what_is_communicated_is_equal_but_for_what_is_named(both):
    name, job = both
    theirs, ours = laid_out(name), exchanged(job)
    assert len(theirs) == len(ours)
    batches = 4 if name == "pipeline" else 1
    for stage, (laid, done) in enumerate(zip(theirs, ours, strict=True)):
        last = stage == len(theirs) - 1
        norms = 2 * 8 // len(theirs) + last
        # `trellis train` scatters the gradient of what the head reads in f32, autocast's product gives bf16.
        assert laid.pop(("reduce_scatter", 2 * GATHERED), 0) == last * batches
        laid["reduce_scatter", GATHERED] += last * batches
        # It sums norms' gradients together; DTensor sums each.
        assert laid.pop(("all_reduce", norms * WIDTH * 4)) == 1
        laid["all_reduce", WIDTH * 4] = norms
        # Of the gradients' norm it sums one number of 8 bytes, clip_grad_norm_ sums each weight's, of 4.
        assert laid.pop(("all_reduce", 8)) == 1
        weights = norms + 4 * 8 // len(theirs) + last + (stage == 0)
        laid["all_reduce", weights * 4] = 1
        assert done == laid, stage


def test_prices_lie_within_a_twentieth(both):
    name, job = both
    out = price(job, "trn2.48xlarge")
    words = [word for change in SAME for word in ("--what-if", change)]
    told = json.loads(trained(name, "price", "-m", "trn2.48xlarge", "--json", *words))
    print(f"{name}: {out.time} s, merged {out.merged.time} s, trellis train {told['time_ps'] * 1e-12} s")
    assert out.merged.time == pytest.approx(told["time_ps"] * 1e-12, rel=0.05)
    assert out.tokens == (2048 * 8 if name == "pipeline" else 4096)


def test_by_itself_dtensor_keeps_what_it_gathered():
    """What `trellis train` gathers once more: the input of each half of a layer, and the head's."""
    kept, again = exchanged(recorded("tensor", "kept"))[0], laid_out("tensor")[0]
    assert again["all_gather", GATHERED] - kept["all_gather", GATHERED] == 2 * 8 + 1
