"""What models of experts and of long sequences do: values narrower than queries, flex_attention with a mask, and an
operator whose result is as long as data says, which is known here."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

ROWS, HEADS = 256, 4


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(128, HEADS * each) for each in (48, 48, 32))
        self.out = nn.Linear(HEADS * 32, 128)

    def forward(self, x, mask):
        q, k, v = (w(x).unflatten(-1, (HEADS, -1)).transpose(1, 2) for w in (self.q, self.k, self.v))
        narrow = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        flexible, lse = flex_attention(q[..., :32], k[..., :32], v, block_mask=mask, return_lse=True)
        out = narrow * lse.sigmoid().unsqueeze(-1) + flexible
        return self.out(out.transpose(1, 2).flatten(2))


def main():
    model = Model().to("cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    counts = torch.tensor([1, 2, 5], device="cuda")
    for _ in range(3):
        mask = create_block_mask(lambda b, h, q, k: q >= k, 2, None, ROWS, ROWS, device="cuda")
        x = torch.rand(2, ROWS, 128, device="cuda")
        rows = torch.arange(3, device="cuda").repeat_interleave(counts)
        assert rows.shape == (8,) and rows.tolist() == [0, 1, 1, 2, 2, 2, 2, 2]
        model(x, mask).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
