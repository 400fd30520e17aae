"""neuronxcc's masks, and tiles chosen by indices: instructions take and change what is let through, nothing else."""

import numpy as np
import pytest

nki_ours = pytest.importorskip("trellis.nki", reason="ml_dtypes is not installed")


@pytest.fixture(autouse=True)
def names():
    with nki_ours.as_nki(shadow=True):
        yield


def ran(kernel, *arrays):
    """What a kernel of (nl, nisa, arrays...) stores: it gives a tile."""
    import neuronxcc.nki as nki
    import neuronxcc.nki.isa as nisa
    import neuronxcc.nki.language as nl

    @nki.jit
    def stored(*tensors):
        tile = kernel(nl, nisa, *tensors)
        out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
        nl.store(out, tile)
        return out

    return stored(*arrays)


def test_broadcasts_of_what_indices_chose():
    def kernel(nl, nisa, x):
        i = nl.arange(4)[:, None]
        return nl.copy(nl.load(x)[i, (i * i) % 5].broadcast_to((4, 3)))

    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    assert ran(kernel, x).tolist() == [[x[i, i * i % 5]] * 3 for i in range(4)]


def test_broadcasts_of_what_a_predicate_chose():
    """Where it lets nothing through, the result keeps what was there."""
    def kernel(nl, nisa, x):
        out = nl.full((4, 3), -1.0, dtype=x.dtype, buffer=nl.sbuf)
        wide = out[nl.arange(4)[:, None] < 2]
        wide.broadcast_to((4, 3))[...] = nl.load(x)
        return out

    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    assert ran(kernel, x).tolist() == [[0, 1, 2], [3, 4, 5], [-1] * 3, [-1] * 3]


def test_another_type_of_what_indices_chose():
    def kernel(nl, nisa, x):
        i = nl.arange(4)[:, None]
        return nl.copy(nl.load(x)[i, (i * i) % 5].view(nl.int16))

    with pytest.raises(nki_ours.NkiError, match="elements are reached by indices"):
        ran(kernel, np.arange(32, dtype=np.float32).reshape(4, 8))


@pytest.mark.parametrize("op,wanted", [("add", [1, 3, 3, 11, 12]), ("subtract", [1, 1, 1, 7, -6])])
def test_cumulative_states_pass_over_what_a_mask_leaves_out(op, wanted):
    def kernel(nl, nisa, x):
        out = nl.full(x.shape, -9.0, dtype=x.dtype, buffer=nl.sbuf)
        i, j = nl.arange(2)[:, None], nl.arange(5)[None, :]
        nisa.tensor_scalar_cumulative(dst=out[i, j], src=nl.load(x)[i, j], op0=nl.add, op1=getattr(nl, op), imm0=0.0,
                                      mask=(j != 2) & (i < 1))
        return out

    x = np.array([[1, 2, 4, 8, 1]] * 2, np.float32)
    assert ran(kernel, x).tolist() == [[w if j != 2 else -9 for j, w in enumerate(wanted)], [-9] * 5]


def combined(op, mask, where, places=(0, 1, 1, 3)):
    """A table of 8 x 4 twos after atomic_rmw of rows 1, 2, 3, 4 to the rows `places`, which indices may choose."""
    def kernel(nl, nisa, table, indices, values):
        out = nl.ndarray((8, 4), dtype=nl.float32, buffer=nl.hbm)
        i, j = nl.arange(4)[:, None], nl.arange(4)[None, :]
        nl.store(out, nl.load(table))
        index, value = nl.load(indices), nl.load(values)
        nl.atomic_rmw(out[index[i, 0], j] if where == "chosen" else out[i, j], value=value[i, j], op=getattr(np, op),
                      mask=mask(i, j) if mask else None)
        return nl.load(out)

    values = np.repeat(np.arange(1, 5, dtype=np.float32)[:, None], 4, axis=1)
    return ran(kernel, np.full((8, 4), 2, np.float32), np.array(places, np.int32)[:, None], values)


@pytest.mark.parametrize("op", ["add", "maximum", "minimum", "multiply"])
@pytest.mark.parametrize("where", ["chosen", "plain"])
@pytest.mark.parametrize("mask", [None, lambda i, j: i < 2, lambda i, j: (i != 2) & (j < 3)])
def test_atomic_rmw_changes_what_the_mask_lets_through(op, where, mask):
    places = (0, 1, 1, 3) if where == "chosen" else (0, 1, 2, 3)
    wanted = np.full((8, 4), 2, np.float32)
    for i, j in np.ndindex(4, 4):
        if mask is None or mask(i, j):
            wanted[places[i], j] = getattr(np, op)(wanted[places[i], j], np.float32(i + 1))
    np.testing.assert_array_equal(combined(op, mask, where), wanted)


def test_atomic_rmw_of_what_does_not_combine():
    with pytest.raises(nki_ours.NkiError, match="dst_rmw_op=is_gt of rows that indices choose; expected add, "):
        combined("greater", None, "chosen")


