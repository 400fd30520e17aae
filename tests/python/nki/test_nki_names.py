"""Each name of nki.isa and nki.language, against numpy; and that the tables name nothing that we lack unsaid."""

import numpy as np
import pytest

nki = pytest.importorskip("trellis.nki", reason="ml_dtypes is not installed")
nl, nisa = nki.language, nki.isa


def numbers(*shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def ran(body, *arrays, shape=None, dtype=np.float32, chip=None):
    """body(dst, *tiles) between loads and a store."""

    @nki.jit
    def kernel(*xs):
        tiles = []
        for x in xs:
            tile = nl.ndarray(x.shape, x.dtype)
            nisa.dma_copy(dst=tile, src=x)
            tiles.append(tile)
        out = nl.ndarray(shape or xs[0].shape, dtype)
        body(out, *tiles)
        back = nl.ndarray(out.shape, dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=back, src=out)
        return back

    return kernel.launch(arrays, {}, chip=chip)


X, Y = numbers(128, 64), numbers(128, 64, seed=2)
COLUMN = numbers(128, 1, seed=3)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize("name,golden", [
    ("exp", np.exp), ("tanh", np.tanh), ("square", np.square), ("sigmoid", sigmoid), ("silu", lambda x: x * sigmoid(x)),
    ("relu", lambda x: np.maximum(x, 0)), ("sin", np.sin), ("sign", np.sign), ("arctan", np.arctan),
    ("softplus", lambda x: np.log1p(np.exp(x))), ("gelu_apprx_sigmoid", lambda x: x * sigmoid(1.702 * x)),
    ("silu_dx", lambda x: sigmoid(x) * (1 + x * (1 - sigmoid(x)))),
    ("mish", lambda x: x * np.tanh(np.log1p(np.exp(x)))),
])  # fmt: skip
def test_activation(name, golden):
    got = ran(lambda out, x: nisa.activation(dst=out, op=getattr(nl, name), data=x, scale=0.5), X)
    np.testing.assert_allclose(got, golden(np.float32(0.5) * X), rtol=1e-4, atol=1e-5)


def test_activation_with_a_bias_and_a_sum():
    def body(out, x, bias):
        nisa.activation_reduce(dst=x, op=nl.exp, data=x, reduce_op=nl.add, reduce_res=out, bias=bias)

    np.testing.assert_allclose(
        ran(body, X, COLUMN, shape=(128, 1)), np.exp(X + COLUMN).sum(1, keepdims=True), rtol=1e-5
    )


def test_activate2_and_exponential_of_v4():
    def body(out, x):
        nisa.activate2(dst=out, op=nl.exp, data=x, imm0=2.0, imm1=1.0, op0=nl.multiply, op1=nl.subtract)

    np.testing.assert_allclose(ran(body, X, chip="trn3"), np.exp(2 * X - 1), rtol=1e-5)
    got = ran(lambda out, x, c: nisa.exponential(dst=out, src=x, max_value=c), X, COLUMN, chip="trn3")
    np.testing.assert_allclose(got, np.exp(X - COLUMN), rtol=1e-5)


@pytest.mark.parametrize("op,golden", [
    ("add", np.add), ("subtract", np.subtract), ("multiply", np.multiply), ("divide", np.divide),
    ("maximum", np.maximum), ("minimum", np.minimum), ("greater", np.greater), ("less_equal", np.less_equal),
    ("equal", np.equal), ("not_equal", np.not_equal), ("greater_equal", np.greater_equal), ("less", np.less),
    ("abs_max", lambda a, b: np.maximum(abs(a), abs(b))), ("logical_and", lambda a, b: (a != 0) & (b != 0)),
])  # fmt: skip
def test_tensor_tensor_and_scalar(op, golden):
    function = getattr(nl, op)
    got = ran(lambda out, x, y: nisa.tensor_tensor(dst=out, data1=x, data2=y, op=function), X, Y)
    np.testing.assert_allclose(got, golden(X, Y).astype(np.float32), rtol=1e-6)
    got = ran(lambda out, x, c: nisa.tensor_scalar(dst=out, data=x, op0=function, operand0=c, reverse0=True), X, COLUMN)
    np.testing.assert_allclose(got, golden(COLUMN, X).astype(np.float32), rtol=1e-6)


@pytest.mark.parametrize("op,golden", [("bitwise_and", np.bitwise_and), ("bitwise_or", np.bitwise_or),
                                       ("bitwise_xor", np.bitwise_xor), ("left_shift", np.left_shift),
                                       ("right_shift", np.right_shift)])
def test_operators_on_bits(op, golden):
    a = np.arange(128 * 4, dtype=np.int32).reshape(128, 4)
    b = (a * 7 % 5).astype(np.int32)
    got = ran(lambda out, x, y: nisa.tensor_tensor(dst=out, data1=x, data2=y, op=getattr(nl, op)), a, b, dtype=np.int32)
    np.testing.assert_array_equal(got, golden(a, b))


def test_two_steps_of_scalars():
    def body(out, x, c):
        nisa.tensor_scalar(dst=out, data=x, op0=nl.multiply, operand0=c, op1=nl.add, operand1=3.0)

    np.testing.assert_allclose(ran(body, X, COLUMN), X * COLUMN + 3, rtol=1e-6)

    def three(out, x, y):
        nisa.scalar_tensor_tensor(dst=out, data=x, op0=nl.add, operand0=1.0, op1=nl.multiply, operand1=y)

    np.testing.assert_allclose(ran(three, X, Y), (X + 1) * Y, rtol=1e-6)


@pytest.mark.parametrize("op,golden", [("add", np.sum), ("max", np.max), ("min", np.min)])
def test_reductions(op, golden):
    got = ran(lambda out, x: nisa.tensor_reduce(dst=out, op=op, data=x, axis=1, negate=True), X, shape=(128, 1))
    np.testing.assert_allclose(got, -golden(X, axis=1, keepdims=True), rtol=1e-4)
    got = ran(lambda out, x: nisa.tensor_partition_reduce(dst=out, op=op, data=x), X, shape=(1, 64))
    np.testing.assert_allclose(got, golden(X, axis=0, keepdims=True), rtol=1e-3)


def test_scans():
    def body(out, x, y):
        nisa.tensor_tensor_scan(dst=out, data0=x, data1=y, initial=0.5, op0=nl.multiply, op1=nl.add)

    wanted, state = np.empty_like(X), np.full(128, 0.5, np.float32)
    for i in range(64):
        state = wanted[:, i] = X[:, i] * state + Y[:, i]
    np.testing.assert_allclose(ran(body, X, Y), wanted, rtol=1e-5)
    got = ran(lambda out, x: nisa.tensor_scalar_cumulative(dst=out, src=x, op0=nl.add, op1=nl.add, imm0=1.0), X)
    np.testing.assert_allclose(got, (X + 1).cumsum(1), rtol=1e-4, atol=1e-4)

    def reduced(out, x):
        nisa.tensor_scalar_reduce(dst=x, data=x, op0=nl.multiply, operand0=2.0, reduce_op=nl.add, reduce_res=out)

    np.testing.assert_allclose(ran(reduced, X, shape=(128, 1)), (2 * X).sum(1, keepdims=True), rtol=1e-3, atol=1e-4)


def test_statistics():
    def body(out, x):
        parts = nl.ndarray((128, 6), nl.float32)
        nisa.bn_stats(dst=parts, data=x)
        nisa.bn_aggr(dst=out, data=parts)

    wanted = np.stack([X.mean(1), X.var(1)], axis=1)
    np.testing.assert_allclose(ran(body, X, shape=(128, 2)), wanted, rtol=1e-4, atol=1e-5)


def test_the_eight_largest():
    def body(out, x):
        largest = nl.ndarray((128, 8), nl.float32)
        nisa.max8(dst=largest, src=x)
        nisa.nc_find_index8(dst=out, data=x, vals=largest)

    order = np.argsort(-X, axis=1)[:, :8]
    np.testing.assert_array_equal(ran(body, X, shape=(128, 8), dtype=np.uint32), order)

    def replaced(out, x):
        largest = nl.ndarray((128, 8), nl.float32)
        nisa.max8(dst=largest, src=x)
        nisa.nc_match_replace8(dst=out, data=x, vals=largest, imm=-9.0)

    wanted = X.copy()
    np.put_along_axis(wanted, order, -9.0, axis=1)
    np.testing.assert_array_equal(ran(replaced, X), wanted)


def test_equal_values_share_their_places_in_reverse():
    row = np.array([[1, 2, 3, 4, 8, 8, 8, 8, 8, 8, 8]], np.float32)
    values = np.array([[3, 8, 8, 8, 8, 8, 8, 8]], np.float32)

    def body(out, x, v):
        nisa.nc_match_replace8(dst=x, data=x, vals=v, imm=0.0, dst_idx=out)

    got = ran(body, row, values, shape=(1, 8), dtype=np.uint32)
    np.testing.assert_array_equal(got, [[2, 10, 9, 8, 7, 6, 5, 4]])  # as the instruction's page has it


def test_gathers():
    places = np.random.default_rng(1).integers(0, 64, (128, 16)).astype(np.uint32)
    got = ran(lambda out, x, i: nisa.nc_n_gather(dst=out, data=x, indices=i), X, places, shape=(128, 16))
    np.testing.assert_array_equal(got, np.take_along_axis(X, places.astype(int), axis=1))
    count = ran(lambda out, x: nisa.nonzero_with_count(dst=out, src=x, index_offset=16), np.tile(
        np.array([[0, 1, 1, 0, 0, 1, 0, 0]], np.int32), (16, 1)), shape=(16, 9), dtype=np.int32)
    np.testing.assert_array_equal(count[0], [17, 18, 21, -1, -1, -1, -1, -1, 3])


def test_selections_and_places():
    def triangle(out, x):
        nisa.affine_select(dst=out, pattern=[[-1, 64]], channel_multiplier=1, on_true_tile=x, on_false_value=-1.0,
                           cmp_op=nl.greater_equal)

    np.testing.assert_array_equal(ran(triangle, X), np.where(np.tril(np.ones((128, 64), bool)), X, -1))
    got = ran(lambda out, x: nisa.iota(dst=out, pattern=[[2, 64]], offset=5, channel_multiplier=100), X, dtype=np.int32)
    np.testing.assert_array_equal(got, 5 + 100 * np.arange(128)[:, None] + 2 * np.arange(64)[None, :])
    keep = (X > 0).astype(np.uint8)
    got = ran(lambda out, x, k: nisa.select_reduce(dst=out, predicate=k, on_true=x, on_false=0.0), X, keep)
    np.testing.assert_array_equal(got, np.maximum(X, 0))


def test_transposes_and_shuffles():
    def by_array(out, x):
        psum = nl.ndarray((64, 128), nl.float32, buffer=nl.psum)
        nisa.nc_transpose(dst=psum, data=x)
        nisa.tensor_copy(dst=out, src=psum)

    np.testing.assert_array_equal(ran(by_array, X, shape=(64, 128)), X.T)
    got = ran(lambda out, x: nisa.nc_stream_shuffle(dst=out, src=x, shuffle_mask=[0] * 32), X)
    np.testing.assert_array_equal(got, np.repeat(X[::32], 32, axis=0))
    np.testing.assert_array_equal(ran(lambda out, x: nisa.dma_transpose(dst=out, src=x), X, shape=(64, 128)), X.T)


def test_rows_by_index():
    @nki.jit
    def gather(table, rows):
        index, tile = nl.ndarray((32, 1), nl.int32), nl.ndarray((32, 64), table.dtype)
        nisa.dma_copy(dst=index, src=rows)
        nisa.dma_copy(dst=tile, src=table.ap([[64, 32], [1, 64]], vector_offset=index, indirect_dim=0))
        out = nl.ndarray((32, 64), table.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=tile)
        return out

    rows = np.random.default_rng(1).integers(0, 128, (32, 1)).astype(np.int32)
    np.testing.assert_array_equal(gather(X, rows), X[rows[:, 0]])
    assert "dma_gather" in gather.trace.summary()


def test_random_numbers_are_in_their_range():
    got = ran(lambda out, x: nisa.rand2(dst=out, min=2.0, max=3.0), X, chip="trn3")
    assert got.min() >= 2 and got.max() <= 3 and got.std() > 0.2
    kept = ran(lambda out, x: nisa.dropout(dst=out, data=x, prob=0.5), X)
    assert 0.4 < (kept == 0).mean() < 0.6 and np.all((kept == 0) | (kept == X))


def test_every_documented_instruction_is_computed_or_says_that_it_is_not():
    from trellis.nki.instructions.emit import IMPLEMENTATIONS
    from trellis.nki.language.functions import LANGUAGE
    from trellis.nki.names.tables import entries

    host = {"get_nc_version", "get_nc_sub_version"}
    assert set(entries("isa")) - set(IMPLEMENTATIONS) - host == set()
    assert set(entries("beta1_isa")) - set(IMPLEMENTATIONS) - host == {"builtin_custom_op"}
    by_module = {"is_hbm", "is_sbuf", "is_psum", "is_on_chip", "arange"}
    assert set(entries("language")) - set(LANGUAGE) - by_module == set()


def test_a_parameter_that_a_function_lacks_is_refused_by_its_name_its_line_and_who_has_it():
    with pytest.raises(
        nki.NkiError,
        match=r"test_nki_names.py:\d+: nki.language.load has no parameter 'mask': "
        "neuronxcc.nki.language has it; nki takes slices that end inside",
    ):
        ran(lambda out, x: nl.load(x, mask=True), X)
    with pytest.raises(nki.NkiError, match=r"sqrt of 2.0; expected a tile, or math.sqrt of a number"):
        ran(lambda out, x: nl.sqrt(2.0), X)
    with pytest.raises(nki.NkiError, match="nki.isa.reciprocal has no parameter 'speed': no release up to 0.7"):
        ran(lambda out, x: nisa.reciprocal(dst=out, data=x, speed=2), X)
    with pytest.raises(AttributeError, match="nki.isa.builtin_custom_op: neuronxcc.nki.isa has it"):
        ran(lambda out, x: nisa.builtin_custom_op(x), X)


def test_parameters_of_nki_0_2():
    """As the guide from 0.2 to 0.3 has them before and after."""

    @nki.jit
    def kernel(x, older):
        register, tile, other = nisa.register_alloc(), nl.load(x), nl.ndarray(x.shape, x.dtype)
        nisa.register_move(register, **({"imm": 42} if older else {"src": 42}))
        way = {"use_gpsimd_dma": True} if older else {"dma_engine": nisa.dma_engine.gpsimd_dma}
        me = nl.program_id(0)
        nisa.sendrecv(src=tile, dst=other, send_to_rank=1 - me, recv_from_rank=1 - me, pipe_id=0, **way)
        assert register == 42

    traces = []
    for older in (True, False):
        run = kernel[2]
        run(np.ones((4, 4), np.float32), older)
        traces.append(run.trace.kind)
    assert traces[0] == traces[1] and "sendrecv_gpsimd" in traces[0]
    with pytest.raises(nki.NkiError, match="register_move of nothing"):
        nki.jit(lambda x: nisa.register_move(nisa.register_alloc()))(np.ones((4, 4), np.float32))
