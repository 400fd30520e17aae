"""What scripts for a GPU say of it, in a function each; which of them went how is a line of the file that is the argument."""

import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def compiled():
    model = torch.compile(nn.Linear(64, 64).cuda())
    raw = model
    while hasattr(raw, "_orig_mod"):
        raw = raw._orig_mod
    assert type(raw) is nn.Linear and raw.weight is model.weight and len(model.state_dict()) == 2
    assert {name.removeprefix("_orig_mod.") for name in model.state_dict()} == {"weight", "bias"}
    assert isinstance(torch.compile(model)._orig_mod, nn.Linear)
    assert raw.compile() is None


WAYS = (compiled,)


def main():
    dist.init_process_group("nccl")
    with open(sys.argv[1] if dist.get_rank() == 0 else "/dev/null", "w", buffering=1) as file:
        for way in WAYS:
            try:
                way()
                file.write(f"{way.__name__}: done\n")
            except Exception as error:
                file.write(f"{way.__name__}: {type(error).__name__} {str(error).splitlines()[:1]}\n")
    model = DistributedDataParallel(nn.Linear(64, 64).cuda(), device_ids=[0])
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(4):
        model(torch.randn(8, 64, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
