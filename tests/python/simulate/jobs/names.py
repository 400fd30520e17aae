"""What scripts for a GPU say of it, in a function each; which of them went how is a line of the file that is the
argument. Then SyncBatchNorm and a hook that compresses gradients are trained."""

import io
import os
import sys
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.fsdp import FullyShardedDataParallel as Sharded
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset


def compiled():
    model = torch.compile(nn.Linear(64, 64).cuda())
    raw = model
    while hasattr(raw, "_orig_mod"):
        raw = raw._orig_mod
    assert type(raw) is nn.Linear and raw.weight is model.weight and len(model.state_dict()) == 2
    assert {name.removeprefix("_orig_mod.") for name in model.state_dict()} == {"weight", "bias"}
    assert isinstance(torch.compile(model)._orig_mod, nn.Linear)
    assert raw.compile() is None


def saved():
    file, rows = io.BytesIO(), torch.arange(12.0).reshape(3, 4)
    state = {"rows": rows, "row": rows[1], "turned": rows.t(), "weight": nn.Parameter(torch.ones(2)), "step": 3}
    torch.save({**state, "narrow": torch.ones(2, dtype=torch.uint16), "none": torch.empty(0)}, file)
    return file.getvalue()


def loaded(given=None, **how):
    for weights_only in (True, False):
        told = torch.load(io.BytesIO(given or saved()), weights_only=weights_only, **how)
        assert {t.device.type for t in told.values() if isinstance(t, torch.Tensor)} == {"neuron"}, told
        assert len({told[name].untyped_storage()._cdata for name in ("rows", "row", "turned")}) == 1
        assert told["rows"].untyped_storage().size() == 48 and told["turned"].stride() == (1, 4)
        assert told["row"].sum().item() == 22 and told["weight"].requires_grad and told["step"] == 3


def loaded_by_name():
    loaded(map_location="cuda:0")


def loaded_by_device():
    loaded(map_location=torch.device("cuda"))


def loaded_by_names():
    loaded(map_location={"cpu": "cuda:3"})


def loaded_by_function():
    loaded(map_location=lambda storage, place: storage.cuda(0))


def loaded_from_a_gpu():
    """Where no place is said, it is the one that each tensor had."""
    loaded(saved().replace(b"\x03\x00\x00\x00cpu", b"\x03\x00\x00\x00hpu"))


def loaded_by_the_devices_name():
    loaded(map_location="neuron:0")


def default_device():
    torch.set_default_device("cuda")
    try:
        assert nn.Linear(64, 64).weight.device == torch.get_default_device() == torch.device("neuron", 0)
        drawn = torch.Generator(device="cuda").manual_seed(0)
        rows = TensorDataset(torch.zeros(8, 2))
        assert [x.device.type for (x,) in DataLoader(rows, 4, shuffle=True, generator=drawn)] == ["neuron", "neuron"]
    finally:
        torch.set_default_device(None)
    assert torch.zeros(1).device.type == "cpu"


def numbers():
    """A script that starts its ranks by itself has its own numbers, and each process here has one device."""
    x = torch.zeros(3)
    told = [x.to(1), x.cuda(1), x.to("neuron:1"), x.to(torch.device(1)), x.to(device=1), torch.zeros(3, device=1)]
    assert {t.device for t in told} == {torch.device("neuron", 0)}
    torch.cuda.set_device(1)
    model = DistributedDataParallel(nn.Linear(3, 3).to(1), device_ids=[1])
    assert (model(x.to(torch.cuda.current_device())) + x.cuda()).device == model.module.weight.device
    for number in (1, torch.cuda.current_device(), torch.device("cuda", 1)):
        Sharded(nn.Linear(8, 8).to(1), device_id=number)


def devices_that_differ():
    try:
        torch.zeros(3, device="cuda") + torch.zeros(3)
    except RuntimeError as error:
        # In the words of torch's version.
        assert "found" in str(error) and "neuron:0" in str(error) and "cpu" in str(error), error
    else:
        raise AssertionError("a sum")


def generators():
    for name in ("cuda", "neuron", torch.device("cuda", 0)):
        drawn = torch.Generator(device=name).manual_seed(3)
        assert drawn.device == torch.device("neuron", 0) and drawn.initial_seed() == 3
        assert torch.randn(4, generator=drawn, device=drawn.device).device.type == "neuron"
    assert isinstance(drawn, torch.Generator) and isinstance(torch.default_generator, torch.Generator)
    assert torch.randn(4, generator=torch.Generator().manual_seed(3)).device.type == "cpu"


