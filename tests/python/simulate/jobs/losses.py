"""Losses whose states or gradients torch gives no shapes of; the host's own CTC loss tells the shapes of its states."""

import torch
from torch import nn

STEPS, ROWS, CLASSES = 50, 3, 20


def ctc(device: str, at: str, *, flat: bool = False) -> torch.Tensor:
    """Lengths are at `at`; targets in a tensor of rows, or one behind the other."""
    rows = torch.randn(STEPS, ROWS, CLASSES, device=device, requires_grad=True)
    told = [torch.full((ROWS,), STEPS), torch.tensor([4, 7, 5])]
    targets = torch.ones(16 if flat else (ROWS, 10), dtype=torch.long)
    lengths = [x.tolist() if at == "lists" else x.to(at) for x in told]
    loss = nn.functional.ctc_loss(rows.log_softmax(-1), targets.to(device), *lengths)
    loss.backward()
    assert loss.shape == () and rows.grad is not None and rows.grad.shape == rows.shape
    return loss


def main() -> None:
    model = nn.Linear(16, CLASSES).to("cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        out = model(torch.randn(ROWS, 16, device="cuda"))
        margin = nn.functional.multi_margin_loss(out, torch.zeros(ROWS, dtype=torch.long, device="cuda"))
        labels = torch.zeros(ROWS, CLASSES, dtype=torch.long, device="cuda")
        (margin + nn.functional.multilabel_margin_loss(out, labels)).backward()
        ctc("cuda", "lists"), ctc("cuda", "cpu"), ctc("cuda", "cpu", flat=True), ctc("cuda", "cuda")
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
