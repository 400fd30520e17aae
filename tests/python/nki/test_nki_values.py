"""Values at the edges: conversions, places chosen by indices, scans, and the scales of blocks."""

import numpy as np
import pytest

nki = pytest.importorskip("trellis.nki", reason="ml_dtypes is not installed")
nl, nisa = nki.language, nki.isa

from trellis.nki.tensors.types import convert  # noqa: E402 (behind the check for ml_dtypes)


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64])
def test_floats_beyond_an_integer_become_its_nearest_end(kind):
    ends = np.iinfo(kind)
    got = convert(np.array([np.inf, 1e30, -np.inf, -1e30, np.nan, 2.5], np.float32), np.dtype(kind))
    assert got.dtype == kind and got.tolist() == [ends.max, ends.max, ends.min, ends.min, 0, 2]


def test_the_last_floats_inside_of_integers_of_64_bits():
    below = np.nextafter(np.array([2.0**63, 2.0**64]), 0)
    assert convert(below, np.dtype(np.int64))[0] == 2**63 - 1024
    assert convert(below, np.dtype(np.uint64))[1] == 2**64 - 2048


@pytest.mark.parametrize("dim,indices,wanted", [(1, [1, 5], [1, 5]), (1, [1, 8], [1, -1]), (0, [2, 1], [16, 8]),
                                                (0, [1, 3], [8, -1])])
def test_indirect_places_are_held_against_their_own_dimension(dim, indices, wanted):
    @nki.jit
    def chosen(x, places):
        index, tile = nl.ndarray((2, 1), nl.int32), nl.ndarray((2, 1), x.dtype)
        nisa.dma_copy(dst=index, src=places)
        nisa.memset(tile, -1.0)
        part = x.ap(pattern=[[x.shape[1], 2], [1, 1]], vector_offset=index, indirect_dim=dim)
        nisa.dma_copy(dst=tile, src=part, oob_mode=nisa.oob_mode.skip)
        out = nl.ndarray((2, 1), x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=tile)
        return out

    x = np.arange(24, dtype=np.float32).reshape(3, 8)
    assert chosen(x, np.array(indices, np.int32)[:, None]).ravel().tolist() == wanted


def cumulative(x, op0, op1, **settings):
    """What tensor_scalar_cumulative makes of x and a number."""
    @nki.jit(platform_target="trn3")
    def kernel(x):
        tile, result = nl.ndarray(x.shape, x.dtype), nl.ndarray(x.shape, x.dtype)
        nisa.dma_copy(dst=tile, src=x)
        if settings.get("reduce_cmd") == nisa.reduce_cmd.reduce:  # what another has left
            nisa.tensor_scalar_cumulative(dst=result, src=tile, op0=op0, op1=op1, imm0=0.0)
        nisa.tensor_scalar_cumulative(dst=result, src=tile, op0=op0, op1=op1, imm0=0.0, **settings)
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=result)
        return out

    return kernel(x)


@pytest.mark.parametrize("op", [nl.add, nl.subtract, nl.multiply, nl.maximum, nl.minimum])
@pytest.mark.parametrize("command", ["reset_reduce", "load_reduce", "reduce"])
def test_cumulative_operators_take_the_element_first(op, command):
    """state = op1(element, state), as sim/core has it; the first state is the operator's neutral one, or given."""
    f = {nl.add: np.add, nl.subtract: np.subtract, nl.multiply: np.multiply, nl.maximum: np.maximum,
         nl.minimum: np.minimum}[op]
    neutral = {np.add: 0.0, np.subtract: 0.0, np.multiply: 1.0, np.maximum: -np.inf, np.minimum: np.inf}[f]
    x = np.array([[1, 2, 4, 8], [3, -1, 2, -5]], np.float32)
    settings = {"reduce_cmd": getattr(nisa.reduce_cmd, command)} | ({"imm1": 3.0} if command == "load_reduce" else {})
    wanted = np.empty_like(x)
    for row in range(len(x)):
        state = 3.0 if command == "load_reduce" else neutral
        for _ in range(2 if command == "reduce" else 1):
            for i in range(x.shape[1]):
                state = wanted[row, i] = f(x[row, i], state)
    np.testing.assert_array_equal(cumulative(x, nl.add, op, **settings), wanted)


def test_cumulative_subtract_of_the_documentation():
    got = cumulative(np.array([[1, 2, 4, 8]], np.float32), nl.add, nl.subtract)
    assert got.tolist() == [[1, 1, 3, 5]]


