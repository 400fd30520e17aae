"""FullyShardedDataParallel, and a checkpoint in each step; says what the device holds: sharded.py FOLDER."""

import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_model_state_dict
from torch.distributed.fsdp import FullyShardedDataParallel as Sharded
from torch.distributed.fsdp import MixedPrecision, fully_shard
from torch.distributed.fsdp.wrap import ModuleWrapPolicy


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(1024, 4096, bias=False), nn.Linear(4096, 1024, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(torch.relu(self.up(x)))


def of_the_first_kind(model: nn.Module) -> nn.Module:
    kinds = MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    return Sharded(model, auto_wrap_policy=ModuleWrapPolicy({Block}), device_id=torch.cuda.current_device(),
                   mixed_precision=kinds)  # fmt: skip


def main() -> None:
    dist.init_process_group("nccl")
    model: nn.Module = nn.Sequential(Block(), Block())
    if sys.argv[1:]:
        fully_shard(model.to("cuda"))
    else:
        model = of_the_first_kind(model)
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(3):
        model(torch.randn(64, 1024, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        if sys.argv[1:]:
            held = torch.cuda.memory_allocated()
            state = 3 * 2 * 2 * 1024 * 4096 * 4 // dist.get_world_size()
            assert state <= held < 1.1 * state, f"{held} bytes: expected parameters and two moments, {state}"
            assert torch.cuda.max_memory_allocated() > state + 2 * 4 * 1024 * 4096
            assert torch.cuda.memory_reserved() >= held
            assert torch.cuda.mem_get_info()[0] == torch.cuda.mem_get_info()[1] - torch.cuda.memory_reserved()
            dcp.save({"model": get_model_state_dict(model), "step": torch.tensor([step])}, checkpoint_id=sys.argv[1])


if __name__ == "__main__":
    main()
