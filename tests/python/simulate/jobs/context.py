"""Context parallelism: attention over a sequence that the ranks share."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.tensor.experimental import context_parallel

HEADS, WIDTH, ROWS = 8, 512, 2048


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (t.unflatten(-1, (HEADS, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


def main() -> None:
    dist.init_process_group("neuron")
    mesh = dist.init_device_mesh("neuron", (dist.get_world_size(),), mesh_dim_names=("cp",))
    model = Attention().to("neuron").to(torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        x = torch.randn(2, ROWS, WIDTH, device="neuron", dtype=torch.bfloat16)
        with context_parallel(mesh, buffers=[x], buffer_seq_dims=[1]):
            model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
