"""The order that a kernel asks for, and loops that are told from some of their iterations."""

import numpy as np
import pytest

nki_ours = pytest.importorskip("trellis.nki", reason="ml_dtypes is not installed")
from trellis.nki.timing import flatten, model  # noqa: E402


@pytest.fixture(autouse=True)
def names():
    with nki_ours.as_nki(shadow=True):
        yield


def three_exponentials():
    import nki
    import nki.isa as nisa
    import nki.language as nl

    @nki.jit
    def kernel(x):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        for i in range(3):
            tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile, src=x[:, i * 512:(i + 1) * 512])
            nisa.activation(dst=tile, data=tile, op=nl.exp, name=f"act{i}")
            nisa.dma_copy(dst=out[:, i * 512:(i + 1) * 512], src=tile)
        return out

    return kernel


def order_of(trace):
    order = model.outcome(flatten.draft_of(trace), trace, "trn2", model.CENTRE).assembled.order.tolist()
    return [at for at in order if trace.kind[at] == "activation"]


def test_a_schedule_is_kept():
    kernel, x = three_exponentials(), np.ones((128, 1536), np.float32)
    kernel(x)
    assert order_of(kernel.trace) == [1, 4, 7]
    other = kernel.with_schedule([("act0", ["act1", "act2"]), ("act1", "act2")])
    np.testing.assert_allclose(other(x), np.exp(x), rtol=1e-6)
    assert order_of(other.trace) == [7, 4, 1]
    assert other.trace.after and not other.trace.depends
    waiting = kernel.with_schedule([("act0", "act2")], kind="runtime")
    waiting(x)
    assert waiting.trace.depends == [(1, 7)]


def test_a_schedule_names_what_is_there():
    kernel, x = three_exponentials(), np.ones((128, 1536), np.float32)
    with pytest.raises(
        nki_ours.NkiError, match="'act7', which no instruction of kernel is called; it has act0, act1, act2"
    ):
        kernel.with_schedule([("act7", "act0")])(x)
    with pytest.raises(nki_ours.NkiError, match="expected pairs .later, earlier. of instructions' names"):
        kernel.with_schedule(["act0"])


def test_depends_on_has_a_kind():
    import nki
    import nki.isa as nisa
    import nki.language as nl

    @nki.jit
    def kernel(x):
        tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
        first = nisa.dma_copy(dst=tile, src=x)
        nisa.memset(dst=nl.ndarray((128, 8), dtype=x.dtype, buffer=nl.sbuf), value=0).depends_on(
            first, kind=nisa.dependency.schedule)
        return tile

    kernel(np.ones((128, 512), np.float32))
    assert (kernel.trace.after, kernel.trace.depends) == ([(1, 0)], [])


