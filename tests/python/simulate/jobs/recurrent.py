"""Recurrent layers, one of them over packed sequences whose lengths the host knows; asserts the shapes of the host."""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.first = nn.Embedding(50, 16), nn.GRU(16, 24, batch_first=True, bidirectional=True)
        self.second, self.cell = nn.LSTM(48, 24), nn.GRUCell(24, 8, bias=False)

    def forward(self, rows: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        packed = pack_padded_sequence(self.words(rows), lengths, batch_first=True, enforce_sorted=False)
        assert packed.data.shape == (15, 16) and packed.batch_sizes.tolist() == [3, 3, 3, 2, 2, 1, 1]
        out, state = self.first(packed)
        assert out.data.shape == (15, 48) and state.shape == (2, 3, 24)
        padded, back = pad_packed_sequence(out)
        assert padded.shape == (7, 3, 48) and back.tolist() == [5, 3, 7]
        return self.cell(self.second(padded)[0][-1])


def main() -> None:
    model = Model().to("cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        rows = torch.randint(1, 50, (3, 7))
        out = model(rows.to("cuda"), torch.tensor([5, 3, 7]))
        assert out.shape == (3, 8)
        out.sum().backward()
        assert all(p.grad is not None and p.grad.shape == p.shape for p in model.parameters())
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
