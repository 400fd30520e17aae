"""What nki.isa's pages ask of operands, engines, views and chips: refused by line, or, with --rules device, warned
of."""

import re

import numpy as np
import pytest

nki = pytest.importorskip("trellis.nki", reason="ml_dtypes is not installed")
nl, nisa = nki.language, nki.isa

X = np.ones((2, 2), np.float32)


def refused(body, chip="trn2"):
    """Why a kernel is refused; by the other rules it is warned of, and runs."""
    with nki.as_nki(chip=chip), pytest.raises(nki.NkiError) as e:
        nki.jit(body)(X)
    assert re.match(rf"{re.escape(__file__)}:\d+: ", str(e.value)), str(e.value)
    text = str(e.value).partition(": ")[2]
    with nki.as_nki(chip=chip, rules="device"), pytest.warns(nki.NkiWarning, match=re.escape(text)):
        nki.jit(body)(X)
    return text


def tile(*shape, dtype=nl.float32, buffer=nl.sbuf):
    made = nl.ndarray(shape, dtype, buffer=buffer)
    nisa.memset(made, 0)
    return made


def test_operands_have_as_many_partitions_and_elements():
    text = refused(lambda x: nisa.tensor_tensor(tile(128, 8), tile(128, 8), tile(1, 8), op=nl.add))
    assert "data2 tensor([1, 8] float32 in sbuf); expected as many partitions and as many elements in each" in text
    assert "(nki.isa.tensor_tensor)" in text
    refused(lambda x: nisa.tensor_tensor(tile(128, 8), tile(128, 8), tile(128, 1), op=nl.add))
    refused(lambda x: nisa.tensor_copy(tile(64, 16), tile(128, 8)))
    refused(lambda x: nisa.tensor_copy(tile(128, 8), tile(1, 8)))
    refused(lambda x: nisa.activation(dst=tile(16, 4), op=nl.exp, data=tile(8, 8)))

    def legal(x):
        nisa.tensor_copy(tile(128, 2, 4), tile(128, 8))
        nisa.tensor_tensor(tile(128, 8), tile(128, 8), tile(128, 1).broadcast(1, 8), op=nl.add)
        nisa.activation(dst=tile(128, 8), op=nl.exp, data=tile(128, 2, 4), bias=tile(128, 1))

    nki.jit(legal)(X)


def test_a_product_has_the_shape_of_its_operands():
    def product(x):
        nisa.nc_matmul(tile(64, 32, buffer=nl.psum), tile(128, 32), tile(128, 64))

    assert "expected 32 partitions of 64 elements (nki.isa.nc_matmul)" in refused(product)


@pytest.mark.parametrize("view", [lambda t: t.permute((1, 0)), lambda t: t.reshape((64, 256)),
                                  lambda t: t.expand_dim(0), lambda t: t.flatten_dims(0, 1),
                                  lambda t: t[0:1].broadcast(0, 128),
                                  lambda t: t[0:1].squeeze_dim(0), lambda t: t.reshape_dim(0, (2, 64))])  # fmt: skip
def test_views_on_chip_keep_the_partitions(view):
    assert "whose first dimension is of partitions" in refused(lambda x: view(tile(128, 128)))


def test_views_in_hbm_and_of_free_dimensions_may_move_all_of_them():
    def legal(x):
        assert x.permute((1, 0)).shape == x.reshape((2, 2)).shape == (2, 2) and x.expand_dim(0).shape == (1, 2, 2)
        free = tile(4, 2, 6).reshape((4, 12)).expand_dim(1).permute((0, 2, 1)).squeeze_dim(2)
        assert free.reshape_dim(1, (3, 4)).flatten_dims(1, 2).shape == (4, 12)

        assert x[0:1, 0:1].reshape(()).reshape((1, 1)).shape == (1, 1)

    nki.jit(legal)(X)


@pytest.mark.parametrize("work", [
    lambda p: nisa.tensor_copy(tile(4, 4), p, engine=nisa.engine.gpsimd), lambda p: nisa.iota(p, [[1, 4]]),
    lambda p: nisa.affine_select(p, [[1, 4]], 0, tile(4, 4), 0.0),
    lambda p: nisa.tensor_tensor(tile(4, 4), p, tile(4, 4), op=nl.power)])  # fmt: skip
def test_gpsimd_has_no_access_to_psum(work):
    text = refused(lambda x: work(tile(4, 4, buffer=nl.psum)))
    assert "gpsimd" in text


def test_types_of_results_of_the_array():
    def product(x):
        nisa.nc_matmul(tile(8, 8, dtype=nl.bfloat16, buffer=nl.psum), tile(128, 8), tile(128, 8))

    assert "on trn2; expected float32, and from NeuronCore-v4 on bfloat16" in refused(product)
    with nki.as_nki(chip="trn3"):
        nki.jit(product)(X)
    assert "expected one type (nki.isa.nc_transpose)" in refused(
        lambda x: nisa.nc_transpose(tile(64, 64, buffer=nl.psum), tile(64, 64, dtype=nl.bfloat16)))


