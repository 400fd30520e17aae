"""neuronxcc's masks, and tiles chosen by indices: instructions take and change what is let through, nothing else."""

import numpy as np
import pytest

nki_ours = pytest.importorskip("trellis.nki", reason="ml_dtypes is not installed")


@pytest.fixture(autouse=True)
def names():
    with nki_ours.as_nki(shadow=True):
        yield


def ran(kernel, *arrays):
    """What a kernel of (nl, nisa, arrays...) stores: it gives a tile."""
    import neuronxcc.nki as nki
    import neuronxcc.nki.isa as nisa
    import neuronxcc.nki.language as nl

    @nki.jit
    def stored(*tensors):
        tile = kernel(nl, nisa, *tensors)
        out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
        nl.store(out, tile)
        return out

    return stored(*arrays)


def test_broadcasts_of_what_indices_chose():
    def kernel(nl, nisa, x):
        i = nl.arange(4)[:, None]
        return nl.copy(nl.load(x)[i, (i * i) % 5].broadcast_to((4, 3)))

    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    assert ran(kernel, x).tolist() == [[x[i, i * i % 5]] * 3 for i in range(4)]


def test_broadcasts_of_what_a_predicate_chose():
    """Where it lets nothing through, the result keeps what was there."""
    def kernel(nl, nisa, x):
        out = nl.full((4, 3), -1.0, dtype=x.dtype, buffer=nl.sbuf)
        wide = out[nl.arange(4)[:, None] < 2]
        wide.broadcast_to((4, 3))[...] = nl.load(x)
        return out

    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    assert ran(kernel, x).tolist() == [[0, 1, 2], [3, 4, 5], [-1] * 3, [-1] * 3]


def test_another_type_of_what_indices_chose():
    def kernel(nl, nisa, x):
        i = nl.arange(4)[:, None]
        return nl.copy(nl.load(x)[i, (i * i) % 5].view(nl.int16))

    with pytest.raises(nki_ours.NkiError, match="elements are reached by indices"):
        ran(kernel, np.arange(32, dtype=np.float32).reshape(4, 8))


@pytest.mark.parametrize("op,wanted", [("add", [1, 3, 3, 11, 12]), ("subtract", [1, 1, 1, 7, -6])])
def test_cumulative_states_pass_over_what_a_mask_leaves_out(op, wanted):
    def kernel(nl, nisa, x):
        out = nl.full(x.shape, -9.0, dtype=x.dtype, buffer=nl.sbuf)
        i, j = nl.arange(2)[:, None], nl.arange(5)[None, :]
        nisa.tensor_scalar_cumulative(dst=out[i, j], src=nl.load(x)[i, j], op0=nl.add, op1=getattr(nl, op), imm0=0.0,
                                      mask=(j != 2) & (i < 1))
        return out

    x = np.array([[1, 2, 4, 8, 1]] * 2, np.float32)
    assert ran(kernel, x).tolist() == [[w if j != 2 else -9 for j, w in enumerate(wanted)], [-9] * 5]


def combined(op, mask, where, places=(0, 1, 1, 3)):
    """A table of 8 x 4 twos after atomic_rmw of rows 1, 2, 3, 4 to the rows `places`, which indices may choose."""
    def kernel(nl, nisa, table, indices, values):
        out = nl.ndarray((8, 4), dtype=nl.float32, buffer=nl.hbm)
        i, j = nl.arange(4)[:, None], nl.arange(4)[None, :]
        nl.store(out, nl.load(table))
        index, value = nl.load(indices), nl.load(values)
        nl.atomic_rmw(out[index[i, 0], j] if where == "chosen" else out[i, j], value=value[i, j], op=getattr(np, op),
                      mask=mask(i, j) if mask else None)
        return nl.load(out)

    values = np.repeat(np.arange(1, 5, dtype=np.float32)[:, None], 4, axis=1)
    return ran(kernel, np.full((8, 4), 2, np.float32), np.array(places, np.int32)[:, None], values)


