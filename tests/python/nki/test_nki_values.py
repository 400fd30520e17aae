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