@pytest.mark.parametrize("name,chip,since,work", [
    ("activate2", "trn2", "v4",
     lambda t: nisa.activate2(dst=t, op=nl.exp, data=t, imm0=1.0, imm1=0.0, op0=nl.multiply, op1=nl.add)),
    ("exponential", "trn2", "v4", lambda t: nisa.exponential(dst=t, src=t)),
    ("rand2", "trn2", "v4", lambda t: nisa.rand2(dst=t, min=0.0, max=1.0)),
    ("rand_get_state", "trn1", "v3 and later", lambda t: nisa.rand_get_state(dst=tile(4, 6, dtype=nl.uint32))),
])  # fmt: skip
def test_instructions_of_later_chips(name, chip, since, work):
    with nki.as_nki(chip=chip), pytest.warns(nki.NkiWarning, match=f"{name} on {chip}; NeuronCore-{since} has it"):
        nki.jit(lambda x: work(tile(4, 4)))(X)


@pytest.mark.parametrize("cores", [3, 4, (2, 2), (1, 2)])
def test_a_logical_core_has_one_or_two(cores):
    with pytest.raises(nki.NkiError, match="cores; expected kernel.1. or kernel.2."):
        nki.jit(lambda x: None)[cores](X)


@pytest.mark.parametrize("pattern,offset", [
    ([[8, 127], [1, 9]], 0), ([[8, 127], [1, 8]], 4), ([[8, 128], [2, 4]], 2), ([[8, 64], [-1, 8]], 0),
    ([[8, 64], [-1, 8]], 518), ([[8, 128], [-1, 8]], 8), ([[8, 129], [1, 8]], 0), ([[8, 2], [4, 2], [1, 5]], 0),
])  # fmt: skip
def test_patterns_stay_in_their_partition(pattern, offset):
    def kernel(x):
        tile(128, 8).ap(pattern, offset=offset)

    with pytest.raises(nki.NkiError, match=r"test_nki_operands.py:\d+: pattern .* out of bounds"):
        nki.jit(kernel)(X)


def test_patterns_that_end_with_their_partition():
    def kernel(x):
        t = nl.ndarray((128, 8), nl.float32)
        nisa.iota(t, [[1, 8]], channel_multiplier=8)
        views = [t.ap([[8, 128], [1, 8]]), t.ap([[8, 127], [1, 4]], offset=4), t.ap([[8, 128], [-1, 8]], offset=7),
                 t.ap([[8, 4], [4, 2], [1, 4]], offset=8), t.ap([[16, 64], [1, 8]])]  # fmt: skip
        seen.extend(v.array.copy() for v in views)

    seen = []
    nki.jit(kernel)(X)
    whole = np.arange(1024).reshape(128, 8)
    for got, wanted in zip(
        seen, [whole, whole[:127, 4:], whole[:, ::-1], whole[1:5].reshape(4, 2, 4), whole[::2]], strict=True
    ):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("part,text", [
    (lambda t: t[:, 6:6], "[6:6]"), (lambda t: t[:, 6:4], "[6:4]"), (lambda t: t[:, nl.ds(4, 0)], "[4:4]"),
    (lambda t: t[:, ::-1], "[0:8:-1]"), (lambda t: t.slice(1, 7, 0, -1), "[7:0:-1]"),
    (lambda t: t[4:4], "[4:4]")])  # fmt: skip
def test_slices_have_elements_and_go_forward(part, text):
    assert f"{text} of dimension" in refused(lambda x: part(tile(8, 8)))
    with nki.as_nki(rules="device"), pytest.warns(nki.NkiWarning, match="expected a start before the end"):
        nki.jit(lambda x: part(x))(np.ones((8, 8), np.float32))


def test_what_is_read_backwards_has_its_rows_and_its_time():
    with nki.as_nki(shadow=True):
        import neuronxcc.nki as beta
        import neuronxcc.nki.language as language

        def kernel(x, sign, rows):
            whole = language.load(x)
            ip, jf = language.arange(128)[:, None], language.arange(512)[None, :]
            out = language.ndarray(x.shape, dtype=x.dtype, buffer=language.shared_hbm)
            language.store(out, language.copy(whole[127 - ip if rows else ip, 511 - jf if sign < 0 else jf]))
            return out

        x, found = np.arange(128 * 512, dtype=np.float32).reshape(128, 512), []
        for sign, rows in ((1, False), (-1, False), (-1, True)):
            run = beta.jit(kernel)
            np.testing.assert_array_equal(run(x, sign, rows), x[:: -1 if rows else 1, ::sign])
            found.append((run.trace.views[run.trace.inputs[1][0]], run.timing().seconds))
    assert [(v.first_row, v.rows, v.offset, v.pattern) for v, _ in found] == [
        (0, 128, 0, ((512, 1),)), (0, 128, 511, ((512, -1),)), (0, 128, 511, ((512, -1),))]  # fmt: skip
    assert len({seconds for _, seconds in found}) == 1
