"""Training over the backend: the optimizer, hooks, memory."""

import copy
import os
import pathlib
import subprocess
import sys
import threading
import tomllib

import pytest

torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402

import ranks  # noqa: E402
import trellis.torch  # noqa: E402
from trellis import _native  # noqa: E402
from trellis.torch import AdamW, Bf16Wire, allocator, bf16_stochastic_hook, number_parameters  # noqa: E402


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """An environment where the package has the metadata of an installation, with pyproject.toml's entry points."""
    project = tomllib.loads((pathlib.Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    site = tmp_path_factory.mktemp("site")
    info = site / f"{project['name']}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    lines = [f"{name} = {where}" for name, where in project["entry-points"]["torch.backends"].items()]
    (info / "entry_points.txt").write_text("\n".join(["[torch.backends]", *lines, ""]))
    paths = [str(site), str(pathlib.Path(trellis.__file__).parents[1])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


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


def optimized(rank, size, kind):
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(24, 40), torch.nn.Tanh(), torch.nn.Linear(40, 8)).to(torch.bfloat16)
    if kind == "fsdp":
        from torch.distributed.fsdp import fully_shard

        fully_shard(model, mesh=dist.init_device_mesh("cpu", (size,)))
    if kind == "ddp":
        model = torch.nn.parallel.DistributedDataParallel(model)
    settings = {"lr": 1e-2, "stochastic_rounding": True, "seed": 5}
    if kind == "zero":
        from torch.distributed.optim import ZeroRedundancyOptimizer

        model = torch.nn.parallel.DistributedDataParallel(model)
        optimizer = ZeroRedundancyOptimizer(number_parameters(model.parameters()), AdamW, **settings)
    else:
        optimizer = AdamW(model.parameters(), **settings)
    for step in range(4):
        x = torch.linspace(-1, 1, 6 * 24).reshape(6, 24).to(torch.bfloat16) * (step + 1)
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return [p.full_tensor() if kind == "fsdp" else p.detach().clone() for p in model.parameters()]


def as_numbers(tensors):
    return [t.view(torch.int16).tolist() for t in tensors]


def collect(rank, size, kind):
    return as_numbers(optimized(rank, size, kind))


def test_how_it_is_sharded_changes_no_bit():
    alone = ranks.run(collect, 1, "plain")[0]
    for kind in ("ddp", "fsdp", "zero"):
        for result in ranks.run(collect, 2, kind):
            assert result == alone, kind


def by_the_kernel(parameter, number, first, second, step):
    """One step of a bf16 parameter by the library's call."""
    gradient, call = parameter.grad, _native.AdamWCall()
    call.keep, call.gradient_type, call.moment_type = "bf16_stochastic", "bf16", "f32"
    call.weights, call.gradient = parameter.data_ptr(), gradient.data_ptr()
    call.first, call.second, call.count = first.data_ptr(), second.data_ptr(), parameter.numel()
    call.learning_rate, call.beta1, call.beta2, call.epsilon, call.weight_decay = 0.01, 0.9, 0.99, 1e-6, 0.1
    call.step, call.seed, call.tensor, call.offset, call.threads = step, 7, number, 0, 1
    call.run()


def test_a_step_is_the_kernels():
    torch.manual_seed(4)
    ours = [torch.nn.Parameter(torch.randn(shape, dtype=torch.bfloat16)) for shape in ((30, 11), (70,))]
    theirs = [p.detach().clone() for p in ours]
    moments = [(torch.zeros(p.shape), torch.zeros(p.shape)) for p in ours]
    optimizer = AdamW(ours, 0.01, (0.9, 0.99), 1e-6, 0.1, stochastic_rounding=True, seed=7)
    for step in (1, 2):
        for number, (p, q) in enumerate(zip(ours, theirs, strict=True)):
            p.grad = torch.randn_like(p)
            q.grad = p.grad.clone()
            by_the_kernel(q, number, *moments[number], step)
        optimizer.step()
        assert as_numbers(p.detach() for p in ours) == as_numbers(theirs)
    assert all(torch.equal(optimizer.state[p]["exp_avg"], m[0]) for p, m in zip(ours, moments, strict=True))


def saved_model(seed, fsdp):
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(24, 41), torch.nn.Tanh(), torch.nn.Linear(41, 8)).to(torch.bfloat16)
    if fsdp:
        from torch.distributed.fsdp import fully_shard

        fully_shard(model, mesh=dist.init_device_mesh("cpu", (dist.get_world_size(),)))
    return model, AdamW(model.parameters(), lr=1e-2, stochastic_rounding=True, seed=5)


def steps_on(model, optimizer, steps):
    for step in steps:
        model(torch.full((3, 24), 0.1 * (step + 1), dtype=torch.bfloat16)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def is_continued(model, optimizer, other, loaded):
    assert {s["exp_avg"].dtype for s in loaded.state.values()} == {torch.float32}
    for part in ((model, optimizer), (other, loaded)):
        steps_on(*part, range(3, 9))
    for p, q in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(getattr(p, "_local_tensor", p), getattr(q, "_local_tensor", q))


def test_a_loaded_optimizer_continues_to_the_bit(tmp_path):
    model, optimizer = saved_model(1, False)
    steps_on(model, optimizer, range(3))
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "saved")
    other, loaded = saved_model(2, False)
    state = torch.load(tmp_path / "saved")
    other.load_state_dict(state["model"])
    loaded.load_state_dict(state["optimizer"])
    is_continued(model, optimizer, other, loaded)


def test_loading_follows_the_hooks_of_the_optimizer():
    w = torch.nn.Parameter(torch.ones(4, dtype=torch.bfloat16))
    w.grad = torch.ones_like(w)
    optimizer = AdamW([w], moments=torch.float32)
    optimizer.step()
    saved = copy.deepcopy(optimizer.state_dict())

    def doubled(_, state):
        return {**state, "state": {key: {**s, "exp_avg": s["exp_avg"] * 2} for key, s in state["state"].items()}}

    optimizer.register_load_state_dict_pre_hook(doubled)
    optimizer.load_state_dict(saved)
    assert torch.equal(optimizer.state[w]["exp_avg"], saved["state"][0]["exp_avg"] * 2)


def checkpointed(rank, size, folder):
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

    model, optimizer = saved_model(1, True)
    steps_on(model, optimizer, range(3))
    dcp.save(dict(zip("mo", get_state_dict(model, optimizer), strict=True)), checkpoint_id=folder)
    other, loaded = saved_model(2, True)
    dcp.load(state := dict(zip("mo", get_state_dict(other, loaded), strict=True)), checkpoint_id=folder)
    set_state_dict(other, loaded, model_state_dict=state["m"], optim_state_dict=state["o"])
    is_continued(model, optimizer, other, loaded)


def test_a_checkpoint_of_shards_continues_to_the_bit(tmp_path):
    ranks.run(checkpointed, 2, str(tmp_path))


def test_adamw_is_torchs_within_rounding():
    torch.manual_seed(1)
    ours = [torch.nn.Parameter(torch.randn(50, 7)), torch.nn.Parameter(torch.randn(33))]
    theirs = [torch.nn.Parameter(p.detach().clone()) for p in ours]
    a, b = AdamW(ours, lr=0.01, weight_decay=0.1), torch.optim.AdamW(theirs, lr=0.01, weight_decay=0.1)
    for _ in range(5):
        for p, q in zip(ours, theirs, strict=True):
            q.grad = (p.detach() * 0.3 + 1).sin()
            p.grad = q.grad.clone()
        a.step()
        b.step()
    for p, q in zip(ours, theirs, strict=True):
        torch.testing.assert_close(p, q, rtol=2e-6, atol=2e-7)


def test_stochastic_rounding_keeps_small_updates():
    def drift(**more):
        w = torch.nn.Parameter(torch.ones(20_000, dtype=torch.bfloat16))
        optimizer = AdamW([w], lr=1e-4, weight_decay=0, **more)
        for _ in range(20):
            w.grad = torch.ones_like(w)
            optimizer.step()
        return 1 - w.double().mean().item()

    assert drift() == 0  # every update is less than half of bf16's step, and is lost
    assert abs(drift(stochastic_rounding=True) - 20e-4) < 2e-4


@pytest.mark.parametrize(
    ("settings", "says"), [({"moments": torch.float16}, "float16"), ({"lr": -1}, "-1"), ({"betas": (1.0, 0.9)}, "1.0")]
)
def test_mistakes_are_named(settings, says):
    with pytest.raises(ValueError, match=says):
        AdamW([torch.nn.Parameter(torch.ones(1))], **settings)


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
