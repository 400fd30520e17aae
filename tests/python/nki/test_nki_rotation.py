"""Tiles that are filled again and again: the back end rotates their addresses, where a kernel gives none."""

import numpy as np

import trellis.nki as nki
from trellis.nki.timing import time_of
from trellis.nki.timing.rotate import rotated

nl, nisa = nki.language, nki.isa


@nki.jit
def kept(x, steps, address=None):
    """One tile for all loads."""
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 512), x.dtype, buffer=nl.sbuf, address=address)
    for i in range(steps):
        done = nl.ndarray((128, 512), x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[:, i * 512:(i + 1) * 512])
        nisa.tensor_scalar(dst=done, data=tile, op0=nl.multiply, operand0=2.0)
        nisa.dma_copy(dst=out[:, i * 512:(i + 1) * 512], src=done)
    return out


@nki.jit
def fresh(x, steps):
    """A tile for each load."""
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    for i in range(steps):
        tile = nl.ndarray((128, 512), x.dtype, buffer=nl.sbuf)
        done = nl.ndarray((128, 512), x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[:, i * 512:(i + 1) * 512])
        nisa.tensor_scalar(dst=done, data=tile, op0=nl.multiply, operand0=2.0)
        nisa.dma_copy(dst=out[:, i * 512:(i + 1) * 512], src=done)
    return out


X = np.ones((128, 16 * 512), np.float32)


def buffers_of(trace):
    """The tiles that the loads of a kernel fill."""
    return {trace.views[v].buffer for at, kind in enumerate(trace.kind) if kind == "dma_copy"
            for v in trace.outputs[at] if trace.buffers[trace.views[v].buffer].space == "sbuf"}


def test_a_tile_that_is_filled_anew_takes_no_longer_than_a_new_one():
    kept(X, 16)
    fresh(X, 16)
    assert len(buffers_of(kept.trace)) == 1 and len(buffers_of(rotated(kept.trace))) == 16
    assert time_of(kept.trace).seconds == time_of(fresh.trace).seconds


def test_an_address_is_kept_and_the_next_load_waits():
    kept(X, 16, address=(0, 0))
    assert len(buffers_of(rotated(kept.trace))) == 1
    fresh(X, 16)
    assert time_of(kept.trace).seconds > 1.3 * time_of(fresh.trace).seconds


def test_what_is_left_in_a_tile_stays():
    @nki.jit
    def partly(x):
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        tile = nl.ndarray((128, 512), x.dtype, buffer=nl.sbuf)
        for i in range(4):
            nisa.dma_copy(dst=tile[:, i * 128:(i + 1) * 128], src=x[:, i * 128:(i + 1) * 128])
        nisa.tensor_tensor(dst=tile, data1=tile, data2=tile, op=nl.add)  # in place
        nisa.tensor_copy_predicated(dst=tile, src=tile, predicate=tile.view(nl.uint32))
        nisa.dma_copy(dst=out, src=tile)
        return out

    partly(np.ones((128, 512), np.float32))
    assert rotated(partly.trace) is partly.trace


def test_a_sum_of_products_stays_where_it_is():
    @nki.jit
    def product(a, b):
        out = nl.ndarray((2, 128, 512), nl.float32, buffer=nl.shared_hbm)
        total = nl.ndarray((128, 512), nl.float32, buffer=nl.psum)
        left, right = nl.ndarray(a.shape, a.dtype, buffer=nl.sbuf), nl.ndarray(b.shape, b.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=left, src=a)
        nisa.dma_copy(dst=right, src=b)
        for i in range(2):
            for k in range(3):
                nisa.nc_matmul(dst=total, stationary=left, moving=right, accumulate=k > 0)
            done = nl.ndarray((128, 512), nl.float32, buffer=nl.sbuf)
            nisa.tensor_copy(dst=done, src=total)
            nisa.dma_copy(dst=out[i], src=done)
        return out

    a, b = np.ones((128, 128), np.float32), np.ones((128, 512), np.float32)
    np.testing.assert_allclose(product(a, b), np.full((2, 128, 512), 384.0))
    t = rotated(product.trace)
    places = [t.views[t.outputs[at][0]].buffer for at, kind in enumerate(t.kind) if kind == "nc_matmul"]
    assert places[:3] == [places[0]] * 3 and places[3:] == [places[3]] * 3 and places[0] != places[3]


def test_a_transpose_beyond_32_x_32_is_the_tensor_engines():
    @nki.jit
    def turned(x):
        out = nl.ndarray((x.shape[1], x.shape[0]), x.dtype, buffer=nl.shared_hbm)
        tile, done = nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf), nl.ndarray(out.shape, x.dtype, buffer=nl.sbuf)
        other = nl.ndarray(out.shape, x.dtype, buffer=nl.psum)
        nisa.dma_copy(dst=tile, src=x)
        nisa.nc_transpose(dst=other, data=tile)
        nisa.tensor_copy(dst=done, src=other)
        nisa.dma_copy(dst=out, src=done)
        return out

    for size, engines in ((128, ("tensor",)), (32, ("tensor", "vector"))):
        for rules in ("strict", "device"):
            with nki.as_nki(rules=rules):
                turned(np.ones((size, size), np.float32))
            assert turned.trace.allowed[turned.trace.kind.index("nc_transpose")] == engines
