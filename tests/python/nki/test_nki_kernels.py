"""Kernels of each dialect: what they compute, and what they record."""

import numpy as np
import pytest

nki = pytest.importorskip("trellis.nki", reason="ml_dtypes is not installed")
nl, nisa = nki.language, nki.isa


@nki.jit
def product(a, b):
    """a transposed times b, in tiles."""
    (k, m), n = a.shape, b.shape[1]
    out = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.shared_hbm)
    psum = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.psum)
    for i in nl.affine_range(k // 128):
        left, right = nl.ndarray((128, m), a.dtype), nl.ndarray((128, n), b.dtype)
        nisa.dma_copy(dst=left, src=a[i * 128 : (i + 1) * 128, :])
        nisa.dma_copy(dst=right, src=b[i * 128 : (i + 1) * 128, :])
        nisa.nc_matmul(psum, left, right)
    tile = nl.ndarray((m, n), nl.float32)
    nisa.tensor_copy(tile, psum)
    nisa.dma_copy(dst=out, src=tile)
    return out


def numbers(*shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_product_accumulates_in_psum():
    a, b = numbers(384, 128), numbers(384, 256, seed=2)
    np.testing.assert_allclose(product(a, b), a.T @ b, rtol=1e-4, atol=1e-4)


def test_first_product_overwrites_and_later_ones_add():
    product(numbers(256, 128), numbers(256, 128))
    adds = [i.attributes["accumulate"] for i in product.trace.instructions() if i.kind == "nc_matmul"]
    assert adds == [0, 1]


def test_trace_has_each_line_and_each_tile_of_a_loop():
    product(numbers(256, 128), numbers(256, 128))
    trace = product.trace
    assert trace.summary() == {"dma_copy": 5, "nc_matmul": 2, "tensor_copy": 1}
    matmul = next(i for i in trace.instructions() if i.kind == "nc_matmul")
    file, number, text = trace.lines[matmul.line]
    assert file == __file__ and "nc_matmul(psum" in text and number > 0
    tiles = [b for b in trace.buffers if b.space == "sbuf"]
    assert len({b.index for b in tiles}) == 5 and len({b.site for b in tiles}) == 2  # left and right share a line
    assert matmul.inputs[1].rows == 128 and matmul.inputs[1].pattern == ((128, 1),)


def test_bf16_arrays_in_and_out():
    a = numbers(128, 128).astype(nl.bfloat16)
    result = product(a, a)
    np.testing.assert_allclose(result, a.astype(np.float32).T @ a.astype(np.float32), rtol=1e-4, atol=1e-4)


def test_without_arithmetic_the_trace_is_the_same():
    product(numbers(256, 128), numbers(256, 128))
    full = product.trace
    product.launch((numbers(256, 128), numbers(256, 128)), {}, compute=False)
    assert product.trace.kind == full.kind and product.trace.views == full.views
    assert product.trace.attributes == full.attributes


def sums(write, product):
    """What each of three products after `write` does, with arithmetic and without it."""

    @nki.jit
    def kernel(x):
        psum, a = nl.ndarray((4, 4), nl.float32, buffer=nl.psum), nl.ndarray((32, 4), nl.bfloat16)
        nisa.memset(a, 1.0)
        write(psum)
        for _ in range(3):
            product(psum, a)

    found = []
    for compute in (True, False):
        kernel.launch((numbers(2, 2),), {}, compute=compute, chip="trn3")
        found.append([a["accumulate"] for a in kernel.trace.attributes if "accumulate" in a])
    assert found[0] == found[1]
    return found[0]


def by_blocks(psum, a):
    elements, scales = nl.ndarray((32, 4), nl.float8_e4m3fn_x4), nl.ndarray((32, 4), nl.uint8)
    wide = nl.ndarray((32, 16), nl.bfloat16)
    for tile in (wide, scales):
        nisa.memset(tile, 1)
    nisa.quantize_mx(dst=elements, src=wide, dst_scale=scales)
    nisa.nc_matmul_mx(psum, elements, elements, scales, scales)


def test_without_arithmetic_products_add_to_the_same():
    for product in (lambda psum, a: nisa.nc_matmul(psum, a, a), by_blocks):
        assert sums(lambda psum: None, product) == [0, 1, 1]
        assert sums(lambda psum: nisa.memset(psum, 0.0), product) == [1, 1, 1]


def test_products_into_psum_that_is_seen_as_another_type():
    @nki.jit
    def kernel(x):
        psum, a = nl.ndarray((128, 512), nl.float32, buffer=nl.psum), nl.load(x)
        half, out = psum.view(nl.bfloat16), nl.ndarray((8, 8), nl.float32, buffer=nl.shared_hbm)
        seen.append(half.touched().any())
        nisa.nc_matmul(psum[0:8, 0:8], a, a)
        seen.extend((half[0:8, 0:16].touched().all(), half[0:8, 16:].touched().any(), half[8:].touched().any()))
        nisa.memset(half[0:8, 16:17], 0.0)  # a half of the next element
        seen.extend((half[0:8, 16:17].touched().all(), psum[0:8, 8:9].touched().any(), psum[0:8, 0:8].touched().all()))
        nisa.nc_matmul(psum[0:8, 0:8], a, a)
        copy = nl.ndarray((8, 8), nl.float32)
        nisa.tensor_copy(copy, psum[0:8, 0:8])
        nisa.dma_copy(dst=out, src=copy)
        return out

    seen = []
    a = numbers(128, 8)
    np.testing.assert_allclose(kernel(a), 2 * (a.T @ a), rtol=1e-5)
    assert seen == [False, True, False, False, True, False, True]


def test_two_cores_meet_and_exchange():
    @nki.jit
    def swap(x):
        me = nl.program_id(0)
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        mine, other = nl.ndarray((128, 4), x.dtype), nl.ndarray((128, 4), x.dtype)
        nisa.dma_copy(dst=mine, src=x[me])
        nisa.sendrecv(src=mine, dst=other, send_to_rank=1 - me, recv_from_rank=1 - me, pipe_id=0)
        nisa.dma_copy(dst=out[me], src=other)
        nisa.core_barrier(out, (0, 1))
        return out

    x = numbers(2, 128, 4)
    np.testing.assert_array_equal(swap[2](x), x[::-1])


def test_cores_that_wait_for_what_nobody_sends_are_refused():
    @nki.jit
    def apart(x):
        me = nl.program_id(0)
        mine, other = nl.ndarray((128, 64), nl.float32), nl.ndarray((128, 64), nl.float32)
        nisa.dma_copy(dst=mine, src=x[0:128, 0:64])
        nisa.sendrecv(src=mine, dst=other, send_to_rank=1 - me, recv_from_rank=1 - me, pipe_id=me)
        return other

    with pytest.raises(Exception, match="every core waits for another"):
        apart[2](numbers(128, 64))



def test_loops_by_registers():
    @nki.jit
    def total(x, count):
        out = nl.ndarray((1, 1), nl.float32, buffer=nl.shared_hbm)
        n, acc, one = nl.ndarray((1, 1), nl.int32), nl.zeros((1, 1), nl.float32), nl.ndarray((1, 1), nl.float32)
        nisa.dma_copy(dst=n, src=count)
        register = nisa.register_alloc()
        nisa.register_load(register, n)

        def body(i):
            nisa.dma_copy(dst=one, src=x.ap([[1, 1], [1, 1]], scalar_offset=i, indirect_dim=1))
            nisa.tensor_tensor(dst=acc, data1=acc, data2=one, op=nl.add)

        nl.fori_loop(0, register, body)
        nisa.dma_copy(dst=out, src=acc)
        return out

    x = numbers(1, 16)
    np.testing.assert_allclose(total(x, np.array([[5]], np.int32)), [[x[0, :5].sum()]], rtol=1e-6)


def test_views_move_nothing():
    @nki.jit
    def shuffled(x):
        tile = nl.ndarray((128, 24), x.dtype)
        nisa.dma_copy(dst=tile, src=x)
        out = nl.ndarray((128, 6, 4), x.dtype, buffer=nl.shared_hbm)
        turned = tile.rearrange(("p", ("a", "b")), ("p", "b", "a"), {"a": 4})
        copy = nl.ndarray((128, 6, 4), x.dtype)
        nisa.tensor_copy(copy, turned)
        nisa.dma_copy(dst=out, src=copy)
        return out

    x = numbers(128, 24)
    np.testing.assert_array_equal(shuffled(x), x.reshape(128, 4, 6).transpose(0, 2, 1))


@pytest.mark.parametrize("op,golden", [("add", np.add), (np.multiply, np.multiply), (nl.maximum, np.maximum),
                                       (nl.max, np.maximum), (np.max, np.maximum)])
def test_operators_by_any_of_their_names(op, golden):
    @nki.jit
    def both(x, y):
        a, b, out = nl.ndarray(x.shape, x.dtype), nl.ndarray(x.shape, x.dtype), nl.ndarray(
            x.shape, x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=a, src=x)
        nisa.dma_copy(dst=b, src=y)
        nisa.tensor_tensor(dst=a, data1=a, data2=b, op=op)
        nisa.dma_copy(dst=out, src=a)
        return out

    x, y = numbers(8, 8), numbers(8, 8, seed=3)
    np.testing.assert_array_equal(both(x, y), golden(x, y))
