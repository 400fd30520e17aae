"""Kernels on several ranks: collectives, the two cores of a logical core, and their times."""

import numpy as np
import pytest

nki_ours = pytest.importorskip("trellis.nki", reason="ml_dtypes is not installed")
import ml_dtypes  # noqa: E402

import trellis.nki.timing  # noqa: E402, F401  for nki_ours.timing

with nki_ours.as_nki(shadow=True):
    import nki
    import nki.collectives as ncc
    import nki.isa as nisa
    import nki.language as nl


def shards(ranks, *shape, seed=1, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal((ranks, *shape)).astype(dtype)


def through_hbm(collective, result_shape):
    """A kernel that copies its argument, runs a collective on the copy, and returns a copy of what it gave."""

    @nki.jit
    def kernel(x):
        source = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        target = nl.ndarray(result_shape, x.dtype, buffer=nl.shared_hbm)
        out = nl.ndarray(result_shape, x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=source, src=x)
        collective(source, target)
        nisa.dma_copy(dst=out, src=target)
        return out

    return kernel


def run(kernel, data, **how):
    return nki_ours.on_ranks(kernel, [(each,) for each in data], **how)


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.int32])
def test_all_reduce(dtype):
    x = np.random.default_rng(1).integers(-9, 9, (4, 128, 32)).astype(dtype)
    kernel = through_hbm(lambda a, b: ncc.all_reduce([a], [b], ncc.ReplicaGroup([[0, 1, 2, 3]]), nl.add), (128, 32))
    for result in run(kernel, x).results:
        np.testing.assert_array_equal(result.astype(np.float64), x.astype(np.float64).sum(0))


def test_all_reduce_of_two_groups_by_maximum():
    x = shards(4, 128, 8)
    kernel = through_hbm(
        lambda a, b: ncc.all_reduce([a], [b], ncc.ReplicaGroup([[0, 2], [1, 3]]), nl.maximum), (128, 8)
    )
    results = run(kernel, x).results
    for rank in range(4):
        np.testing.assert_array_equal(results[rank], np.maximum(x[rank], x[(rank + 2) % 4]))


def test_all_gather_keeps_the_order_of_the_group():
    x = shards(4, 16, 8)
    kernel = through_hbm(lambda a, b: ncc.all_gather([a], [b], [[3, 1, 0, 2]], 0), (64, 8))
    for result in run(kernel, x).results:
        np.testing.assert_array_equal(result, x[[3, 1, 0, 2]].reshape(64, 8))


def test_all_gather_in_sbuf_along_the_free_dimension():
    @nki.jit
    def kernel(x):
        mine, all_of = nl.ndarray(x.shape, x.dtype), nl.ndarray((x.shape[0], 4 * x.shape[1]), x.dtype)
        out = nl.ndarray(all_of.shape, x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=mine, src=x)
        ncc.all_gather([mine], [all_of], ncc.ReplicaGroup([[0, 1, 2, 3]]), 1)
        nisa.dma_copy(dst=out, src=all_of)
        return out

    x = shards(4, 128, 16)
    for result in run(kernel, x).results:
        np.testing.assert_array_equal(result, np.concatenate(list(x), axis=1))


