"""neuronxcc's masks, and tiles chosen by indices: an instruction takes and changes what is let through, nothing else."""

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


