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


def test_double_rows_before_neuroncore_v3():
    def kernel(x):
        out = nl.ndarray((128, 512), nl.float32, buffer=nl.psum)
        a, b = (nl.zeros((128, 2, n), nl.float8_e4m3) for n in (128, 512))
        nisa.nc_matmul(out, a, b, perf_mode=nisa.matmul_perf_mode.double_row)

    with (
        nki.as_nki(chip="trn1"),
        pytest.warns(nki.NkiWarning, match="double_row on trn1; NeuronCore-v3 and later have it"),
    ):
        nki.jit(kernel)(np.zeros((2, 2), np.float32))


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
    with pytest.warns(
        nki.NkiWarning,
        match=r"test_nki_rules.py:\d+: tile0 \(partition 0, byte 0 of SBUF\) is read, and tile1 was "
        r"written over it in line \d+: their addresses meet",
    ) as said:
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


def heard(kernel, *arrays):
    """The warnings of a call, without file and line."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", nki.NkiWarning)
        kernel(*arrays)
    texts = [str(w.message) for w in said if issubclass(w.category, nki.NkiWarning)]
    found = [re.fullmatch(rf"{re.escape(__file__)}:\d+: (.*)", t) for t in texts]
    assert all(found), texts
    return [m[1] for m in found]


def in_two_halves(first, second, barrier=True, late=True, whole=False):
    """Each core writes columns of a tensor that both share, from `first` or `second` on, and then reads them all, or
    the other's alone."""

    def kernel(x):
        out = nl.ndarray((2, 128, 64), nl.float32, buffer=nl.shared_hbm)
        shared = nl.ndarray((128, 64), nl.float32, buffer=nl.shared_hbm, name="shared")
        core = nl.program_id(0)
        begin = (first, second)[core]
        tile, other = nl.ndarray((128, 32), nl.float32), nl.ndarray((128, 64), nl.float32)
        nisa.dma_copy(dst=tile, src=x[:, begin : begin + 32])
        nisa.dma_copy(dst=shared[:, begin : begin + 32], src=tile)
        if barrier:
            nisa.core_barrier(shared, (0, 1))
        if late:
            nisa.dma_copy(dst=other, src=shared)
            nisa.dma_copy(dst=out[core], src=other)
        if whole:
            nisa.dma_copy(dst=shared[:, begin : begin + 32], src=tile)
        return out

    return nki.jit(kernel)[2]


def test_two_cores_that_touch_hbm_without_a_barrier():
    x = np.ones((128, 64), np.float32)
    (text,) = heard(in_two_halves(0, 32, barrier=False), x)
    assert re.match(
        r"core [01] (reads|writes) what core [01] (writes|reads) in line \d+ of shared in HBM, with no barrier on "
        r"it in between; expected nisa.core_barrier\(shared, \(0, 1\)\) \(nki.isa.core_barrier\)",
        text,
    )
    (text,) = heard(in_two_halves(0, 16, late=False), x)  # columns 16 to 32 are of both
    assert "core 1 writes what core 0 writes" in text or "core 0 writes what core 1 writes" in text
    (text,) = heard(in_two_halves(0, 32, whole=True), x)  # a core writes again what the other may still read
    assert "writes what" in text and "reads in line" in text
    alike = in_two_halves(0, 0, late=False)  # both do all of it
    for kernel in (in_two_halves(0, 32), in_two_halves(0, 32, late=False), alike):
        assert heard(kernel, x) == []


def filled(shape, rows=slice(None), **where):
    """Fills partitions of a tile."""

    def kernel(x):
        tile = nl.ndarray(shape, nl.float32, name="tile", **where)
        nisa.memset(tile[rows], 0.0)

    return nki.jit(kernel)


X = np.ones((2, 2), np.float32)


@pytest.mark.parametrize("shape, first", [((32, 4), 16), ((64, 4), 32), ((65, 4), 32)])
def test_a_tile_at_partitions_that_no_engine_reaches(shape, first):
    text = heard(filled(shape, address=(first, 0)), X)[0]
    assert (
        f"tile takes {shape[0]} partitions from {first} on; expected to begin at 0" in text
        and "start_partition" in text
    )


def test_operands_begin_where_engines_reach():
    assert heard(filled((128, 4), slice(40, 60)), X) == [
        "memset of tile: 20 partitions from 40 on; expected to begin at 0 or 32 or 64 or 96 "
        "(nki/guides/architecture/trainium_inferentia2_arch.rst, start_partition)"]  # fmt: skip
    assert "48 partitions from 32 on; expected to begin at 0 or 64" in heard(filled((128, 4), slice(32, 80)), X)[0]
    for rows in (slice(None), slice(96, 128), slice(64, 128), slice(0, 100), slice(32, 33)):
        assert heard(filled((128, 4), rows), X) == []
    assert heard(filled((32, 4), address=(96, 64)), X) == []


def test_a_tile_of_psum_begins_at_a_bank():
    assert heard(filled((128, 4), buffer=nl.psum, address=(0, 1024)), X) == [
        "tile begins at byte 1,024 of PSUM; expected the beginning of a bank, a multiple of 2,048 "
        "(nki/migration/index.rst, allocation)"
    ]
    assert heard(filled((128, 4), buffer=nl.psum, address=(0, 4096)), X) == []


def test_a_product_fits_into_one_bank():
    def product(first):
        def kernel(x):
            a, b = nl.zeros((128, 128), nl.float32), nl.zeros((128, 512), nl.float32)
            out = nl.ndarray((128, 2048), nl.float32, buffer=nl.psum, name="out")
            nisa.nc_matmul(out[:, first : first + 512], a, b)

        return nki.jit(kernel)

    assert heard(product(512), X) == []
    (text,) = heard(product(256), X)
    assert "nc_matmul to bytes 1,024 to 3,072 of out; expected to fit into one bank of 2,048 bytes" in text
    with nki.as_nki(chip="trn3"):
        assert heard(product(256), X) == []
