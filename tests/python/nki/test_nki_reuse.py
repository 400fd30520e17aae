"""What neuronxcc's middle end leaves out: repeated loads that fit, and what a loop computes anew from the same."""

import numpy as np
import pytest

nki_ours = pytest.importorskip("trellis.nki", reason="ml_dtypes is not installed")
from trellis.nki.timing.reuse import without_repetition  # noqa: E402

SBUF = 192 * 1024


def traced(kernel, *arrays):
    kernel.launch(arrays, {}, compute=False)
    return kernel.trace


@pytest.fixture(autouse=True)
def names():
    with nki_ours.as_nki(shadow=True):
        yield


def product(columns):
    """The second factor is loaded again for each row of tiles."""
    import neuronxcc.nki as nki
    import neuronxcc.nki.isa as nisa
    import neuronxcc.nki.language as nl

    @nki.jit
    def kernel(a, b):
        out = nl.ndarray((a.shape[1], b.shape[1]), a.dtype, buffer=nl.shared_hbm)
        for m in nl.affine_range(a.shape[1] // 128):
            left = nl.load(a[:, m * 128:(m + 1) * 128])
            for n in nl.affine_range(b.shape[1] // 512):
                right = nl.load(b[:, n * 512:(n + 1) * 512])
                nl.store(out[m * 128:(m + 1) * 128, n * 512:(n + 1) * 512], nisa.nc_matmul(left, right))
        return out

    return traced(kernel, np.zeros((128, 512), np.float32), np.zeros((128, columns), np.float32))


def loads(trace):
    return sum(kind == "dma_copy" and trace.buffers[trace.views[o[0]].buffer].space == "sbuf"
               for kind, o in zip(trace.kind, trace.outputs, strict=True))  # fmt: skip


def test_loads_that_fit_are_made_once():
    written = product(2048)
    left = without_repetition(written, SBUF)
    assert loads(written) == 4 + 4 * 4 and loads(left) == 4 + 4
    assert left.kind.count("nc_matmul") == written.kind.count("nc_matmul") == 16
    tiles = {left.views[i[1]].buffer for kind, i in zip(left.kind, left.inputs, strict=True) if kind == "nc_matmul"}
    assert len(tiles) == 4


def test_loads_that_do_not_fit_are_made_as_written():
    written = product(512 * 128)
    assert loads(without_repetition(written, SBUF)) == loads(written)


def test_what_does_not_depend_on_the_inner_loop_is_computed_once():
    import neuronxcc.nki as nki
    import neuronxcc.nki.isa as nisa
    import neuronxcc.nki.language as nl

    @nki.jit
    def kernel(x, y, z):
        out = nl.ndarray((8, *x.shape), x.dtype, buffer=nl.shared_hbm)
        a, b = nl.load(x), nl.load(y)
        changing = nl.load(x)
        for i in nl.affine_range(8):
            fixed = nisa.tensor_tensor(a, b, op=nl.multiply)
            other = nisa.tensor_tensor(changing, b, op=nl.multiply)
            changing[...] = nisa.tensor_tensor(fixed, other, op=nl.add)
            nl.store(out[i], nisa.tensor_tensor(changing, nl.load(z[i]), op=nl.add))
        return out

    x = np.zeros((128, 64), np.float32)
    written = traced(kernel, x, x + 1, np.zeros((8, 128, 64), np.float32))
    left = without_repetition(written, SBUF)
    assert written.kind.count("tensor_tensor") == 32 and left.kind.count("tensor_tensor") == 25
    assert len(left) == len(written) - 7


def test_two_lines_that_load_the_same_load_it_once():
    import neuronxcc.nki as nki
    import neuronxcc.nki.isa as nisa
    import neuronxcc.nki.language as nl

    @nki.jit
    def turned(x, y):
        out = nl.ndarray((2, *x.shape), x.dtype, buffer=nl.shared_hbm)
        first = nisa.tensor_tensor(nl.load(x), nl.load(y), op=nl.multiply)
        second = nisa.tensor_tensor(nl.load(x), nl.load(y), op=nl.add)
        nl.store(out[0], first)
        nl.store(out[1], second)
        return out

    x = np.zeros((128, 512), np.float32)
    written = traced(turned, x, x + 1)
    left = without_repetition(written, SBUF)
    assert loads(written) == 4 and loads(left) == 2
    assert left.kind.count("tensor_tensor") == 2


def test_only_elements_of_two_bytes_are_transposed_by_a_transfer():
    import ml_dtypes
    import neuronxcc.nki as nki
    import neuronxcc.nki.language as nl

    @nki.jit
    def kernel(x):
        out = nl.ndarray((64, 256), x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.load_transpose2d(x[0:256, 0:64]))
        return out

    x = np.arange(256 * 64, dtype=np.float32).reshape(256, 64)
    kinds = {dtype: traced(kernel, x.astype(dtype)).kind for dtype in (np.float32, ml_dtypes.bfloat16)}
    assert kinds[np.float32].count("nc_transpose") == 2 and "dma_transpose" not in kinds[np.float32]
    assert kinds[ml_dtypes.bfloat16].count("dma_transpose") == 1
    assert np.array_equal(kernel(x), x.T)
