"""What scripts do with values of the device: each way of reading one."""

import torch


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
        assert "{:>6.2f}".format(loss.detach().cpu()) == "  1.00" and f"{loss}" == "1.0"


if __name__ == "__main__":
    main()
