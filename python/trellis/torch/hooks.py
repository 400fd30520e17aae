"""Communication hooks for DistributedDataParallel.

    model = DistributedDataParallel(model)
    model.register_comm_hook(Bf16Wire(seed=1), bf16_stochastic_hook)
"""

from typing import Any, cast

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import GradBucket

from trellis import _native

__all__ = ["Bf16Wire", "bf16_stochastic_hook", "rounded"]


class Bf16Wire:
    """The state of `bf16_stochastic_hook`: which group, and where its random bits come from."""

    def __init__(self, group: Any = None, seed: int = 0) -> None:
        self.group, self.seed, self.step = group, seed, 0


def rounded(values: torch.Tensor, seed: int, step: int, tensor: int) -> torch.Tensor:
    """f32 to bf16 with stochastic rounding: exact on average.

    >>> wire = rounded(torch.full((4096,), 1 + 2**-9), seed=1, step=0, tensor=0)
    >>> sorted(set(wire.tolist())), abs(wire.double().mean().item() - (1 + 2**-9)) < 1e-3
    ([1.0, 1.0078125], True)
    """
    values = values.contiguous()
    out = torch.empty_like(values, dtype=torch.bfloat16)
    _native.cast(
        "f32", values.data_ptr(), "bf16", out.data_ptr(), values.numel(), "stochastic", seed, step, tensor
    )
    return out


def bf16_stochastic_hook(state: Bf16Wire, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Gradients travel as bf16, rounded stochastically with bits of their rank's own; they are averaged."""
    group = state.group if state.group is not None else dist.group.WORLD
    gradients = bucket.buffer()
    if gradients.dtype != torch.float32:
        raise ValueError(f"bf16_stochastic_hook takes float32 gradients, not {gradients.dtype}")
    ranks, rank = dist.get_world_size(group), dist.get_rank(group)
    if bucket.index() == 0:
        state.step += 1
    wire = rounded(gradients.div_(ranks), state.seed, state.step, bucket.index() * ranks + rank)
    future = dist.all_reduce(wire, group=group, async_op=True).get_future()

    def widen(done: torch.futures.Future[list[torch.Tensor]]) -> torch.Tensor:
        return gradients.copy_(done.value()[0])

    return cast(torch.futures.Future[torch.Tensor], future.then(widen))