@pytest.mark.parametrize("op", ["add", "maximum", "minimum", "multiply"])
@pytest.mark.parametrize("where", ["chosen", "plain"])
@pytest.mark.parametrize("mask", [None, lambda i, j: i < 2, lambda i, j: (i != 2) & (j < 3)])
def test_atomic_rmw_changes_what_the_mask_lets_through(op, where, mask):
    places = (0, 1, 1, 3) if where == "chosen" else (0, 1, 2, 3)
    wanted = np.full((8, 4), 2, np.float32)
    for i, j in np.ndindex(4, 4):
        if mask is None or mask(i, j):
            wanted[places[i], j] = getattr(np, op)(wanted[places[i], j], np.float32(i + 1))
    np.testing.assert_array_equal(combined(op, mask, where), wanted)


def test_atomic_rmw_of_what_does_not_combine():
    with pytest.raises(nki_ours.NkiError, match="dst_rmw_op=is_gt of rows that indices choose; expected add, "):
        combined("greater", None, "chosen")


# Reductions: x is 4 x 8; the mask lets in 5 columns of 3 rows, and rows of which it lets in nothing keep what they had.
X = np.random.default_rng(1).standard_normal((4, 8)).astype(np.float32)
LET = (np.arange(4)[:, None] < 3) & (np.arange(8)[None, :] < 5)
OPERATORS = {"add": np.add, "maximum": np.maximum, "minimum": np.minimum}


def reduced(op, x, axis, mask):
    """By numpy; where the mask lets nothing through, -9."""
    start = {"add": 0, "maximum": -np.inf, "minimum": np.inf, "multiply": 1}[op]
    total = getattr(np, op).reduce(x, axis=axis, keepdims=True, where=mask, initial=start)
    return np.where(mask.any(axis=axis, keepdims=True), total, -9)


def under_the_mask(shape, work):
    """What an instruction leaves in a tile of -9: work(nl, nisa, x, the tile, i, j, mask)."""
    def kernel(nl, nisa, x):
        result = nl.full(shape, -9.0, dtype=nl.float32, buffer=nl.sbuf)
        i, j = nl.arange(4)[:, None], nl.arange(8)[None, :]
        work(nl, nisa, nl.load(x), result, i, j, (i < 3) & (j < 5))
        return result

    return ran(kernel, X)


FUSED = {
    "activation": lambda nl, nisa, x, r, op, mask: nisa.activation(
        op=nl.copy, data=x, reduce_op=op, reduce_res=r, reduce_cmd=nisa.reduce_cmd.reset_reduce, mask=mask),
    "activation_reduce": lambda nl, nisa, x, r, op, mask: nisa.activation_reduce(
        op=nl.copy, data=x, reduce_op=op, reduce_res=r, mask=mask),
    "tensor_scalar_reduce": lambda nl, nisa, x, r, op, mask: nisa.tensor_scalar_reduce(
        data=x, op0=np.add, operand0=0.0, reduce_op=op, reduce_res=r, mask=mask),
    "range_select": lambda nl, nisa, x, r, op, mask: nisa.range_select(
        on_true_tile=x, comp_op0=np.greater_equal, comp_op1=np.less, bound0=whole(nl, 0.0), bound1=whole(nl, 8.0),
        reduce_cmd=nisa.reduce_cmd.reset_reduce, reduce_res=r, reduce_op=op, mask=mask),
    "select_reduce": lambda nl, nisa, x, r, op, mask: nisa.select_reduce(
        dst=nl.full((4, 8), 0.0, dtype=nl.float32, buffer=nl.sbuf), on_true=x, on_false=0.0, reduce_res=r,
        predicate=nl.full((4, 8), 1, dtype=nl.uint8, buffer=nl.sbuf), reduce_cmd=nisa.reduce_cmd.reset_reduce,
        reduce_op=op, mask=mask),
}  # fmt: skip


def whole(nl, value):
    """A column of a bound."""
    return nl.full((4, 1), value, dtype=nl.float32, buffer=nl.sbuf)


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("name", FUSED)
def test_fused_reductions(name, op):
    def work(nl, nisa, x, r, i, j, mask):
        FUSED[name](nl, nisa, x[i, j], r, OPERATORS[op], mask)

    got = under_the_mask((4, 1), work)
    np.testing.assert_allclose(got, reduced(op, X, 1, LET), rtol=1e-6)


