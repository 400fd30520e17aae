"""Every operation of the backend, for all element types and reductions, held against gloo's or against plain torch."""

import pytest

torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402

import ranks  # noqa: E402

MOVED = [
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2,
    torch.float8_e4m3fnuz, torch.int8, torch.uint8, torch.int16, torch.uint16, torch.int32, torch.uint32, torch.int64,
    torch.uint64, torch.bool, torch.complex64, torch.complex128,
]  # fmt: skip
FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
INTEGERS = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64]
SIZES = [0, 1, 7, 1000, 70_000]


def made(rank, count, dtype, salt=0):
    """Small whole numbers, so that no order of additions rounds."""
    numbers = (torch.arange(count) * 7 + rank * 3 + salt) % 4
    if dtype == torch.bool:
        return numbers > 1
    return numbers.to(torch.float32).to(dtype) if dtype.is_floating_point else numbers.to(dtype)


def same(got, want):
    view = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    if got.is_complex():
        got, want = torch.view_as_real(got), torch.view_as_real(want)
    kind = view[got.element_size()]
    assert got.dtype == want.dtype and torch.equal(got.contiguous().view(kind), want.contiguous().view(kind)), (
        got.flatten()[:8], want.flatten()[:8]
    )  # fmt: skip


def moves(rank, size):
    for dtype in MOVED:
        for count in SIZES:
            everyone = [made(r, count, dtype) for r in range(size)]
            mine = everyone[rank]
            root = count % size
            got = mine.clone()
            dist.broadcast(got, root)
            same(got, everyone[root])
            out = [torch.zeros_like(mine) for _ in range(size)]
            dist.all_gather(out, mine)
            for a, b in zip(out, everyone, strict=True):
                same(a, b)
            flat = torch.zeros(count * size, dtype=dtype)
            dist.all_gather_into_tensor(flat, mine)
            same(flat, torch.cat(everyone))
            got = torch.zeros_like(mine)
            dist.scatter(got, everyone if rank == root else None, root)
            same(got, everyone[rank])
            out = [torch.zeros_like(mine) for _ in range(size)]
            dist.gather(mine, out if rank == root else None, root)
            if rank == root:
                for a, b in zip(out, everyone, strict=True):
                    same(a, b)
            got = torch.zeros(count * size, dtype=dtype)
            dist.all_to_all_single(got, torch.cat([made(rank, count, dtype, to) for to in range(size)]))
            same(got, torch.cat([made(r, count, dtype, rank) for r in range(size)]))


def reductions(rank, size):
    Op = dist.ReduceOp
    folds = {
        Op.SUM: torch.add, Op.PRODUCT: torch.mul, Op.MIN: torch.minimum, Op.MAX: torch.maximum,
        Op.BAND: torch.bitwise_and, Op.BOR: torch.bitwise_or, Op.BXOR: torch.bitwise_xor,
    }  # fmt: skip
    for dtype in [*FLOATS, *INTEGERS, torch.bool]:
        for op, fold in folds.items():
            bitwise = op in (Op.BAND, Op.BOR, Op.BXOR)
            if bitwise and dtype.is_floating_point:
                continue
            for count in SIZES:
                everyone = [made(r, count, dtype) for r in range(size)]
                want = everyone[0].clone()
                for other in everyone[1:]:
                    want = fold(want, other).to(dtype)
                got = everyone[rank].clone()
                dist.all_reduce(got, op)
                same(got, want)
                got = everyone[rank].clone()
                dist.reduce(got, size - 1, op)
                same(got, want if rank == size - 1 else everyone[rank])
                parts = [torch.cat([made(r, count, dtype, to) for to in range(size)]) for r in range(size)]
                whole = parts[0].clone()
                for other in parts[1:]:
                    whole = fold(whole, other).to(dtype)
                got = torch.zeros(count, dtype=dtype)
                dist.reduce_scatter_tensor(got, parts[rank], op)
                same(got, whole[rank * count : (rank + 1) * count])
                got = torch.zeros(count, dtype=dtype)
                dist.reduce_scatter(got, list(parts[rank].chunk(size)) if count else [got.clone()] * size, op)
                same(got, whole[rank * count : (rank + 1) * count])