def masked_product(rows, columns):
    import neuronxcc.nki as nki
    import neuronxcc.nki.language as nl

    @nki.jit
    def kernel(a, b):
        out = nl.ndarray((rows, columns), dtype=a.dtype, buffer=nl.shared_hbm)
        i_p, i_k, i_n = nl.arange(128)[:, None], nl.arange(128)[None, :], nl.arange(256)[None, :]
        for m in nl.affine_range(-(-rows // 128)):
            total = nl.zeros((nl.par_dim(128), 256), nl.float32, buffer=nl.psum)
            for k in nl.affine_range(a.shape[1] // 128):
                left = nl.load(a[m * 128 + i_p, k * 128 + i_k], mask=m * 128 + i_p < rows)
                total += nl.matmul(left, nl.load(b[k * 128 + i_p, i_n]))
            nl.store(out[m * 128 + i_p, i_n], value=total, mask=m * 128 + i_p < rows)
        return out

    return kernel


def test_iterations_that_follow_from_others_are_those_that_would_be_traced():
    rows, k, columns = 1_300, 4_096, 256  # the last iteration is cut by its mask
    arrays = np.zeros((rows, k), np.float32), np.zeros((k, columns), np.float32)
    kernel = masked_product(rows, columns)
    kernel.launch(arrays, {}, compute=False)
    told = kernel.trace
    assert kernel.session.repeated
    kernel.launch(arrays, {}, compute=False, repeats=False)
    all_traced = kernel.trace
    assert not kernel.session.repeated and len(told) == len(all_traced)
    for column in ("kind", "line", "attributes", "names", "allowed", "begins"):
        assert getattr(told, column) == getattr(all_traced, column)
    assert sum(told.begins) == 11  # each iteration of the loop around the products, which is long
    same = {}
    for mine, theirs in zip(zip(told.outputs, told.inputs, strict=True),
                            zip(all_traced.outputs, all_traced.inputs, strict=True), strict=True):
        for a, b in zip(sum(mine, ()), sum(theirs, ()), strict=True):
            one, other = told.views[a], all_traced.views[b]
            assert one[1:] == other[1:]
            assert same.setdefault(one.buffer, other.buffer) == other.buffer
    assert len(set(same.values())) == len(same)
    assert nki_ours.timing.time_of(told).seconds == nki_ours.timing.time_of(all_traced).seconds


def test_a_loop_that_fills_a_list_is_traced_whole():
    import neuronxcc.nki as nki
    import neuronxcc.nki.language as nl

    @nki.jit
    def kernel(x):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        tiles = []
        for i in nl.affine_range(16):
            tiles.append(nl.load(x[:, i * 64:(i + 1) * 64]))
        for i in nl.affine_range(16):
            nl.store(out[:, i * 64:(i + 1) * 64], value=tiles[i])
        return out

    kernel.launch((np.zeros((128, 1024), np.float32),), {}, compute=False)
    assert len(kernel.trace) == 32 and not kernel.session.repeated


def test_engines_that_a_compiler_chooses():
    import nki
    import nki.isa as nisa
    import nki.language as nl

    @nki.jit
    def kernel(x):
        tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x)
        nisa.tensor_tensor(dst=tile, data1=tile, data2=tile, op=nl.add)
        nisa.tensor_tensor(dst=tile, data1=tile, data2=tile, op=nl.add, engine=nisa.engine.gpsimd)
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.rsqrt, operand0=0.0)
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=tile)
        return out

    kernel(np.ones((128, 512), np.float32))
    allowed = kernel.trace.allowed[1:5]
    assert allowed[0] == ("vector",) and "gpsimd" in allowed[1]  # GpSimd's is asked for, but for integers
    assert allowed[2] == ("vector", "scalar") and "gpsimd" in allowed[3]  # and of tensor_scalar, but for rsqrt


def small_loads():
    import neuronxcc.nki as nki
    import neuronxcc.nki.language as nl

    @nki.jit
    def kernel(x):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        rows, columns = nl.arange(128)[:, None], nl.arange(64)[None, :]
        for i in nl.affine_range(64):
            tile = nl.load(x[rows, i * 64 + columns])
            nl.store(out[rows, i * 64 + columns], value=tile * 2)
        return out

    return kernel


def test_transfers_of_neuronxcc_take_turns_on_two_queues_of_an_engine():
    kernel = small_loads()
    kernel(np.ones((128, 4096), np.float32))
    rings = {}
    columns = flatten._Columns(kernel.trace, model.CENTRE.rings)
    for at in range(len(kernel.trace)):
        columns.add(at, False)
        to_hbm = kernel.trace.buffers[kernel.trace.views[kernel.trace.outputs[at][0]].buffer].space == "hbm"
        if kernel.trace.kind[at] == "dma_copy":
            rings.setdefault(to_hbm, []).append(columns.rows[-1][4])
    for used in rings.values():
        assert len(set(used)) == 2 and used == used[:2] * (len(used) // 2)
    assert not set(rings[True]) & set(rings[False])


def test_descriptors_of_neuronxcc_are_generated_on_trainium_2():
    from trellis.nki.timing import time_of

    kernel = small_loads()
    kernel(np.ones((128, 4096), np.float32))
    ready = time_of(kernel.trace, "trn2", (("dma.generate", "0 ns"),)).seconds
    assert time_of(kernel.trace, "trn2").seconds > 1.5 * ready
    on_trn1 = [time_of(kernel.trace, "trn1", changes).seconds for changes in ((), (("dma.generate", "0 ns"),))]
    assert on_trn1[0] == on_trn1[1]
