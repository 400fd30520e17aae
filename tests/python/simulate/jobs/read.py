"""What scripts do with values of the device: each way of reading them. `read.py whole` reads several whole numbers."""

import math
import sys

import numpy as np
import torch
from torch import distributions


def numbers(loss):
    """Of a number of the device, and of one that came to the host."""
    for one in (loss, loss.cpu()):
        assert one.tolist() == 1 and one.cpu().numpy() == 1 and np.float32(one) == np.array(one) == 1
        assert np.mean([one.cpu(), one.cpu()]) == 1 and math.isfinite(one) and round(float(one), 3) == 1
        assert torch.tensor([one, 2.0]).mean() == 1.5 and torch.as_tensor([[one], [one]]).shape == (2, 1)
        assert f"{one:.3f}" == "1.000" and format(one, ">6.2f") == "  1.00" and f"{one}" == "1.0"


def distributed(device):
    """Parameters of the device are valid; those of the host are checked."""
    given = torch.rand(4, 5, device=device, requires_grad=True)
    normal, chosen = distributions.Normal(given, given.exp()), distributions.Categorical(logits=given)
    (normal.log_prob(normal.rsample()).sum() + chosen.log_prob(chosen.sample()).sum()).backward()
    distributions.Normal(given, given.exp(), validate_args=True)
    try:
        distributions.Normal(torch.zeros(2), -torch.ones(2))
    except ValueError:
        return
    raise AssertionError("a negative scale of the host is taken as valid")


def several(device):
    rows = torch.rand(4, 5, device=device)
    assert rows.tolist() == [[1.0] * 5] * 4 and rows.cpu().bfloat16().float().numpy().sum() == 20
    assert not (rows > 0.5).cpu().numpy().any()
    assert not torch.equal(rows, rows + 1) and not torch.allclose(rows, torch.ones(4, 5, device=device))
    assert torch.equal(rows, rows)
    known = torch.arange(3.0, device=device)
    assert known.tolist() == [0, 1, 2] and torch.equal(known + 1, torch.arange(1.0, 4.0, device=device))
    assert not torch.allclose(known, known + 1) and torch.tensor([known[1], known[2]]).tolist() == [1, 2]
    assert rows.argmax().cpu().numpy() == 1
    if "whole" in sys.argv[1:]:
        print((rows.argmax(-1).cpu().numpy() == 0).mean())


def main():
    model = torch.nn.Linear(64, 64).to("cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        loss = model(torch.rand(8, 64, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        number = torch.full((), step, device="cuda")
        assert f"step {number:03d}: loss {loss:.3f}" == f"step 00{step}: loss 1.000"
        numbers(loss.detach())
        several("cuda")
        distributed("cuda")


if __name__ == "__main__":
    main()
