"""Functions of nl, by what their pages say of results and types, in both dialects."""

import importlib

import numpy as np
import pytest

nki = pytest.importorskip("trellis.nki", reason="ml_dtypes is not installed")
nl, nisa = nki.language, nki.isa
LoopSum = importlib.import_module("trellis.nki.language.assign").LoopSum


def computed(function, *arrays):
    """The tile that a function of tiles gives, in nki."""

    @nki.jit
    def kernel(*xs):
        tile = function(*(nl.load(x) for x in xs))
        out = nl.ndarray(tile.shape, tile.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=tile)
        return out

    return kernel(*arrays)


def computed_in_beta(function, *arrays):
    """The same in neuronxcc's dialect; `function` takes its nl first."""
    with nki.as_nki(shadow=True):
        import neuronxcc.nki as beta
        import neuronxcc.nki.language as language

        @beta.jit
        def kernel(*xs):
            tile = function(language, *(language.load(x) for x in xs))
            out = language.ndarray(tile.shape, dtype=tile.dtype, buffer=language.shared_hbm)
            language.store(out, tile)
            return out

        return kernel(*arrays)


X = np.array([[-1, 0, 5], [2, 3, 0.5], [-2, -3, -1]], np.float32)


def test_all_is_whether_all_are_true():
    wanted = X.all(axis=1, keepdims=True)
    got = computed(lambda x: nl.all(x, axis=1), X)
    assert got.dtype == np.float32 and got.tolist() == wanted.tolist()
    got = computed_in_beta(lambda nl, x: nl.all(x, axis=1), X)
    assert got.dtype == np.uint8 and got.tolist() == wanted.tolist()
    assert computed_in_beta(lambda nl, x: nl.all(x, axis=1, dtype=nl.float32), X).dtype == np.float32


def test_all_of_what_a_mask_lets_in():
    got = computed_in_beta(lambda nl, x: nl.all(x, axis=1, mask=nl.arange(3)[None, :] < 1), X)
    assert got.tolist() == [[1], [1], [1]]
    got = computed_in_beta(lambda nl, x: nl.all(x, axis=1, mask=nl.arange(3)[None, :] < 2), X)
    assert got.tolist() == [[0], [1], [1]]


def test_reductions_by_every_logical_operator():
    def reduced(x):
        tile = nl.ndarray((3, 3), nl.float32)
        for k, op in enumerate((nl.logical_and, nl.logical_or, nl.logical_xor)):
            nisa.tensor_reduce(dst=tile[:, k:k + 1], op=op, data=x, axis=1)
        return tile

    wanted = [f.reduce(X != 0, axis=1) for f in (np.logical_and, np.logical_or, np.logical_xor)]
    np.testing.assert_array_equal(computed(reduced, X), np.stack(wanted, axis=1))


def largest(assigned, first=0, indices=lambda i: i, mask=None):
    """The largest row of x[first:] by nl.loop_reduce, assigned by [...] or to a name."""
    with nki.as_nki(shadow=True):
        import neuronxcc.nki as beta
        import neuronxcc.nki.language as language

        @beta.jit
        def kernel(x):
            out = language.ndarray((1, 3), dtype=x.dtype, buffer=language.shared_hbm)
            most = language.zeros((1, 3), dtype=x.dtype, buffer=language.sbuf)
            for i in language.affine_range(first, 3):
                row = language.load(x[i:i + 1])
                if assigned:
                    most[...] = language.loop_reduce(row, op=np.max, loop_indices=indices(i), dtype=x.dtype, mask=mask)
                else:
                    most = language.loop_reduce(row, op=np.max, loop_indices=indices(i), dtype=x.dtype)
            language.store(out, most)
            return out

        return kernel(X - 10)


def test_a_loops_reduction_begins_where_the_loop_does():
    wanted = (X - 10).max(axis=0, keepdims=True)
    for indices in (lambda i: i, lambda i: [i], lambda i: (i,)):
        np.testing.assert_array_equal(largest(True, indices=indices), wanted)
    np.testing.assert_array_equal(largest(True, first=1), (X - 10)[1:].max(axis=0, keepdims=True))
    np.testing.assert_array_equal(largest(True, mask=np.arange(3)[None, :] < 2), np.where(np.arange(3) < 2, wanted, 0))


def test_a_loops_reduction_that_is_assigned_to_a_name_is_refused():
    with pytest.raises(
        nki.NkiError, match=r"test_nki_functions.py:\d+: nl.loop_reduce's result is used; expected tile"
    ):
        largest(False)


