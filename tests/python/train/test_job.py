"""trellis.train.Job: a step after the other, saved and loaded."""

import numpy as np
from test_trainer import SMALL, Rows, losses, trainer
from trellis import train
from two_ranks import said_by_two_ranks


def test_a_job_step_by_step_is_the_trainers(tmp_path):
    expected = losses(trainer(max_steps=5).fit(train_dataloaders=Rows()))
    job = train.Job(SMALL)
    assert job.micro_batches == 2 and job.data_rank == (0, 1)

    def run(job, step):
        for micro in range(2):
            row = Rows()[2 * (step - 1) + micro]
            job.set_batch(micro, row[None, :-1], row[None, 1:])
        return job.run(step, 1e-2)[0]

    got = [run(job, step) for step in range(1, 4)]
    saved = job.save(tmp_path, 3)
    got += [run(job, step) for step in (4, 5)]
    assert got == expected
    other = train.Job(SMALL, changes={"seed": 5})
    assert other.load(saved) == 3
    assert [run(other, step) for step in (4, 5)] == expected[3:]
    name = "model.norm.weight"
    assert job.parameters[name].shape == (32, 1) or job.parameters[name].shape == (1, 32)
    assert np.abs(job.gradients(name)).sum() > 0
    job.fill(name, np.full(32, 0.5))
    assert (job.values(name) == 0.5).all()


GRADIENTS = """
import sys
sys.path.insert(0, {tests!r})
import numpy as np
from test_trainer import Rows, SMALL
from trellis import train
found = []
for zero1 in (False, True):
    job = train.Job(SMALL, changes={{"distributed_strategy.zero1": zero1}})
    row = Rows()[job.data_rank[0]]
    job.set_batch(0, row[None, :-1], row[None, 1:])
    job.run(1, 0.0)
    found.append(job.gradients("model.layers.1.mlp.down_proj.weight"))
same = np.abs(found[1] - found[0]).max() < 1e-6 and np.abs(found[0]).max() > 1e-4
print(f"{{same}}\\n", end="", flush=True)
"""


def test_gradients_are_those_of_the_step_on_every_rank(tmp_path):
    assert said_by_two_ranks(tmp_path, GRADIENTS).splitlines() == ["True"] * 2


LOADING = """
import glob, sys
sys.path.insert(0, {tests!r})
from test_trainer import SMALL
from trellis import train
job = train.Job(SMALL, changes={{"distributed_strategy.pipeline_model_parallel_size": 2}})
saved = job.save({folder!r}, 3)
assert job.load(saved) == 3
train.world().barrier()
if train.world().rank == 0:
    (part,) = glob.glob(saved + "/*pp_rank_01.safetensors")
    with open(part, "r+b") as file:
        file.seek(-100, 2)
        bits = file.read(1)[0]
        file.seek(-100, 2)
        file.write(bytes([bits ^ 1]))
train.world().barrier()
try:
    said = f"loaded {{job.load(saved)}}"
except ValueError as error:
    said = "refused for the " + ("damage" if "pp_rank_01.safetensors" in str(error) else "wrong reason")
print(said + "\\n", end="", flush=True)
"""


def test_a_job_is_loaded_on_all_ranks_or_on_none(tmp_path):
    """Only the second stage's rank reads what is damaged."""
    said = said_by_two_ranks(tmp_path, LOADING, folder=str(tmp_path / "saved"))
    assert said.splitlines() == ["refused for the damage"] * 2
