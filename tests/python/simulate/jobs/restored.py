"""Saves and loads, as PyTorch's tutorial of DistributedDataParallel does, and in other ways: restored.py FOLDER."""

import io
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def of_the_first_rank(model, path):
    """All ranks load what rank 0 saves, which removes it in the end."""
    if dist.get_rank() == 0:
        torch.save(model.state_dict(), path)
    dist.barrier()
    state = torch.load(path, map_location={"cuda:0": f"cuda:{dist.get_rank()}"}, weights_only=True)
    assert all(t.is_cuda and t.shape == model.state_dict()[name].shape for name, t in state.items())
    model.load_state_dict(state)
    dist.barrier()
    if dist.get_rank() == 0:
        assert not os.path.exists(path)
        os.remove(path)
        try:
            torch.load(path)
        except FileNotFoundError as error:
            assert "writes no checkpoint" in error.__notes__[0]
            return
        raise AssertionError("what was removed is loaded")


def of_each_rank(model, optimizer, path):
    """Its own file, by another name at first; what is known of values stays known, and what shares memory does."""
    both = torch.zeros(8, device="cuda")
    given = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": 3}
    torch.save({**given, "both": both, "half": both[4:]}, f"{path}.part")
    os.replace(f"{path}.part", path)
    for place in (None, "cuda", torch.device("cuda", 0), lambda storage, where: storage.cuda(0)):
        told = torch.load(path, map_location=place)
        assert told["step"] == 3 and told["half"].device.type == "neuron" and told["both"].sum().item() == 0
        assert told["half"].untyped_storage()._cdata == told["both"].untyped_storage()._cdata
    for place in ("cpu", lambda storage, where: storage):
        assert torch.load(path, place)["both"].device.type == "cpu"
    optimizer.load_state_dict(told["optimizer"])
    assert {state["step"].item() for state in optimizer.state.values()} == {1}


def in_memory(model):
    buffer = io.BytesIO()
    torch.save(model, buffer)
    again = torch.load(io.BytesIO(buffer.getvalue()), weights_only=False)
    assert [type(p) for p in again.parameters()] == [type(p) for p in model.parameters()]
    assert [p.shape for p in again.parameters()] == [p.shape for p in model.parameters()]
    assert all(p.requires_grad and p.is_cuda for p in again.parameters())
    again(torch.rand(4, 512, device="cuda")).sum().backward()


def main():
    dist.init_process_group("nccl")
    folder = sys.argv[1]
    model = DistributedDataParallel(nn.Sequential(nn.Linear(512, 512), nn.BatchNorm1d(512)).to("cuda"))
    optimizer = torch.optim.AdamW(model.parameters())
    of_the_first_rank(model, os.path.join(folder, "first.pt"))
    for step in range(4):
        model(torch.rand(8, 512, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        if step == 0:
            of_each_rank(model, optimizer, os.path.join(folder, f"rank{dist.get_rank()}.pt"))
            in_memory(model.module)


if __name__ == "__main__":
    main()
