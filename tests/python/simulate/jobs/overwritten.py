"""What collectives and operators write over known values: what is known then, and where nothing is, no old value."""

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional

UNKNOWN = 1  # as which a whole number is taken that nobody knows


def expect(tensor, value):
    assert [int(x) for x in tensor.view(-1)] == [value] * tensor.numel(), (value, [int(x) for x in tensor.view(-1)])


def gathers(n, of_one):
    ranks, rank = dist.get_world_size(), dist.get_rank()
    each = [torch.zeros_like(n) for _ in range(ranks)]
    dist.all_gather(each, n)
    for one in each:
        expect(one, of_one)
    out = n.new_zeros(ranks * ranks)
    part = out[:2]
    dist.all_gather_into_tensor(out, n)
    expect(out, of_one)
    expect(part, of_one)
    each = [[torch.zeros_like(n)] for _ in range(ranks)]
    dist.all_gather_coalesced(each, [n])
    for (one,) in each:
        expect(one, of_one)
    gathered = [torch.zeros_like(n) for _ in range(ranks)] if rank == 0 else None
    dist.gather(n, gathered)
    for one in gathered or []:
        expect(one, of_one)
    out = torch.zeros_like(n)
    dist.all_to_all_single(out, n)
    expect(out, of_one)
    each = [n.new_zeros(1) for _ in range(ranks)]
    dist.all_to_all(each, list(n.chunk(ranks)))
    for one in each:
        expect(one, of_one)


def sums(n, of_sum):
    ranks, world = dist.get_world_size(), dist.group.WORLD
    out = n.clone()
    dist.reduce(out, dist.get_rank())
    expect(out, of_sum)
    out = n.new_zeros(1)
    dist.reduce_scatter_tensor(out, n)
    expect(out, of_sum)
    out = n.new_zeros(1)
    dist.reduce_scatter(out, list(n.chunk(ranks)))
    expect(out, of_sum)
    outs = [n.new_zeros(1), n.new_zeros(1)]
    with dist._coalescing_manager():
        for out in outs:
            dist.reduce_scatter_tensor(out, n)
    for out in outs:
        expect(out, of_sum)
    expect(functional.all_reduce(n, "sum", world), of_sum)
    out = n.clone()
    part = out[:2]
    operators = torch.ops._c10d_functional
    operators.wait_tensor(operators.all_reduce_(out, "sum", world.group_name))
    expect(out, of_sum)
    expect(part, of_sum)
    expect(functional.reduce_scatter_tensor(n, "sum", 0, world), of_sum)


def on_the_device(device):
    ranks, rank = dist.get_world_size(), dist.get_rank()

    def zeros(*shape):
        return torch.zeros(*shape, dtype=torch.int64, device=device)

    for known in (True, False):
        n = torch.full((ranks,), 5, device=device) if known else torch.randint(9, (ranks,), device=device)
        of_one, of_sum = (5, 5 * ranks) if known else (UNKNOWN, UNKNOWN)
        gathers(n, of_one)
        sums(n, of_sum)
        out = zeros(ranks)
        dist.scatter(out, [n] * ranks if rank == 0 else None)
        expect(out, of_one if rank == 0 else UNKNOWN)
        out = zeros(ranks) + 7
        torch.add(n, n, out=out)
        expect(out, 2 * of_one if known else UNKNOWN)
        out = zeros(ranks)
        out[1:2].copy_(n[:1])
        assert int(out[1]) == of_one and int(out[0]) == (0 if known else UNKNOWN)
        long, n = zeros(2000), n.repeat(2000 // ranks)
        if rank == 0:
            dist.send(n, ranks - 1)
        elif rank == ranks - 1:
            dist.recv(long, 0)
            expect(long[:3], of_one)


def on_the_host(kind):
    """What is of the host is real; what a root has is its own."""
    ranks, rank = dist.get_world_size(), dist.get_rank()
    n = torch.full((ranks,), 5, dtype=kind)
    gathers(n, 5)
    sums(n, 5 * ranks)
    places = torch.arange(ranks, dtype=kind)
    out, outs = torch.zeros(1, dtype=kind), [torch.zeros(1, dtype=kind) for _ in range(ranks)]
    dist.reduce_scatter_tensor(out, places)
    expect(out, rank * ranks)
    dist.all_to_all(outs, list(places.chunk(ranks)))
    for one in outs:
        expect(one, rank)
    root = ranks - 1
    dist.scatter(out, list(places.chunk(ranks)) if rank == root else None, src=root)
    expect(out, rank)
    own = torch.full((2,), rank, dtype=kind)
    expect(functional.broadcast(own, root, dist.group.WORLD), root)
    expect(own, rank)
    dist.broadcast(own, root)
    expect(own, root)


def main():
    dist.init_process_group("cpu:gloo,cuda:nccl")
    device = torch.device("cuda", 0)
    on_the_device(device)
    for kind in (torch.int64, torch.float32):
        on_the_host(kind)
    model = torch.nn.Linear(64, 64).to(device)
    optimizer = torch.optim.SGD(model.parameters())
    for _ in range(3):
        model(torch.rand(64, 64, device=device)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
