"""Hugging Face's accelerate, which names a backend by itself: the group that is there when it starts is used."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("accelerate")

import programs  # noqa: E402
import trellis.torch  # noqa: E402

trellis.torch.prepare()

TRAINS = """
import torch, torch.distributed as dist
import trellis.torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset

dist.init_process_group("trellis")
accelerator = Accelerator(cpu=True)
assert dist.group.WORLD._get_backend(torch.device("cpu")).name() == "trellis"
assert accelerator.num_processes == 2
torch.manual_seed(0)
model = torch.nn.Linear(4, 4)
data = DataLoader(TensorDataset(torch.randn(32, 4), torch.randn(32, 4)), batch_size=4)
model, optimizer, data = accelerator.prepare(model, torch.optim.SGD(model.parameters(), 0.1), data)
for x, y in data:
    accelerator.backward(((model(x) - y) ** 2).mean())
    optimizer.step()
    optimizer.zero_grad()
weights = accelerator.gather(model.module.weight.detach().reshape(1, -1))
assert torch.equal(weights[0], weights[1])
ranks = accelerator.gather(torch.tensor([accelerator.process_index])).tolist()
print(f"rank {ranks}\\n", end="")  # in one write, as torchrun's ranks share their output
dist.destroy_process_group()
"""

TRANSFORMERS = """
import sys
import torch, torch.distributed as dist
import trellis.torch
from transformers import Trainer, TrainingArguments

class Linear(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x, labels):
        y = self.linear(x)
        return {"loss": ((y - labels) ** 2).mean(), "logits": y}

dist.init_process_group(sys.argv[1])
arguments = TrainingArguments(output_dir=sys.argv[2], use_cpu=True, max_steps=4, per_device_train_batch_size=4,
                              save_strategy="no", report_to=[], disable_tqdm=True, learning_rate=0.1)
assert arguments.world_size == 2
assert dist.group.WORLD._get_backend(torch.device("cpu")).name() == sys.argv[1]
torch.manual_seed(0)
model = Linear()
Trainer(model=model, args=arguments,
        train_dataset=[{"x": torch.randn(4), "labels": torch.randn(4)} for _ in range(64)]).train()
weights = [torch.empty(4, 4) for _ in range(2)]
dist.all_gather(weights, model.linear.weight.detach())
assert torch.equal(weights[0], weights[1])
if dist.get_rank() == 0:
    print("weights", [value.hex() for value in weights[0].flatten().tolist()], flush=True)
dist.destroy_process_group()
"""


def ran(tmp_path, code, *arguments):
    script = tmp_path / "trains.py"
    script.write_text(code)
    return programs.torchrun(2, script, *arguments, over_gloo="gloo" in arguments)


def test_it_trains_on_a_group_that_was_made_before(tmp_path):
    done = ran(tmp_path, TRAINS)
    assert done.returncode == 0 and done.stdout.count("rank [0, 1]\n") == 2, done.stdout + done.stderr[-3000:]


def test_transformers_trains_on_it_as_on_gloo(tmp_path):
    """TrainingArguments, which makes accelerate's state. With two ranks there is one order of additions."""
    pytest.importorskip("transformers")
    lines = []
    for backend in ("trellis", "gloo"):
        done = ran(tmp_path, TRANSFORMERS, backend, str(tmp_path / backend))
        lines += [line for line in done.stdout.splitlines() if line.startswith("weights")]
        assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert len(lines) == 2 and lines[0] == lines[1]


def test_it_takes_no_name_that_it_does_not_know(tmp_path):
    """Why the README says to make the group first. Where this passes no more, its sentence is out of date."""
    code = "from accelerate import PartialState\nPartialState(cpu=True, backend='trellis')\n"
    assert "Your assigned backend trellis is not available" in ran(tmp_path, code).stderr
