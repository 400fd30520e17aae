"""neuronxcc's dialect: tiles returned, index arrays, masks, block dimensions, PSUM by +=."""

import numpy as np
import pytest

nki_ours = pytest.importorskip("trellis.nki", reason="ml_dtypes is not installed")


@pytest.fixture(autouse=True)
def names():
    with nki_ours.as_nki(shadow=True):
        yield


def numbers(*shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_masks_and_index_arrays():
    import neuronxcc.nki as nki
    import neuronxcc.nki.language as nl

    @nki.jit
    def doubled(x):
        rows, columns = x.shape
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        ip, jf = nl.arange(128)[:, None], nl.arange(512)[None, :]
        for i in nl.affine_range(-(-rows // 128)):
            mask = (i * 128 + ip < rows) & (jf < columns)
            tile = nl.load(x[i * 128 + ip, jf], mask=mask)
            nl.store(out[i * 128 + ip, jf], value=tile * 2 + 1, mask=mask)
        return out

    x = numbers(200, 300)
    np.testing.assert_allclose(doubled(x), 2 * x + 1, rtol=1e-6)
    views = [doubled.trace.views[v[0]] for v, kind in zip(doubled.trace.outputs, doubled.trace.kind, strict=True)
             if kind == "dma_copy"]
    assert [v.rows for v in views] == [128, 128, 72, 72]  # what the mask lets through


def test_both_masks_of_an_and():
    import neuronxcc.nki as nki
    import neuronxcc.nki.language as nl

    @nki.jit
    def corner(x):
        out = nl.zeros((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
        ip, jf = nl.arange(128)[:, None], nl.arange(64)[None, :]
        nl.store(out[ip, jf], value=nl.load(x[ip, jf]), mask=(ip < 3 and jf < 5))
        return out

    x = numbers(128, 64)
    wanted = np.zeros_like(x)
    wanted[:3, :5] = x[:3, :5]
    np.testing.assert_array_equal(corner(x), wanted)


def test_block_dimensions_and_psum():
    import neuronxcc.nki as nki
    import neuronxcc.nki.isa as nisa
    import neuronxcc.nki.language as nl

    @nki.jit
    def product(a, b):
        k, m, n = a.shape[0] // 128, a.shape[1], b.shape[1]
        left = nl.ndarray((k, nl.par_dim(128), m), dtype=a.dtype, buffer=nl.sbuf)
        for i in nl.affine_range(k):
            left[i] = nl.load(a[i * 128:(i + 1) * 128, :])
        psum = nl.ndarray((nl.par_dim(m), n), dtype=nl.float32, buffer=nl.psum)
        for i in nl.affine_range(k):
            psum[:, :] += nisa.nc_matmul(left[i], nl.load(b[i * 128:(i + 1) * 128, :]))
        out = nl.ndarray((m, n), dtype=a.dtype, buffer=nl.shared_hbm)
        nl.store(out, value=psum)
        return out

    a, b = numbers(256, 64), numbers(256, 32, seed=2)
    np.testing.assert_allclose(product(a, b), a.T @ b, rtol=1e-4, atol=1e-4)
    trace = product.trace
    assert [i.attributes["accumulate"] for i in trace.instructions() if i.kind == "nc_matmul"] == [0, 1]
    assert all(trace.buffers[i.outputs[0].buffer].alive for i in trace.instructions())  # results were named, not copied


def test_loop_reduce_and_statements_of_text():
    import neuronxcc.nki as nki
    import neuronxcc.nki.isa as nisa
    import neuronxcc.nki.language as nl

    @nki.jit
    def total(x):
        acc = nl.ndarray((nl.par_dim(128), 1), dtype=np.float32, buffer=nl.sbuf)
        for i in nl.affine_range(4):
            part = nl.ndarray((nl.par_dim(128), 1), dtype=np.float32, buffer=nl.sbuf)
            part[...] = nisa.tensor_reduce(np.add, nl.load(x[:, i * 16:(i + 1) * 16]), axis=(1,), dtype=np.float32)
            acc[...] = nl.loop_reduce(part, op=np.add, loop_indices=[i], dtype=np.float32)
            ' end loop i '
        out = nl.ndarray((128, 1), dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, acc)
        return out

    x = numbers(128, 64)
    np.testing.assert_allclose(total(x), x.sum(1, keepdims=True), rtol=1e-4, atol=1e-5)


def test_functions_of_several_instructions():
    import neuronxcc.nki as nki
    import neuronxcc.nki.language as nl

    @nki.jit
    def softmax(x):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.softmax(nl.load(x), axis=1))
        return out

    @nki.jit
    def matmul(x, y):
        out = nl.ndarray((x.shape[0], y.shape[1]), dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.matmul(nl.load(x), nl.load(y)))
        return out

    x, y = numbers(64, 128), numbers(128, 32, seed=2)
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(softmax(x), e / e.sum(1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(matmul(x, y), x @ y, rtol=1e-4, atol=1e-4)
    assert "nc_transpose" in matmul.trace.summary()


def test_grids_and_arguments_that_are_written():
    import neuronxcc.nki as nki
    import neuronxcc.nki.language as nl

    @nki.trace
    def copy(x, out):
        i = nl.program_id(0)
        nl.store(out[i], nl.load(x[i]))

    x, out = numbers(4, 8, 8), np.zeros((4, 8, 8), np.float32)
    nki.simulate_kernel(copy[4], x, out)
    np.testing.assert_array_equal(out, x)
    for grid, said in ((0, "0"), ((2, 0), "2x0"), (-1, "-1")):
        with pytest.raises(
            nki_ours.NkiError, match=f"test_nki_beta.py:[0-9]+: copy on a grid of {said}; expected 1 or more of each"
        ):
            nki.simulate_kernel(copy[grid], x, out)


def test_a_time_that_cannot_be_told_says_why(monkeypatch):
    import sys

    import neuronxcc.nki as nki
    import neuronxcc.nki.language as nl

    @nki.benchmark(warmup=1, iters=1)
    def copy(x):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.load(x))
        return out

    copy(numbers(8, 8))
    monkeypatch.setitem(sys.modules, "trellis.nki.timing", None)
    with pytest.raises(nki_ours.NkiError, match="needs trellis.nki.timing"):
        copy.benchmark_result.nc_latency.get_latency_percentile(50)


def test_a_predicate_in_a_tiles_brackets_masks_it():
    import neuronxcc.nki as nki
    import neuronxcc.nki.isa as nisa
    import neuronxcc.nki.language as nl

    @nki.jit
    def product(a, b, most):
        out = nl.ndarray((128, 256), dtype=nl.float32, buffer=nl.shared_hbm)
        left, right = nl.load(a), nl.load(b)
        place = nl.arange(256)[None, :]
        total = nl.zeros((128, 256), dtype=nl.float32, buffer=nl.psum)
        total += nisa.nc_matmul(left, right[place < most][most > 0])
        nl.store(out, value=total)
        return out

    a, b = numbers(128, 128), numbers(128, 256, seed=2)
    np.testing.assert_allclose(product(a, b, 256), a.T @ b, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(product(a, b, 200), a.T @ np.where(np.arange(256) < 200, b, 0), rtol=1e-4, atol=1e-4)


def test_a_tensor_of_a_negative_size_is_refused():
    import neuronxcc.nki as nki
    import neuronxcc.nki.language as nl

    @nki.jit
    def negative(x):
        return nl.ndarray((128, x.shape[1] - 65), dtype=x.dtype, buffer=nl.shared_hbm)

    with pytest.raises(nki_ours.NkiError, match=r"test_nki_beta.py:\d+: a tensor of \[128, -1\]"):
        negative(numbers(128, 64))


def test_vector_transposes_what_is_larger_than_its_blocks():
    import neuronxcc.nki as nki
    import neuronxcc.nki.isa as nisa
    import neuronxcc.nki.language as nl

    @nki.jit
    def turned(x):
        out = nl.ndarray((x.shape[1], x.shape[0]), dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nisa.nc_transpose(nl.load(x), engine=nisa.vector_engine))
        return out

    x = numbers(128, 64)
    with pytest.warns(nki_ours.NkiWarning, match="on the vector engine; expected at most 32 x 32"):
        np.testing.assert_array_equal(turned(x), x.T)
    assert turned.trace.engine[turned.trace.kind.index("nc_transpose")] == "vector"


def test_a_slice_that_begins_before_a_tensor_is_refused():
    import neuronxcc.nki as nki
    import neuronxcc.nki.language as nl

    @nki.jit
    def last(x, columns):
        tile = nl.ndarray((128, columns), dtype=x.dtype, buffer=nl.sbuf)
        return tile[:, columns - 1:columns]

    with pytest.raises(nki_ours.NkiError, match=r"test_nki_beta.py:\d+: \[-1:0\] of dimension 1 .* out of bounds"):
        last(numbers(128, 64), 0)


@pytest.mark.parametrize("dtype, width, kinds", [
    ("float32", 512, {"nc_matmul": 1}),  # who multiplies reads it in PSUM
    ("float32", 1280, {"nc_matmul": 3, "tensor_copy": 3}),  # more than a bank
    ("bfloat16", 64, {"nc_matmul": 1, "tensor_copy": 1}),  # PSUM has f32
])  # fmt: skip
@pytest.mark.parametrize("method", [True, False])
def test_a_row_is_broadcast_over_partitions_by_products(dtype, width, kinds, method):
    import neuronxcc.nki as nki
    import neuronxcc.nki.isa as nisa
    import neuronxcc.nki.language as nl

    @nki.jit
    def kernel(x, row):
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        tile = nl.load(row)
        rows = tile.broadcast_to(x.shape) if method else nl.broadcast_to(tile, shape=x.shape)
        nl.store(out, nisa.tensor_tensor(nl.load(x), rows, op=np.multiply))
        return out

    x, row = (numbers(rows, width).astype(getattr(nl, dtype)) for rows in (96, 1))
    np.testing.assert_array_equal(kernel(x, row), x * row)
    made = kernel.trace.summary()
    assert made == kinds | {"dma_copy": 3, "tensor_tensor": 1}


@pytest.mark.parametrize("columns", [1, 8])
def test_a_number_that_is_broadcast_keeps_its_bits(columns):
    import neuronxcc.nki as nki
    import neuronxcc.nki.language as nl

    @nki.jit
    def cleared(x, bits):
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.bitwise_and(nl.load(x), nl.invert(nl.load(bits))))
        return out

    x, bits = np.arange(128 * columns, dtype=np.uint32).reshape(128, columns), np.array([[2]], np.uint32)
    np.testing.assert_array_equal(cleared(x, bits), x & ~bits)  # ~2 is no f32


def test_a_sum_that_was_added_to_is_assigned_to_other_tiles():
    import neuronxcc.nki as nki
    import neuronxcc.nki.language as nl

    @nki.jit
    def sums(x):
        out = nl.ndarray((2, *x.shape), x.dtype, buffer=nl.shared_hbm)
        both = nl.ndarray((nl.par_dim(64), 2, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
        tile = nl.load(x)
        for k in nl.static_range(2):
            total = nl.zeros(x.shape, nl.float32, buffer=nl.psum)
            for _ in nl.static_range(k + 1):
                total += nl.matmul(tile, tile, transpose_x=True)
            both[:, k, :] = total
            nl.store(out[k], both[:, k, :])
        return out

    x = numbers(64, 64)
    np.testing.assert_allclose(sums(x), [x.T @ x, 2 * x.T @ x], rtol=1e-5)


def test_tiles_have_the_methods_of_neuronxcc():
    import neuronxcc.nki as nki
    import neuronxcc.nki.language as nl
    import neuronxcc.nki.typing as nt

    @nki.jit(experimental_flags="enable-mutable-parameter")
    def narrowed(x, kept: nt.tensor[nt.mutable]):
        out = nl.ndarray(x.shape, nl.bfloat16, buffer=nl.shared_hbm)
        tile = nl.load(x).assert_shape((128, 2, 8)).reshape(shape=(128, 16))
        narrow = tile.astype(nl.bfloat16)
        tile[...] = 0
        nl.store(out.reshape(shape=(128, 16)), narrow.as_tile())
        nl.store(kept, tile)
        return out

    x, kept = numbers(128, 2, 8), numbers(128, 16)
    np.testing.assert_array_equal(narrowed(x, kept), x.astype(nl.bfloat16))
    assert not kept.any()


def test_a_place_is_computed_by_a_function_of_named_parameters():
    import functools

    import neuronxcc.nki as nki
    import neuronxcc.nki.compiler as ncc
    import neuronxcc.nki.language as nl

    asked = []

    def bank(banks, idx, pdim_size, fdim_size):
        asked.append((idx, pdim_size, fdim_size))
        return banks[idx], 0, 0

    @nki.jit
    def kernel(x):
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        tiles = nl.ndarray((2, nl.par_dim(64), 64), dtype=np.float32,
                           buffer=ncc.psum.alloc(functools.partial(bank, banks={(0,): 1, (1,): 5})))  # fmt: skip
        tiles[1] = nl.matmul(nl.load(x), nl.load(x), transpose_x=True)
        nl.store(out, nl.copy(tiles[1]))
        return out

    x = numbers(64, 64)
    np.testing.assert_allclose(kernel(x), x.T @ x, rtol=1e-5)
    assert ((1,), 64, 256) in asked


def test_addresses_that_a_loops_body_counts_up_are_counted_once():
    import neuronxcc.nki as nki
    import neuronxcc.nki.compiler as ncc
    import neuronxcc.nki.language as nl

    @nki.jit
    def kernel(x):
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        at = 0
        for i in nl.affine_range(x.shape[0]):
            tiles = []
            for _ in nl.affine_range(2):
                tiles.append(nl.ndarray((nl.par_dim(128), 64), dtype=x.dtype, buffer=ncc.sbuf.mod_alloc(base_addr=at)))
                at += 256
            tiles[0][...] = nl.load(x[i])
            last = nl.ndarray((nl.par_dim(128), 64), dtype=x.dtype, buffer=ncc.sbuf.mod_alloc(base_addr=at))
            last[...] = nl.copy(tiles[0])
            nl.store(out[i], last)
        return out

    x = numbers(4, 128, 64)
    np.testing.assert_array_equal(kernel(x), x)
    assert {b.address[1] for b in kernel.trace.buffers if b.address is not None} <= {0, 256, 512}


def test_integers_are_divided_as_numpys():
    import neuronxcc.nki as nki
    import neuronxcc.nki.isa as nisa
    import neuronxcc.nki.language as nl

    @nki.jit
    def rows(x):
        out = nl.ndarray((128, 1), np.int32, buffer=nl.shared_hbm)
        places = nisa.iota(nl.arange(128)[:, None], dtype=nl.int32)
        nl.store(out, nl.floor(places / 10, dtype=nl.int32))
        return out

    np.testing.assert_array_equal(rows(numbers(1, 1)), np.arange(128)[:, None] // 10)


def test_an_element_of_a_tile_is_a_number_as_an_index():
    import neuronxcc.nki as nki
    import neuronxcc.nki.language as nl

    @nki.jit
    def chosen(weights, columns, places):
        out = nl.ndarray((128, 4), weights.dtype, buffer=nl.shared_hbm)
        place = nl.load(places)
        one, column = nl.load(weights[place[0, 1], :, :]), nl.load(columns[:, place[0, 1]])
        assert one.shape == (128, 32) and column.shape == (128, 1)
        nl.store(out, nl.matmul(one, nl.load(weights[place[0, 0], 0:32, 0:4])) + column)
        return out

    weights, columns = numbers(8, 128, 32), numbers(128, 8)
    np.testing.assert_allclose(chosen(weights, columns, np.array([[2, 5]], np.int32)),
                               weights[5] @ weights[2, :32, :4] + columns[:, 5:6], atol=1e-4)  # fmt: skip
