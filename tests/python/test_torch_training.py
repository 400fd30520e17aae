"""Training over the backend: hooks, memory."""

import os
import subprocess
import sys
import threading

import pytest

torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402

import programs  # noqa: E402
import ranks  # noqa: E402
import trellis.torch  # noqa: E402
from trellis.torch import Bf16Wire, allocator, bf16_stochastic_hook  # noqa: E402


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    return programs.installed(tmp_path_factory.mktemp("installed") / "site")


def test_it_serves_those_who_name_none(installed):
    code = """
import torch, torch.distributed as dist
assert dist.get_default_backend_for_device("cpu") == "trellis"
dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
mesh = dist.init_device_mesh("cpu", (1,))
for group in (dist.group.WORLD, mesh.get_group(), dist.new_group([0])):
    assert group._get_backend(torch.device("cpu")).name() == "trellis", group
x = torch.ones(4)
dist.all_reduce(x)
dist.destroy_process_group()
print(x[0].item())
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                         env={**installed, "TRELLIS_AS_DEFAULT": "1"})  # fmt: skip
    assert ran.stdout == "1.0\n", ran.stderr
    asks = [sys.executable, "-c", 'import torch.distributed as d; print(d.get_default_backend_for_device("cpu"))']
    for wish in ("0", ""):
        environment = {**installed, "TRELLIS_AS_DEFAULT": wish}
        assert subprocess.run(asks, capture_output=True, text=True, env=environment).stdout == "gloo\n"
    wrong = subprocess.run(asks, capture_output=True, text=True, env={**installed, "TRELLIS_AS_DEFAULT": "yes"})
    assert "TRELLIS_AS_DEFAULT=yes: expected 0 or 1" in wrong.stderr


def test_a_cache_that_cannot_be_made():
    code = "from trellis.torch import prepare; prepare()"
    for folder in ("/proc/nope", "/dev/null"):
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                             env={**os.environ, "TRELLIS_CACHE": folder})  # fmt: skip
        assert ran.returncode == 1 and f"TRELLIS_CACHE={folder}" in ran.stderr.splitlines()[-1], ran.stderr


def test_a_group_does_not_compile(tmp_path):
    code = """
import torch.distributed as dist, trellis.torch
dist.init_process_group("trellis", store=dist.HashStore(), rank=0, world_size=1)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                         env={**os.environ, "TRELLIS_CACHE": str(tmp_path)})  # fmt: skip
    assert ran.returncode == 1 and "run `python -m trellis.torch`" in ran.stderr.splitlines()[-1], ran.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("first", ["", "import trellis.torch"])
