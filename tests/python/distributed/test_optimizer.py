"""AdamW: its bits, its shards, what it loads."""

import copy

import pytest

torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402

import ranks  # noqa: E402
from trellis import _native  # noqa: E402
from trellis.torch import AdamW, number_parameters  # noqa: E402


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


def through_torchs_state(rank, size, options):
    from torch.distributed.checkpoint.state_dict import (
        StateDictOptions, get_optimizer_state_dict, set_optimizer_state_dict,
    )  # fmt: skip

    model, optimizer = saved_model(1, True)
    steps_on(model, optimizer, range(3))
    told = StateDictOptions(**options)
    state = copy.deepcopy(get_optimizer_state_dict(model, optimizer, options=told))
    other, loaded = saved_model(2, True)
    for p, q in zip(other.parameters(), model.parameters(), strict=True):
        p.data.copy_(q.data)
    set_optimizer_state_dict(other, loaded, state, options=told)
    assert {group["moments"] for group in loaded.param_groups} == {"float32"}
    is_continued(model, optimizer, other, loaded)


@pytest.mark.parametrize("options", [{"cpu_offload": True}, {"full_state_dict": True},
                                     {"full_state_dict": True, "cpu_offload": True, "broadcast_from_rank0": True}],
                         ids=lambda o: "_".join(o))  # fmt: skip
def test_torchs_state_of_an_optimizer_continues_to_the_bit(options):
    ranks.run(through_torchs_state, 2, options)


def test_a_state_that_has_a_type_for_its_moments_is_loaded():
    w = torch.nn.Parameter(torch.ones(4, dtype=torch.bfloat16))
    w.grad = torch.ones_like(w)
    optimizer = AdamW([{"params": [w], "moments": torch.bfloat16}])
    optimizer.step()
    assert optimizer.param_groups[0]["moments"] == "bfloat16" and optimizer.state[w]["exp_avg"].dtype == torch.bfloat16
    state = copy.deepcopy(optimizer.state_dict())
    state["param_groups"][0]["moments"] = torch.float32
    optimizer.load_state_dict(state)
    assert optimizer.param_groups[0]["moments"] == "float32" and optimizer.state[w]["exp_avg"].dtype == torch.float32
    optimizer.step()
    with pytest.raises(ValueError, match="moments in torch.float16: expected"):
        AdamW([{"params": [w], "moments": torch.float16}])


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


def placed(optimizer, rank, size):
    """Parameters whose gradients are still to be summed, and some that are sharded by columns, after three steps."""
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import (
        ColwiseParallel, RowwiseParallel, SequenceParallel, parallelize_module,
    )  # fmt: skip

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.LayerNorm(8), torch.nn.Linear(8, 4), torch.nn.Linear(4, 6))
    plan = {"0": SequenceParallel(), "1": ColwiseParallel(input_layouts=Shard(1)),
            "2": RowwiseParallel(output_layouts=Replicate())}  # fmt: skip
    parallelize_module(model, dist.init_device_mesh("cpu", (size,)), plan)
    steps = optimizer(model.parameters(), lr=0.1, weight_decay=0.01)
    x = torch.linspace(-1, 1, 2 * 4 * 8).sin().reshape(2, 4, 8)
    for _ in range(3):
        (model(x.chunk(size, 1)[rank]) * torch.arange(6.0)).square().mean().backward()
        steps.step()
        steps.zero_grad()
    weights = list(model.parameters())
    return [(w.to_local().tolist(), w.full_tensor().tolist(), w.placements[0].is_replicate()) for w in weights]


def placed_by_both(rank, size):
    return placed(AdamW, rank, size), placed(torch.optim.AdamW, rank, size)


def test_gradients_are_placed_as_their_parameters():
    first, second = ranks.run(placed_by_both, 2)
    for (mine, whole, replicated), (other, _, _), (_, torchs, _) in zip(first[0], second[0], first[1], strict=True):
        assert not replicated or mine == other
        torch.testing.assert_close(torch.tensor(whole), torch.tensor(torchs), rtol=1e-5, atol=1e-6)


def misplaced(rank, size):
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    mesh, rows = dist.init_device_mesh("cpu", (size,)), torch.arange(12.0).reshape(4, 3)
    w = torch.nn.Parameter(distribute_tensor(torch.ones(4, 3), mesh, [Shard(0)]))
    w.grad = distribute_tensor(rows, mesh, [Replicate()])
    optimizer = AdamW([w])
    optimizer.step()
    torch.testing.assert_close(optimizer.state[w]["exp_avg"].full_tensor(), rows * 0.1)
    column = torch.nn.Parameter(distribute_tensor(torch.ones(4, 4).bfloat16(), mesh, [Shard(1)]))
    column.grad = torch.ones_like(column)
    AdamW([column]).step()
    with pytest.raises(ValueError, match="sharded by their first dimension"):
        AdamW([column], stochastic_rounding=True).step()


def test_a_whole_gradient_of_a_shard_is_divided():
    ranks.run(misplaced, 2)


def loaded_into(count, change):
    w = torch.nn.Parameter(torch.ones(count))
    w.grad = torch.ones_like(w)
    optimizer = AdamW([w])
    optimizer.step()
    change(optimizer.state[w])
    optimizer.load_state_dict(optimizer.state_dict())
    return optimizer


def test_moments_of_another_shape_are_refused():
    for name in ("exp_avg", "exp_avg_sq"):
        optimizer = loaded_into(30, lambda state, name=name: state.update({name: torch.zeros(24)}))
        with pytest.raises(ValueError, match=rf"parameter 0: its {name} is \(24,\), its weights \(30,\)"):
            optimizer.step()


def test_moments_have_one_type():
    optimizer = loaded_into(30, lambda state: None)
    state = next(iter(optimizer.state.values()))
    state["exp_avg_sq"] = state["exp_avg_sq"].bfloat16()
    with pytest.raises(ValueError, match="moments are torch.float32 and torch.bfloat16"):
        optimizer.step()


@pytest.mark.parametrize(
    ("settings", "says"), [({"moments": torch.float16}, "float16"), ({"lr": -1}, "-1"), ({"betas": (1.0, 0.9)}, "1.0")]
)
def test_mistakes_are_named(settings, says):
    with pytest.raises(ValueError, match=says):
        AdamW([torch.nn.Parameter(torch.ones(1))], **settings)
