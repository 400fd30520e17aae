"""A Llama cut by DTensor as `trellis train` cuts it: tensor parallelism with the sequence, and a pipeline.

`same_tensor.py TENSOR STAGES [kept]`. A rank keeps its part of the sequence, and gathers it once more in the backward
pass, by checkpointing where all but what was gathered is saved; with "kept", what was gathered is kept, which is how
DTensor does it by itself. bench/simulate_beside_train.py holds it against the same model of `trellis train`.
"""

import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

WIDTH, INNER, LAYERS, HEADS, KEYS, WORDS, ROWS = 2048, 8192, 8, 16, 8, 32000, 2048
SEQUENCES = 2  # of a micro-batch
GATHERED = (torch.ops._c10d_functional.all_gather_into_tensor.default, torch.ops._c10d_functional.wait_tensor.default)
KEPT = "kept" in sys.argv[3:]


def policy(context, operator, *args, **kwargs):
    return CheckpointPolicy.MUST_RECOMPUTE if operator in GATHERED else CheckpointPolicy.MUST_SAVE


def gathered_again(module, *inputs):
    """Calls the module; of what it makes, all is saved for the backward pass but what it gathers."""
    if KEPT:
        return module(*inputs)
    return checkpoint(module, *inputs, use_reentrant=False, preserve_rng_state=False,
                      context_fn=lambda: create_selective_checkpoint_contexts(policy))  # fmt: skip


class Words(nn.Embedding):
    """In the type that layers compute in."""

    def forward(self, tokens):
        return F.embedding(tokens, self.weight.to(torch.bfloat16))


class Norm(nn.RMSNorm):
    def forward(self, x):
        return F.rms_norm(x, (WIDTH,), self.weight.to(x.dtype))


class Attention(nn.Module):
    """Of each rank, the rows of the product are its queries', then its keys', then its values'."""

    def __init__(self):
        super().__init__()
        self.each = WIDTH // HEADS
        self.wqkv = nn.Linear(WIDTH, WIDTH + 2 * KEYS * self.each, bias=False)
        self.wo = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x, angles):
        heads = self.wqkv(x).unflatten(-1, (-1, self.each))
        unit = heads.shape[2] // (HEADS // KEYS + 2)
        q, k, v = heads.split([HEADS // KEYS * unit, unit, unit], 2)
        q, k = turned(q, angles), turned(k, angles)
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.wo(out.transpose(1, 2).flatten(2))


def turned(x, angles):
    """By positions; halves of a head belong together."""
    first, second = x.chunk(2, -1)
    cosine, sine = angles
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine), -1)


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.w13, self.w2 = nn.Linear(WIDTH, 2 * INNER, bias=False), nn.Linear(INNER, WIDTH, bias=False)

    def forward(self, x):
        gate, up = self.w13(x).chunk(2, -1)
        return self.w2(F.silu(gate) * up)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList([Norm(WIDTH), Norm(WIDTH)])
        self.attention, self.inner = Attention(), Inner()

    def forward(self, x, angles):
        x = x + gathered_again(self.attention, self.norms[0](x), angles)
        return x + gathered_again(self.inner, self.norms[1](x))


class Llama(nn.Module):
    """The layers that a stage has."""

    def __init__(self, first, last, layers):
        super().__init__()
        self.words = Words(WORDS, WIDTH) if first else None
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
        self.norm = Norm(WIDTH) if last else None
        self.head = nn.Linear(WIDTH, WORDS, bias=False) if last else None

    def forward(self, x):
        x = self.words(x) if self.words is not None else x
        places = torch.arange(ROWS, device=x.device)[:, None, None]
        each = WIDTH // HEADS
        angles = places / 500000.0 ** (torch.arange(0, each, 2, device=x.device) / each)
        angles = angles.cos().to(torch.bfloat16), angles.sin().to(torch.bfloat16)
        for layer in self.layers:
            x = layer(x, angles)
        return gathered_again(self.head, self.norm(x)) if self.head is not None else x


def cut(model, mesh):
    whole, rows, columns = Replicate(), Shard(1), Shard(-1)
    if model.words is not None:
        parallelize_module(model.words, mesh, RowwiseParallel(input_layouts=whole, output_layouts=rows))
    for layer in model.layers:
        parallelize_module(layer, mesh, {
            "norms.0": SequenceParallel(), "norms.1": SequenceParallel(),
            "attention": PrepareModuleInput(input_layouts=(rows, None), desired_input_layouts=(whole, None)),
            "attention.wqkv": ColwiseParallel(), "attention.wo": RowwiseParallel(output_layouts=rows),
            "inner": PrepareModuleInput(input_layouts=(rows,), desired_input_layouts=(whole,)),
            "inner.w13": ColwiseParallel(), "inner.w2": RowwiseParallel(output_layouts=rows),
        })  # fmt: skip
    if model.head is not None:
        parallelize_module(model, mesh, {
            "norm": SequenceParallel(),
            "head": ColwiseParallel(input_layouts=rows, output_layouts=columns, use_local_output=False),
        })  # fmt: skip


@torch.compile
def loss_of(scores, tokens):
    return F.cross_entropy(scores.flatten(0, 1).float(), tokens.flatten())


def main() -> None:
    tensor, stages = int(sys.argv[1]), int(sys.argv[2])
    dist.init_process_group("nccl")
    mesh = dist.init_device_mesh("cuda", (stages, tensor), mesh_dim_names=("pp", "tp"))
    place = mesh.get_local_rank("pp")
    model = Llama(place == 0, place == stages - 1, LAYERS // stages).to("cuda")
    cut(model, mesh["tp"])
    compiled = torch.compile(model)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    batches = 1 if stages == 1 else 4
    if stages > 1:
        stage = PipelineStage(compiled, place, stages, torch.device("cuda"), group=mesh.get_group("pp"))
        schedule = Schedule1F1B(stage, n_microbatches=batches, loss_fn=loss_of)
    for _ in range(3):
        tokens = torch.randint(0, WORDS, (SEQUENCES * batches, ROWS), device="cuda")
        with torch.autocast("cuda", torch.bfloat16), loss_parallel():
            if stages > 1:
                given = {"target": tokens} if place == stages - 1 else {}
                schedule.step(*([tokens] if place == 0 else []), return_outputs=False, **given)
            else:
                loss_of(compiled(tokens), tokens).backward()
        for weight in model.parameters():  # of norms, which each rank has for its part of the sequence
            weight.grad = weight.grad.redistribute(placements=weight.placements)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
