"""What kernels may not do: refused with the kernel's own line and the rule's source."""

import re
import warnings

import numpy as np
import pytest

nki = pytest.importorskip("trellis.nki", reason="ml_dtypes is not installed")
nl, nisa = nki.language, nki.isa


def refused(body, *arrays):
    with pytest.raises(nki.NkiError) as e:
        nki.jit(body)(*arrays)
    text = str(e.value)
    assert re.match(rf"{re.escape(__file__)}:\d+: ", text), text
    return text


def test_partitions():
    text = refused(lambda x: nl.ndarray((256, 4), nl.float32), np.zeros((2, 2), np.float32))
    assert "256 partitions; expected at most 128" in text


def test_a_tile_that_is_larger_than_sbuf():
    text = refused(lambda x: nl.ndarray((128, 60000), nl.float32), np.zeros((2, 2), np.float32))
    assert "240,000 bytes a partition; expected at most 229,376 on trn2" in text and "trainium2_arch.rst" in text


def test_tiles_that_together_are_larger_than_sbuf():
    def kernel(x):
        tiles = [nl.ndarray((128, 30000), nl.float32) for _ in range(3)]
        for t in tiles:
            nisa.memset(t, 0.0)
        for t in tiles:
            nisa.tensor_scalar(t, t, nl.add, 1.0)

    assert "needs 360,000 bytes a partition of SBUF at once" in refused(kernel, np.zeros((2, 2), np.float32))


def test_psum_is_the_destination_of_products():
    def kernel(x):
        a, b, out = (nl.zeros((128, 128), nl.float32) for _ in range(3))
        nisa.nc_matmul(out, a, b)

    assert "expected PSUM (nki.isa.nc_matmul)" in refused(kernel, np.zeros((2, 2), np.float32))


def test_out_of_bounds():
    assert "dimension 1 of x" in refused(lambda x: x[:, 0:9], np.zeros((2, 2), np.float32))


def test_engine_that_cannot():
    def kernel(x):
        a, b = nl.zeros((4, 4), nl.float32), nl.zeros((4, 4), nl.float32)
        nisa.tensor_reduce(b[:, 0:1], nl.add, a, axis=1)
        nisa.memset(a, 0.0, engine=nisa.engine.scalar)

    assert "memset on the scalar engine; expected vector or gpsimd" in refused(kernel, np.zeros((2, 2), np.float32))


def test_device_rules_warn():
    def kernel(x):
        a = nl.zeros((4, 4), nl.float32)
        nisa.memset(a, 1.0, engine=nisa.engine.scalar)

    nki.settings.rules = "device"
    try:
        with pytest.warns(nki.NkiWarning, match="memset on the scalar engine"):
            nki.jit(kernel)(np.zeros((2, 2), np.float32))
    finally:
        nki.settings.rules = "strict"


def test_read_of_what_was_never_written():
    def kernel(x):
        a, b = nl.ndarray((4, 4), nl.float32), nl.ndarray((4, 4), nl.float32)
        nisa.tensor_copy(a, b)

    with pytest.warns(nki.NkiWarning, match="nothing has been written to it"):
        nki.jit(kernel)(np.zeros((2, 2), np.float32))


def test_a_name_that_another_release_has():
    with pytest.raises(AttributeError, match="nl|language.*neuronxcc.nki.language has it"):
        nl.gemm_grid  # noqa: B018
    with pytest.raises(AttributeError, match="no release up to 0.7 that we know has it"):
        nisa.teleport  # noqa: B018


def test_neither_of_two_real_packages_is_shadowed(monkeypatch, tmp_path):
    (tmp_path / "neuronxcc").mkdir()
    (tmp_path / "neuronxcc" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ImportError, match="neuronxcc is installed here; expected shadow=True"), nki.as_nki():
        pass
    with nki.as_nki(shadow=True):
        import neuronxcc.nki.language as language

        assert language.tile_size.pmax == 128


def placed(*columns, late):
    """Doubles an array by two tiles at these columns; `late`: the first one is read after the second is filled."""

    def kernel(x):
        out = nl.ndarray((len(columns), 128, 64), nl.float32, buffer=nl.shared_hbm)
        tiles = [nl.ndarray((128, 64), nl.float32, buffer=nl.sbuf, name=f"tile{n}", address=(0, 4 * column))
                 for n, column in enumerate(columns)]  # fmt: skip
        for n, tile in enumerate(tiles):
            nisa.dma_copy(dst=tile, src=x)
            if not late:
                nisa.dma_copy(dst=out[n], src=tile)
        if late:
            for n, tile in enumerate(tiles):
                nisa.dma_copy(dst=out[n], src=tile)
        return out

    return nki.jit(kernel)


def test_a_tile_that_is_read_after_another_was_written_over_it():
    x = np.ones((128, 64), np.float32)
    with pytest.warns(nki.NkiWarning, match=r"test_nki_rules.py:\d+: tile0 \(partition 0, byte 0 of SBUF\) is read, and tile1 was "
                      r"written over it in line \d+: their addresses meet") as said:  # fmt: skip
        placed(0, 32, late=True)(x)
    assert len(said) == 1
    for kernel in (placed(0, 64, late=True), placed(0, 32, late=False), placed(0, 0, 0, late=False)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            kernel(x)


def test_a_large_transpose_on_vector_is_refused_or_warned_of():
    def turned(x):
        tile, done = nl.ndarray((128, 64), nl.float32), nl.ndarray((64, 128), nl.float32)
        nisa.dma_copy(dst=tile, src=x)
        nisa.nc_transpose(dst=done, data=tile, engine=nisa.engine.vector)

    x = np.ones((128, 64), np.float32)
    assert "on the vector engine; expected at most 32 x 32" in refused(turned, x)
    with nki.as_nki(rules="device"), pytest.warns(nki.NkiWarning, match="expected at most 32 x 32"):
        kernel = nki.jit(turned)
        kernel(x)
    assert kernel.trace.engine[1] == "vector"
