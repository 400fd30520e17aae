"""Two blocks whose norms are NKI kernels, as an operator of torch with a gradient; sharded by fully_shard. "alone": its
gradient is not registered; "chip": a kernel that no chip runs."""

import sys

import nki
import nki.isa as nisa
import nki.language as nl
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch_neuronx import nki_op

WIDTH, ROWS = 512, 256


@nki.jit
def scaled(x, weight):
    """Rows of x times the weight."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    scale = nl.ndarray((128, x.shape[1]), dtype=weight.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=scale, src=weight.ap(pattern=[[0, 128], [1, x.shape[1]]]))
    for tile in nl.affine_range(x.shape[0] // 128):
        rows = nl.ndarray((128, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=rows, src=x[nl.ds(tile * 128, 128), :])
        nisa.tensor_tensor(dst=rows, data1=rows, data2=scale, op=nl.multiply)
        nisa.dma_copy(dst=out[nl.ds(tile * 128, 128), :], src=rows)
    return out


@nki.jit
def too_large(x, weight):
    tile = nl.ndarray((256, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    return tile


@nki_op("jobs::scaled", mutates_args={})
def scaled_rows(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return (too_large if "chip" in sys.argv else scaled)(x, weight)


def saved(context, inputs, output):
    context.save_for_backward(*inputs)


def gradients(context, gradient):
    x, weight = context.saved_tensors
    return scaled(gradient, weight), (gradient * x).sum(0, keepdim=True)


if "alone" not in sys.argv:
    scaled_rows.register_autograd(gradients, setup_context=saved)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1, WIDTH))
        self.up = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x):
        return self.up(scaled_rows(x, self.weight))


def main():
    dist.init_process_group("neuron")
    model = nn.Sequential(Block(), Block()).to("neuron")
    for block in model:
        fully_shard(block)
    fully_shard(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        model(torch.ones(ROWS, WIDTH, device="neuron")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


main()