def special_reductions(rank, size):
    Op = dist.ReduceOp
    x = torch.full((1000,), float(rank + 1))
    dist.all_reduce(x, Op.AVG)
    same(x, torch.full((1000,), (size + 1) / 2))
    x = torch.full((10,), float(rank + 1), dtype=torch.float64)
    dist.all_reduce(x, dist._make_nccl_premul_sum(0.5))
    same(x, torch.full((10,), size * (size + 1) / 4, dtype=torch.float64))
    z = torch.full((9,), complex(rank, 1), dtype=torch.complex64)
    dist.all_reduce(z)
    same(z, torch.full((9,), complex(size * (size - 1) / 2, size), dtype=torch.complex64))
    f8 = torch.full((33,), 0.5).to(torch.float8_e4m3fn)
    dist.all_reduce(f8)
    same(f8, torch.full((33,), 0.5 * size).to(torch.float8_e4m3fn))
    for bad, op in ((torch.ones(3, dtype=torch.int32), Op.AVG), (torch.ones(3), Op.BAND)):
        with pytest.raises(ValueError, match="is not defined for"):
            dist.all_reduce(bad, op)
    sparse = torch.sparse_coo_tensor([[rank, rank + 1]], [1.0, 2.0], (size + 2,))
    dense = sparse.to_dense()
    dist.all_reduce(dense)
    dist.all_reduce(sparse)
    same(sparse.to_dense(), dense)