def kinds():
    kind, x = torch.cuda.FloatTensor, torch.zeros(3, dtype=torch.int64, device="cuda")
    made = [kind(2, 3), kind([1.0, 2.0]), x.cpu().type(kind), x.type("torch.cuda.FloatTensor"), x.type(kind(1).type())]
    assert all(isinstance(t, kind) and t.is_cuda and t.dtype == torch.float32 for t in made)
    assert not isinstance(x, kind) and isinstance(x, torch.cuda.LongTensor) and x.type(torch.float64).is_cuda
    torch.set_default_tensor_type(torch.cuda.HalfTensor)
    told = torch.zeros(1)
    torch.set_default_tensor_type("torch.FloatTensor")
    assert told.is_cuda and told.dtype == torch.float16 and torch.zeros(1).type() == "torch.FloatTensor"


def states_of_generators():
    torch.cuda.random.set_rng_state(torch.cuda.random.get_rng_state())
    with torch.random.fork_rng():
        torch.cuda.random.manual_seed_all(3)


def is_cuda():
    x = torch.zeros(2, device="cuda")
    assert x.is_cuda and nn.Linear(2, 2).cuda().weight.is_cuda and not x.cpu().is_cuda


def loader():
    rows = TensorDataset(torch.zeros(8, 2))
    assert len(list(DataLoader(rows, 4, num_workers=2, timeout=60, persistent_workers=True))) == 2
    assert len(list(DataLoader(rows, 3, False, None, None, 2, None, True, True, 60.0))) == 2


def compressed():
    model = DistributedDataParallel(nn.Linear(2, 2).cuda(), device_ids=[0])
    model.register_comm_hook(None, default_hooks.bf16_compress_hook)


def tools():
    torch.cuda.nvtx.range_push("forward")
    torch.cuda.nvtx.range_pop()
    with torch.cuda.nvtx.range("backward"), torch.cuda.profiler.profile():
        torch.cuda.nvtx.mark("here")
    torch.cuda.check_error(torch.cuda.cudart().cudaProfilerStart())
    torch.cuda.memory._record_memory_history(max_entries=100)
    torch.cuda.memory._dump_snapshot("snapshot.pickle")
    assert torch.cuda.memory.memory_allocated() == torch.cuda.memory_allocated()
    with torch.cuda.device_of(torch.zeros(2, device="cuda")):
        torch.cuda.set_sync_debug_mode("warn")


def profiled():
    """torch's profiler would print a stack for each operation."""
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with tempfile.TemporaryFile() as said:
        before = os.dup(2)
        os.dup2(said.fileno(), 2)
        try:
            with torch.profiler.profile(activities=activities) as told, torch.autograd.profiler.emit_nvtx():
                torch.zeros(8, 8, device="cuda") @ torch.zeros(8, 8, device="cuda")
        finally:
            os.dup2(before, 2)
            os.close(before)
        assert said.seek(0, os.SEEK_END) < 2000
    assert "aten::mm" in told.key_averages().table(sort_by="cuda_time_total")


def graphs():
    model = nn.Linear(2, 2).cuda()
    assert torch.cuda.make_graphed_callables(model, (torch.zeros(2, 2, device="cuda"),)) is model
    try:
        torch.cuda.CUDAGraph()
    except RuntimeError as error:
        assert "what a CUDAGraph replays is not seen here; run the same operations without it" in str(error), error
    else:
        raise AssertionError("a CUDAGraph")


def optimizer_before_the_move():
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    model[1].weight = model[0].weight
    optimizer = torch.optim.SGD([{"params": model[0].parameters()}, {"params": [model[1].bias]}], 0.1)
    optimizer.state[model[1].bias]["momentum_buffer"] = None
    model.cuda()
    held = [p for group in optimizer.param_groups for p in group["params"]]
    assert all(p is q for p, q in zip(held, model.parameters(), strict=True))
    assert list(optimizer.state)[0] is model[1].bias
    model(torch.ones(4, device="cuda")).sum().backward()
    assert all(p.grad is not None for p in held)


WAYS = (optimizer_before_the_move, compiled, loaded_by_name, loaded_by_device, loaded_by_names,
        loaded_by_function, loaded_from_a_gpu, default_device, generators, is_cuda, loader, compressed, tools, graphs,
        numbers, devices_that_differ, profiled, kinds, states_of_generators, loaded_by_the_devices_name)  # fmt: skip


def main():
    dist.init_process_group("nccl")
    with open(sys.argv[1] if dist.get_rank() == 0 else "/dev/null", "w", buffering=1) as file:
        for way in WAYS:
            try:
                way()
                file.write(f"{way.__name__}: done\n")
            except Exception as error:
                file.write(f"{way.__name__}: {type(error).__name__} {str(error).splitlines()[:1]}\n")
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))
    model = nn.SyncBatchNorm.convert_sync_batchnorm(model).cuda()
    model = DistributedDataParallel(model, device_ids=[0])
    model.register_comm_hook(None, default_hooks.bf16_compress_hook)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(4):
        model(torch.randn(2, 3, 8, 8, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