def test_reduce_scatter_and_all_to_all():
    x = shards(4, 64, 8)
    group = ncc.ReplicaGroup([[0, 1, 2, 3]])
    summed = run(through_hbm(lambda a, b: ncc.reduce_scatter([a], [b], group, 0, nl.add), (16, 8)), x).results
    moved = run(through_hbm(lambda a, b: ncc.all_to_all([a], [b], group, 0), (64, 8)), x).results
    for rank in range(4):
        part = slice(16 * rank, 16 * rank + 16)
        np.testing.assert_allclose(summed[rank], x.sum(0)[part], rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(moved[rank], x[:, part].reshape(64, 8))


def test_permutations_by_pairs_and_by_the_ring():
    x = shards(4, 32, 8)
    pairs = run(
        through_hbm(lambda a, b: ncc.collective_permute([a], [b], [(0, 1), (1, 0), (2, 3)]), (32, 8)), x
    ).results
    np.testing.assert_array_equal(pairs[:2], x[[1, 0]])
    np.testing.assert_array_equal(pairs[2], np.zeros((32, 8)))  # no one sends to it
    np.testing.assert_array_equal(pairs[3], x[2])
    group = ncc.ReplicaGroup([[0, 1, 2, 3]])
    ring = run(through_hbm(lambda a, b: ncc.collective_permute_implicit([[a]], [[b]], group), (32, 8)), x).results
    np.testing.assert_array_equal(ring, x[[3, 0, 1, 2]])
    summed = run(through_hbm(lambda a, b: ncc.collective_permute_implicit_reduce([[a]], [[a]], [[b]], group, nl.add),
                             (32, 8)), x).results  # fmt: skip
    np.testing.assert_allclose(summed, 2 * x[[3, 0, 1, 2]])


def test_a_ring_of_steps_knows_whose_data_it_has():
    ranks = 4
    group = ncc.ReplicaGroup([list(range(ranks))])

    @nki.jit
    def gathered(x):
        out = nl.ndarray((ranks, *x.shape), x.dtype, buffer=nl.shared_hbm)
        buffers = [nl.ndarray(x.shape, x.dtype) for _ in range(2)]
        nisa.dma_copy(dst=buffers[0], src=x)
        for step in range(ranks):
            now, then = buffers[step % 2], buffers[1 - step % 2]
            whose = ncc.collective_permute_implicit_current_processing_rank_id(step, group)
            if step + 1 < ranks:
                ncc.collective_permute_implicit([[now]], [[then]], group)
            rows, columns = x.shape
            nisa.dma_copy(dst=out.ap([[columns, rows], [1, columns]], scalar_offset=whose, indirect_dim=0), src=now)
        return out

    x = shards(ranks, 128, 8)
    for result in run(gathered, x).results:
        np.testing.assert_array_equal(result, x)


def test_rank_id():
    @nki.jit
    def mine(table):
        out = nl.ndarray((1, 8), table.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=table.ap([[8, 1], [1, 8]], scalar_offset=ncc.rank_id(), indirect_dim=0))
        return out

    table = shards(1, 3, 8)[0]
    np.testing.assert_array_equal(np.concatenate(run(mine, [table] * 3).results), table)


def test_lengths_that_a_tensor_says():
    ranks, slot = 4, 6
    counts = np.array([[1, 2, 3, 0], [4, 0, 6, 1], [2, 2, 2, 2], [0, 5, 1, 3]])  # from a row's rank to a column's

    @nki.jit
    def kernel(x, meta):
        target = nl.zeros((ranks * slot,), x.dtype, buffer=nl.shared_hbm)
        out = nl.ndarray((ranks * slot,), x.dtype, buffer=nl.shared_hbm)
        got = nl.ndarray(meta.shape, meta.dtype, buffer=nl.shared_hbm)
        handle = ncc.all_to_all_v_prepare([x], [target], ncc.ReplicaGroup([[0, 1, 2, 3]]), meta)
        ncc.all_to_all_v_trigger(handle)
        nisa.dma_copy(dst=out, src=target)
        nisa.dma_copy(dst=got, src=meta)
        return out, got

    x = shards(ranks, 16)
    metas = [np.stack([c, np.cumsum(c) - c, np.zeros_like(c)]).astype(np.uint32) for c in counts]
    run = nki_ours.on_ranks(kernel, [(a, m) for a, m in zip(x, metas, strict=True)])
    for rank, (out, got) in enumerate(run.results):
        np.testing.assert_array_equal(got[2], counts[:, rank])
        for sender in range(ranks):
            first, n = int(metas[sender][1, rank]), int(counts[sender, rank])
            np.testing.assert_array_equal(out[sender * slot:sender * slot + n], x[sender, first:first + n])


def test_what_may_not_be():
    x = shards(2, 32, 8)
    group = ncc.ReplicaGroup([[0, 1]])
    cases = {
        "expected 512": lambda a, b: ncc.all_gather([a], [b], group, 0),
        "expected a multiple of 2": lambda a, b: ncc.reduce_scatter([a.reshape((1, 256))], [b], group, 0, nl.add),
        "the kernel runs on ranks 0 to 1": lambda a, b: ncc.all_reduce([a], [b], [[0, 2]], nl.add),
        "each in one group alone": lambda a, b: ncc.all_reduce([a], [b], [[0, 1], [1]], nl.add),
        r"all_reduce of ranks \[0, 1\]: the others have ended": lambda a, b: (
            ncc.rank_id() == 0 and ncc.all_reduce([a], [b], group, nl.add)
        ),
        "calls all_to_all where": lambda a, b: (
            ncc.all_to_all([a], [b], group, 0) if ncc.rank_id() == 1 else ncc.all_reduce([a], [b], group, nl.add)
        ),
    }
    for text, wrong in cases.items():
        with pytest.raises(nki_ours.NkiError, match=text):
            run(through_hbm(wrong, (32, 8)), x)


def test_alone_every_rank_has_the_same():
    x = shards(1, 32, 8)[0]
    kernel = through_hbm(lambda a, b: ncc.all_reduce([a], [b], ncc.ReplicaGroup([[0, 1, 2, 3]]), nl.add), (32, 8))
    np.testing.assert_allclose(kernel(x), 4 * x, rtol=1e-6)


@nki.jit
def halves(x):
    """Each core of a logical core doubles its half, gives it to the other, and then all ranks are summed."""
    me = nl.program_id(0)
    rows, columns = x.shape
    mine, theirs = nl.ndarray((rows // 2, columns), x.dtype), nl.ndarray((rows // 2, columns), x.dtype)
    shared = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    total = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    out = nl.ndarray((2, *x.shape), x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=mine, src=x[me * rows // 2:(me + 1) * rows // 2])
    nisa.tensor_scalar(dst=mine, data=mine, op0=nl.multiply, operand0=2.0)
    nisa.sendrecv(src=mine, dst=theirs, send_to_rank=1 - me, recv_from_rank=1 - me, pipe_id=0)
    nisa.dma_copy(dst=shared[(1 - me) * rows // 2:(2 - me) * rows // 2], src=theirs)
    nisa.core_barrier(shared, (0, 1))
    ncc.all_reduce([shared], [total], ncc.ReplicaGroup([[0, 1, 2]]), nl.add)
    nisa.dma_copy(dst=out[me], src=total)
    return out


def test_two_cores_on_each_of_three_ranks():
    x = shards(3, 128, 8)
    for result in run(halves[2], x).results:
        np.testing.assert_allclose(result[0], 2 * x.sum(0), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(result[1], 2 * x.sum(0), rtol=1e-5, atol=1e-6)
    trace = halves.trace
    exchanges = [i for i in halves[2].specialize(x[0]).trace.instructions() if i.kind == "sendrecv"]
    assert trace is None and len(exchanges) == 2


def test_a_collective_takes_what_the_machine_says():
    from trellis import sim

    group = ncc.ReplicaGroup([list(range(16))])
    kernel = through_hbm(lambda a, b: ncc.all_reduce([a], [b], group, nl.add), (2048, 2048))
    kernel.launch((np.zeros((2048, 2048), np.float32),), {}, compute=False)
    t, size = nki_ours.timing.time_of(kernel.trace), 2048 * 2048 * 4
    alone = sim.price("all_reduce", "trn2.48xlarge", size, ranks=16)
    assert t.seconds > alone.time and t.seconds < alone.time + 400e-6  # and the two copies
    twice = nki_ours.timing.time_of(kernel.trace, machine="trn2.48xlarge x 2")
    assert twice.seconds == pytest.approx(t.seconds, rel=0.05)
    slower = nki_ours.timing.time_of(kernel.trace, late={next(iter(kernel.trace.collectives)): 1e-3})
    assert slower.seconds == pytest.approx(t.seconds + 1e-3, rel=0.01)


def test_ranks_wait_for_the_last_one():
    group = ncc.ReplicaGroup([[0, 1]])

    def uneven(turns):
        @nki.jit
        def kernel(x):
            tile, mine = nl.ndarray(x.shape, x.dtype), nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
            total = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
            nisa.dma_copy(dst=tile, src=x)
            for _ in range(turns if ncc.rank_id() == 1 else 1):
                nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=1.0)
            nisa.dma_copy(dst=mine, src=tile)
            ncc.all_reduce([mine], [total], group, nl.add)
            return total

        return run(kernel, shards(2, 128, 2048), compute=False)

    even, late = uneven(1).timing(), uneven(200)
    alone = nki_ours.timing.time_of(late.traces[0])
    assert late.timing().seconds > even.seconds + 100e-6
    assert alone.seconds < even.seconds * 1.2
