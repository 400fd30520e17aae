"""Save and load a sharded model with DCP over Trellis: torchrun --nproc-per-node 2 examples/torch/checkpoint.py"""

import argparse
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard

import trellis.torch  # noqa: F401  registers the backend


def sharded(seed: int) -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32))
    fully_shard(model, mesh=dist.init_device_mesh("cpu", (dist.get_world_size(),)))
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def step(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    model(torch.ones(4, 32)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()


def total(model: nn.Module) -> str:
    return sum(p.detach().full_tensor().double().sum() for p in model.parameters()).item().hex()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--backend", default="trellis")
    given = options.parse_args()

    dist.init_process_group(given.backend)
    folder = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(folder)
    first, optimizer = sharded(1)
    step(first, optimizer)
    parameters, moments = get_state_dict(first, optimizer)
    dcp.save({"model": parameters, "optimizer": moments}, checkpoint_id=folder[0])

    second, other = sharded(2)
    step(second, other)
    parameters, moments = get_state_dict(second, other)
    dcp.load(state := {"model": parameters, "optimizer": moments}, checkpoint_id=folder[0])
    set_state_dict(second, other, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    assert total(first) == total(second), "the loaded model differs from the saved one"
    step(first, optimizer)
    step(second, other)
    print(f"rank {dist.get_rank()} saved {total(first)} loaded {total(second)}", flush=True)
    assert total(first) == total(second), "the two models differ after a step"
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