@pytest.mark.parametrize(
    "use", [lambda b: b[0:1, 0:1], lambda b: -b, lambda b: b > 0, lambda b: b + 1, lambda b: 2 * b]
)
def test_no_use_of_a_loops_reduction_serves(use):
    with pytest.raises(nki.NkiError, match="nl.loop_reduce's result is used; expected tile"):
        use(LoopSum("add", True, None, None))


def test_the_mean_of_integers():
    x = np.array([[1, 2], [3, 3]], np.int32)
    got = computed_in_beta(lambda nl, x: nl.mean(x, axis=1), x)
    assert got.dtype == np.float32 and got.tolist() == [[1.5], [3]]
    assert computed_in_beta(lambda nl, x: nl.mean(x, axis=1, dtype=nl.int32), x).dtype == np.int32
    assert computed(lambda x: nl.mean(x, axis=1), x).dtype == np.int32  # as nki's own page has it


def test_the_number_of_all_programs():
    seen = set()
    with nki.as_nki(shadow=True):
        import neuronxcc.nki as beta
        import neuronxcc.nki.language as language

        @beta.jit
        def kernel(x):
            seen.add((language.num_programs(), language.num_programs(0), language.num_programs(axes=(0, 1))))
            out = language.ndarray(x.shape, dtype=x.dtype, buffer=language.shared_hbm)
            for i in range(language.program_id(1), 3, language.num_programs()):
                language.store(out[i:i + 1], language.load(x[i:i + 1]))
            return out

        kernel[1, 2](X)
        kernel[2, 3](X)
    assert seen == {(2, 1, (1, 2)), (6, 2, (2, 3))}


@pytest.mark.parametrize("name", ["dropout", "gather_flattened"])
def test_what_a_mask_leaves_out_stays(name):
    def under_mask(nl, x):
        tile = nl.full((3, 3), -9.0, dtype=x.dtype, buffer=nl.sbuf)
        i, j = nl.arange(3)[:, None], nl.arange(3)[None, :]
        if name == "dropout":
            tile[i, j] = nl.dropout(x, 0.0, mask=i < 2)
        else:
            tile[i, j] = nl.gather_flattened(x, nl.zeros((3, 3), dtype=nl.uint32), mask=i < 2)
        return tile

    wanted = X.copy() if name == "dropout" else np.repeat(X[:, :1], 3, axis=1)
    wanted[2] = -9
    np.testing.assert_array_equal(computed_in_beta(under_mask, X), wanted)


@pytest.mark.parametrize("kind", ["int32", "uint8"])
@pytest.mark.parametrize("op,f", [("bitwise_or", np.bitwise_or), ("bitwise_and", np.bitwise_and)])
def test_bits_reduced_along_rows_and_across_partitions(kind, op, f):
    def reduced(x):
        across, along = nl.ndarray((1, 4), x.dtype), nl.ndarray((3, 1), x.dtype)
        nisa.tensor_partition_reduce(across, getattr(nl, op), x)
        nisa.tensor_reduce(along, getattr(nl, op), x, axis=1)
        both = nl.ndarray((3, 5), x.dtype)
        nisa.memset(both, 0)
        nisa.tensor_copy(both[0:1, 0:4], across)
        nisa.tensor_copy(both[:, 4:5], along)
        return both

    x = np.array([[5, 12, 7, 255], [6, 4, 3, 129], [13, 68, 1, 130]], kind)
    got = computed(reduced, x)
    np.testing.assert_array_equal(got[0, :4], f.reduce(x, axis=0))
    np.testing.assert_array_equal(got[:, 4], f.reduce(x, axis=1))
    with pytest.raises(nki.NkiError, match=f"{op} of .*; expected integers"):
        computed(reduced, x.astype(np.float32))


def test_types_of_logical_not_and_of_what_is_broadcast():
    assert computed(lambda x: nl.logical_not(x), X).dtype == np.float32
    assert computed_in_beta(lambda nl, x: nl.logical_not(x), X).dtype == np.uint8
    got = computed(lambda x: nl.broadcast_to(x, (3, 4), dtype=nl.int32), X[:, 1:2])
    assert got.dtype == np.int32 and got.tolist() == [[0] * 4, [3] * 4, [-3] * 4]


def test_integers_that_affine_select_chooses_stay_exact():
    def chosen(x):
        tile = nl.ndarray((1, 4), x.dtype)
        nisa.affine_select(dst=tile, pattern=[[1, 4]], channel_multiplier=0, on_true_tile=x, on_false_value=-7.0,
                           cmp_op=nl.greater, offset=-1)  # fmt: skip
        return tile

    x = np.full((1, 4), 16_777_217, np.int32)
    assert computed(chosen, x).tolist() == [[-7, -7, 16_777_217, 16_777_217]]