def test_what_accumulators_keep():
    """Of rows that a mask leaves out, what they had."""
    def work(nl, nisa, x, r, i, j, mask):
        FUSED["activation"](nl, nisa, x, r, np.add, None)
        FUSED["activation"](nl, nisa, x[i, j], r, np.add, mask)
        nisa.activation(op=nl.copy, data=x, reduce_op=np.add, reduce_res=r, reduce_cmd=nisa.reduce_cmd.reduce)

    wanted = X.sum(axis=1) + np.where(LET.any(axis=1), X.sum(axis=1, where=LET), X.sum(axis=1))
    np.testing.assert_allclose(under_the_mask((4, 1), work)[:, 0], wanted, rtol=1e-5)


@pytest.mark.parametrize("op", OPERATORS)
def test_reductions_of_rows(op):
    def work(nl, nisa, x, r, i, j, mask):
        r[...] = nisa.tensor_reduce(OPERATORS[op], x[i, j], axis=(1,), mask=mask)

    np.testing.assert_allclose(under_the_mask((4, 1), work), reduced(op, X, 1, LET), rtol=1e-6)


def test_reductions_of_bits():
    def kernel(nl, nisa, x):
        i, j = nl.arange(4)[:, None], nl.arange(8)[None, :]
        return nisa.tensor_reduce(nl.bitwise_and, nl.load(x)[i, j], axis=(1,), mask=(j < 5))

    x = np.arange(32, dtype=np.int32).reshape(4, 8) | 64
    assert ran(kernel, x).ravel().tolist() == np.bitwise_and.reduce(x[:, :5], axis=1).tolist()


@pytest.mark.parametrize("op", OPERATORS)
def test_reductions_across_partitions(op):
    def work(nl, nisa, x, r, i, j, mask):
        r[...] = nisa.tensor_partition_reduce(OPERATORS[op], x[i, j], mask=mask)

    np.testing.assert_allclose(under_the_mask((1, 8), work), reduced(op, X, 0, LET), rtol=1e-6)


@pytest.mark.parametrize("name,op", [("sum", "add"), ("max", "maximum"), ("min", "minimum"), ("prod", "multiply")])
@pytest.mark.parametrize("axis", [0, 1, (0, 1)])
@pytest.mark.parametrize("sign", [1, -1])
def test_reductions_of_the_language(name, op, axis, sign):
    """Of numbers of one sign, a zero in the place of what is left out would show."""
    x = sign * (np.abs(X) + 0.5)
    wanted = reduced(op, x, axis, LET)

    def kernel(nl, nisa, x):
        result = nl.full(wanted.shape, -9.0, dtype=nl.float32, buffer=nl.sbuf)
        i, j = nl.arange(4)[:, None], nl.arange(8)[None, :]
        result[...] = getattr(nl, name)(nl.load(x)[i, j], axis=axis, mask=(i < 3) & (j < 5))
        return result

    np.testing.assert_allclose(ran(kernel, x), wanted, rtol=1e-5)


def test_statistics():
    """bn_stats of what each row's mask lets through; in the shapes of triangles, rows differ."""
    def kernel(nl, nisa, x):
        i, j = nl.arange(4)[:, None], nl.arange(8)[None, :]
        return nisa.bn_aggr(nisa.bn_stats(nl.load(x)[i, j], mask=(j <= i + 1)))

    got = ran(kernel, X)
    for i in range(4):
        np.testing.assert_allclose(got[i], [X[i, :i + 2].mean(), X[i, :i + 2].var()], rtol=1e-4)