def shapes(rank, size):
    """Tensors that are not one piece, lists, uneven splits, coalesced calls."""
    grid = made(rank, 60, torch.float32).reshape(6, 10)
    turned = grid.t()
    dist.all_reduce(turned)
    same(turned, sum(made(r, 60, torch.float32).reshape(6, 10).t() for r in range(size)))
    out = [torch.zeros(10, 6).t() for _ in range(size)]
    dist.all_gather(out, made(rank, 60, torch.float32).reshape(6, 10))
    for r, got in enumerate(out):
        same(got, made(r, 60, torch.float32).reshape(6, 10))
    uneven = [torch.zeros(r + 1) for r in range(size)]
    dist.all_gather(uneven, made(rank, rank + 1, torch.float32))
    for r, got in enumerate(uneven):
        same(got, made(r, r + 1, torch.float32))
    to = [torch.full((rank + r + 1, 3), float(rank)) for r in range(size)]
    from_ = torch.zeros(sum(rank + r + 1 for r in range(size)), 3)
    splits = [rank + r + 1 for r in range(size)]
    dist.all_to_all_single(from_, torch.cat(to), splits, splits)
    same(from_, torch.cat([torch.full((rank + r + 1, 3), float(r)) for r in range(size)]))
    got = [torch.zeros(rank + r + 1, 3) for r in range(size)]
    dist.all_to_all(got, to)
    same(torch.cat(got), from_)
    several = [torch.full((n,), float(rank)) for n in (3, 0, 700)]
    with dist._coalescing_manager(async_ops=True) as manager:
        for tensor in several:
            dist.all_reduce(tensor)
    manager.wait()
    for tensor in several:
        same(tensor, torch.full_like(tensor, size * (size - 1) / 2))
    outs = [torch.zeros(n * size) for n in (2, 5)]
    with dist._coalescing_manager():
        for out in outs:
            dist.all_gather_into_tensor(out, torch.full((out.numel() // size,), float(rank)))
    for out in outs:
        same(out, torch.arange(size).float().repeat_interleave(out.numel() // size))
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank})
    assert objects == [{"rank": r} for r in range(size)]
    dist.barrier()


def splits_of_some(rank, size):
    """Ranks whose blocks are equal name no splits, as torch allows of each for itself, of input and output."""
    some = {2: [[2, 2], [2, 3]], 3: [[2, 2, 2], [2, 1, 3], [2, 3, 1]], 4: [[0] * 4, *[[0, 1, r, 3] for r in range(3)]]}
    for rows in (some[size], [[1] * size, *[[0] * size] * (size - 1)], [[0] * size] * size):
        sent, arriving = rows[rank], [row[rank] for row in rows]
        named = [None if len(set(splits)) == 1 else splits for splits in (arriving, sent)]
        for named_by in (range(size), range(1), range(1, size)):
            splits = named if rank in named_by else (arriving, sent)
            out = torch.zeros(sum(arriving), 3)
            given = torch.cat([torch.full((n, 3), 10.0 * rank + r) for r, n in enumerate(sent)])
            dist.all_to_all_single(out, given, *splits)
            same(out, torch.cat([torch.full((n, 3), 10.0 * r + rank) for r, n in enumerate(arriving)]))


def asynchronous(rank, size):
    tensors = [torch.full((n,), float(rank)) for n in (1, 5, 100_000, 0, 33)]
    works = [dist.all_reduce(t, async_op=True) for t in tensors]
    seen = []
    future = works[2].get_future().then(lambda done: seen.append(done.value()[0][0].item()) or 5)
    for work in reversed(works):
        work.wait()
        assert work.is_completed() and work.is_success()
    assert future.wait() == 5 and seen == [size * (size - 1) / 2]
    for t in tensors:
        same(t, torch.full_like(t, size * (size - 1) / 2))
    # A callback may communicate: it runs on a thread of its own.
    x, y = torch.ones(4), torch.ones(4)

    def again(_):
        dist.all_reduce(y)
        return y

    result = dist.all_reduce(x, async_op=True).get_future().then(again)
    assert result.wait()[0].item() == size
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    assert backend._get_sequence_number_for_group() > 0


def messages(rank, size):
    right, left = (rank + 1) % size, (rank - 1) % size
    out, got = torch.full((1000,), float(rank)), torch.zeros(1000)
    sent = dist.isend(out, right)
    dist.recv(got, left)
    sent.wait()
    same(got, torch.full((1000,), float(left)))
    # Large messages in both directions at once.
    big, other = torch.full((1 << 20,), float(rank)), torch.zeros(1 << 20)
    for request in dist.batch_isend_irecv([dist.P2POp(dist.isend, big, right), dist.P2POp(dist.irecv, other, left)]):
        request.wait()
    assert other[-1] == left
    # By tag, in another order than they were sent.
    sends = [dist.isend(torch.full((3,), 10.0 * tag + rank), right, tag=tag) for tag in (1, 2, 3)]
    for tag in (3, 1, 2):
        dist.recv(got[:3], left, tag=tag)
        same(got[:3], torch.full((3,), 10.0 * tag + left))
    for request in sends:
        request.wait()
    # From any rank.
    if rank == 0:
        found = set()
        for _ in range(size - 1):
            source = dist.recv(got[:5])
            assert got[0] == source
            found.add(source)
        assert found == set(range(1, size))
    else:
        dist.send(torch.full((5,), float(rank)), 0)
    with pytest.raises(Exception, match="cannot send to itself|Invalid destination|differ"):
        dist.send(out, rank)


def sizes_differ(rank, size):
    if rank == 0:
        dist.send(torch.ones(3), 1)
    elif rank == 1:
        with pytest.raises(dist.DistError if hasattr(dist, "DistError") else Exception, match="12 bytes"):
            dist.recv(torch.ones(4), 0)


def groups(rank, size):
    for members in ([0], [0, size - 1], list(range(size))):
        group = dist.new_group(members)
        if rank in members:
            x = torch.full((10,), float(rank))
            dist.all_reduce(x, group=group)
            same(x, torch.full((10,), float(sum(members))))
    odd = dist.new_subgroups_by_enumeration([[r for r in range(size) if r % 2 == k] for k in range(min(2, size))])[0]
    x = torch.ones(3)
    dist.all_reduce(x, group=odd)
    assert x[0].item() == len([r for r in range(size) if r % 2 == rank % 2])
    dist.destroy_process_group(odd)


def same_bits(rank, size):
    """Random floats: every rank gets the same bits, in every run."""
    results = []
    for _ in range(3):
        x = torch.randn(5000, generator=torch.Generator().manual_seed(rank))
        dist.all_reduce(x)
        results.append(x)
    assert all(torch.equal(results[0], x) for x in results)
    everyone = [torch.zeros(5000) for _ in range(size)]
    dist.all_gather(everyone, results[0])
    assert all(torch.equal(everyone[0], x) for x in everyone)


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize(
    "case",
    [moves, reductions, special_reductions, shapes, splits_of_some, asynchronous, messages, sizes_differ, groups,
     same_bits],
    ids=lambda case: case.__name__,
)
def test_operations(case, size):
    ranks.run(case, size)


def test_one_rank():
    for case in (moves, reductions, same_bits):
        ranks.run(case, 1)


def test_another_header_of_the_library_compiles_the_backend_anew(tmp_path, monkeypatch):
    from trellis.torch import compiling

    header = tmp_path / "ccl" / "config.h"
    header.parent.mkdir()
    monkeypatch.setattr(compiling._where, "INCLUDE", str(tmp_path))
    header.write_text("struct Config { int timeout; };")
    torch = compiling.installed()
    before = compiling._fingerprint(torch)
    header.write_text("struct Config { int ranks, timeout; };")
    assert compiling._fingerprint(torch) != before