@pytest.mark.parametrize("backend", ["trellis", "cpu:trellis"])
def test_no_import_is_needed_where_the_package_is_installed(installed, first, backend):
    code = f"""
{first}
import torch, torch.distributed as dist
dist.init_process_group({backend!r}, store=dist.HashStore(), rank=0, world_size=1)
x = torch.ones(4)
dist.all_reduce(x)
print(dist.group.WORLD._get_backend(torch.device("cpu")).name(), x.sum().item())
"""
    words = [sys.executable, "-c", code]
    ran = subprocess.run(words, env=installed, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0 and ran.stdout == "trellis 4.0\n", ran.stderr


def test_a_core_multiplies_beside_torch():
    code = """
import numpy, torch, torch.distributed as dist, trellis.torch
dist.init_process_group("trellis", store=dist.HashStore(), rank=0, world_size=1)
from trellis import core
ones = {"a": numpy.ones((128, 128)), "b": numpy.ones((128, 512))}
print(int(core.program("matmul", M=128, K=128, N=512, type="f32").run(ones).values["c"].sum()))
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert ran.stdout == f"{128 * 128 * 512}\n", ran.stderr


def wired(rank, size):
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(300, 200))
    model.register_comm_hook(Bf16Wire(seed=2), bf16_stochastic_hook)
    model(torch.full((2, 300), 1.0 + rank)).sum().backward()
    gradient = model.module.weight.grad
    assert torch.equal(gradient, gradient.bfloat16().float())
    assert abs(gradient.mean().item() - (size + 1) * 1.0) < 0.02
    everyone = [torch.zeros_like(gradient) for _ in range(size)]
    dist.all_gather(everyone, gradient)
    assert all(torch.equal(everyone[0], g) for g in everyone)


def test_gradients_on_a_bf16_wire():
    ranks.run(wired, 2)


def window_bytes():
    return dist.group.WORLD._get_backend(torch.device("cpu")).memory_stats()["window_bytes"]


def in_window(rank, size):
    before = window_bytes()
    with allocator():
        x, small = torch.full((1 << 18,), float(rank)), torch.ones(3)
    assert window_bytes() >= before + x.nbytes
    dist.all_reduce(x)
    dist.all_reduce(small)
    assert x[5] == size * (size - 1) / 2 and small[0] == size
    y = torch.zeros(1 << 18)
    dist.broadcast(y if rank else x, 0)
    del x
    assert torch.ones(1 << 20).sum() == 1 << 20


def nested(rank, size):
    def gained(*shape, make=torch.zeros):
        before = window_bytes()
        kept.append(make(*shape))
        return window_bytes() - before >= kept[-1].nbytes

    kept = []
    with allocator():
        with allocator():
            assert gained(1 << 18)
        assert gained(1 << 18)
        assert gained(1 << 18, make=trellis.torch.empty)
        assert gained(1 << 18)
        beside = allocator()
        thread = threading.Thread(target=beside.__enter__)
        thread.start()
        thread.join()
    assert gained(1 << 18)  # what the other thread entered holds still
    beside.__exit__(None, None, None)
    assert not gained(1 << 18)
    assert gained(3, 5, make=trellis.torch.empty) and not gained(3, 5)
    assert kept[-2].shape == (3, 5) and kept[-2].dtype == torch.float32
    assert trellis.torch.empty((2, 3), dtype=torch.int8).shape == (2, 3)
    dist.all_reduce(kept[-2].fill_(rank + 1))
    assert kept[-2][2, 4] == size * (size + 1) / 2


def test_allocators_nest():
    ranks.run(nested, 2)


def test_tensors_that_peers_read():
    ranks.run(in_window, 2)


def forked_beside(rank, size):
    with allocator():
        x, gone = torch.full((1 << 18,), 1.0), torch.full((1 << 18,), 2.0)
        child = os.fork()
        if child == 0:
            try:
                here = x.sum().item() == 1 << 18
                x.fill_(5)
                del gone
                y = torch.full((1 << 18,), 7.0)
                os._exit(0 if here and x[3] == 5 and y[3] == 7 else 1)
            finally:
                os._exit(2)
        y = torch.full((1 << 18,), 3.0)
    assert os.waitpid(child, 0)[1] == 0
    assert (x == 1).all() and (gone == 2).all() and (y == 3).all()
    dist.all_reduce(x)
    assert x[5] == size


def test_a_forked_process_changes_no_tensor_of_its_parent():
    ranks.run(forked_beside, 2)


def communicated_from_the_window(rank, size):
    from torch.distributed.fsdp import fully_shard

    def train(own):
        torch.manual_seed(2)
        model = torch.nn.Linear(64, 256)
        fully_shard(model, mesh=dist.init_device_mesh("cpu", (size,)))
        if own:
            model.set_allocate_memory_from_process_group_for_comm(True)
        before = window_bytes()
        gathering = model.unshard(async_op=True)
        gained = window_bytes() - before
        gathering.wait()
        model(torch.ones(4, 64) * (rank + 1)).square().mean().backward()
        return gained, model.weight.grad.full_tensor()

    (none, expected), (some, gradient) = train(False), train(True)
    assert none == 0 and some >= 64 * 256 * 4
    assert torch.equal(gradient, expected)


def test_fsdp2_gathers_in_memory_that_peers_read_when_told():
    ranks.run(communicated_from_the_window, 2)