@pytest.mark.parametrize("axis", [0, 1, (0, 1)])
def test_means_and_variances(axis):
    def kernel(of):
        def f(nl, nisa, x):
            i, j = nl.arange(4)[:, None], nl.arange(8)[None, :]
            return nl.copy(getattr(nl, of)(nl.load(x)[i, j], axis=axis, mask=(i < 3) & (j < 5), keepdims=True))
        return f

    part = X[:3, :5]
    for of in ("mean", "var"):
        got = ran(kernel(of), X)
        wanted = getattr(part, of)(axis=axis, keepdims=True)
        np.testing.assert_allclose(got[:3, :5] if np.ndim(axis) == 0 else got, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("of", ["mean", "var"])
def test_means_of_nothing(of):
    """Where an assignment names the result, they keep what was there."""
    def kernel(nl, nisa, x):
        i, j = nl.arange(4)[:, None], nl.arange(8)[None, :]
        out = nl.full((4, 1), -9.0, dtype=nl.float32, buffer=nl.sbuf)
        out[...] = getattr(nl, of)(nl.load(x)[i, j], axis=1, mask=(i < 3) & (j < 5), keepdims=True)
        return out

    wanted = np.full((4, 1), -9, np.float32)
    wanted[:3] = getattr(X[:3, :5], of)(axis=1, keepdims=True)
    np.testing.assert_allclose(ran(kernel, X), wanted, rtol=1e-5, atol=1e-6)


def test_a_mean_of_different_numbers():
    def kernel(nl, nisa, x):
        i, j = nl.arange(4)[:, None], nl.arange(8)[None, :]
        return nl.mean(nl.load(x)[i, j], axis=1, mask=(j <= i))

    with pytest.raises(nki_ours.NkiError, match="lets 1 to 4 elements into each result; expected as many into all"):
        ran(kernel, X)


def test_the_eight_largest_of_eight_columns():
    """The mask has the shape of the result, and is not of it."""
    def work(nl, nisa, x, r, i, j, mask):
        r[...] = nisa.max8(src=x[i, j], mask=mask)

    wanted = np.where(LET, -np.sort(-np.where(LET, X, -np.inf), axis=1), -np.inf)
    np.testing.assert_array_equal(under_the_mask((4, 8), work), np.where(LET.any(1, keepdims=True), wanted, -9))


@pytest.mark.parametrize("by", ["nc_transpose", "transpose", "load_transpose2d"])
def test_transposes_turn_the_mask(by):
    def kernel(nl, nisa, x):
        result = nl.full((8, 8), -9.0, dtype=nl.float32, buffer=nl.sbuf)
        i, j = nl.arange(8)[:, None], nl.arange(8)[None, :]
        if by == "load_transpose2d":
            result[...] = nl.load_transpose2d(x[i, j], mask=(i < 3))
        elif by == "transpose":
            result[...] = nl.transpose(nl.load(x)[i, j], mask=(i < 3))
        else:
            result[...] = nisa.nc_transpose(nl.load(x)[i, j], mask=(i < 3))
        return result

    x = np.random.default_rng(2).standard_normal((8, 8)).astype(np.float32)
    got = ran(kernel, x)
    np.testing.assert_array_equal(got[:, :3], x.T[:, :3])
    assert by != "load_transpose2d" or (got[:, 3:] == -9).all()  # the others' results come out of PSUM by a whole copy


@pytest.mark.parametrize("by", ["nc_transpose", "dma_transpose"])
def test_transposes_of_more_dimensions_turn_the_mask(by):
    """nc_transpose turns the partitions and all other dimensions, dma_transpose the first and the last of four."""
    shape, result = ((4, 2, 3), (6, 4)) if by == "nc_transpose" else ((4, 2, 3, 5), (5, 2, 3, 4))
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)

    def kernel(nl, nisa, x):
        buffer = nl.psum if by == "nc_transpose" else nl.sbuf
        out = nl.full(result, -9.0, dtype=nl.float32, buffer=buffer)
        places = [nl.arange(n).reshape([n if d == at else 1 for d in range(len(shape))]) for at, n in enumerate(shape)]
        out[...] = getattr(nisa, by)(nl.load(x)[tuple(places)], mask=(places[2] < 2) & (places[0] < 3))
        return out

    let = np.broadcast_to((np.arange(3) < 2).reshape(1, 1, 3, *[1] * (len(shape) - 3)), shape).copy()
    let[3:] = False
    kept = np.where(let, x, -9)
    wanted = kept.reshape(4, 6).T if by == "nc_transpose" else kept.transpose(3, 1, 2, 0)
    np.testing.assert_array_equal(ran(kernel, x), wanted)


def test_choices_under_a_mask():
    def work(nl, nisa, x, r, i, j, mask):
        r[...] = nl.where(x > 0, x, 0.0, mask=mask)

    np.testing.assert_array_equal(under_the_mask((4, 8), work), np.where(LET, np.maximum(X, 0), -9))
