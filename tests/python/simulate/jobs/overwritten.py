"""What collectives and operators write over known values: what is known then, and where nothing is, no old value."""

import torch
import torch.distributed as dist

UNKNOWN = 1  # as which a whole number is taken that nobody knows


def main():
    dist.init_process_group("nccl")
    ranks, rank = dist.get_world_size(), dist.get_rank()
    device = torch.device("cuda", 0)

    def zeros(*shape):
        return torch.zeros(*shape, dtype=torch.int64, device=device)

    def expect(tensor, value):
        assert [int(x) for x in tensor.view(-1)] == [value] * tensor.numel(), (value, [int(x) for x in tensor.view(-1)])

    for known in (True, False):
        n = torch.full((ranks,), 5, device=device) if known else torch.randint(9, (ranks,), device=device)
        of_one, of_sum = (5, 5 * ranks) if known else (UNKNOWN, UNKNOWN)
        each = [zeros(ranks) for _ in range(ranks)]
        dist.all_gather(each, n)
        for one in each:
            expect(one, of_one)
        out = zeros(ranks * ranks)
        part = out[:2]
        dist.all_gather_into_tensor(out, n)
        expect(out, of_one)
        expect(part, of_one)
        out = zeros(ranks)
        dist.all_to_all_single(out, n)
        expect(out, of_one)
        out = zeros(1)
        dist.reduce_scatter_tensor(out, n)
        expect(out, of_sum)
        gathered = [zeros(ranks) for _ in range(ranks)] if rank == 0 else None
        dist.gather(n, gathered)
        for one in gathered or []:
            expect(one, of_one)
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
    model = torch.nn.Linear(64, 64).to(device)
    optimizer = torch.optim.SGD(model.parameters())
    for _ in range(3):
        model(torch.rand(64, 64, device=device)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
