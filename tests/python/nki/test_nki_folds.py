"""Loops that are told from some of their iterations, and those that must not be."""

import sys

import numpy as np
import pytest

nki_ours = pytest.importorskip("trellis.nki", reason="ml_dtypes is not installed")
from trellis.nki import timing  # noqa: E402
from trellis.nki.timing.folds import unfolded  # noqa: E402
from trellis.nki.trace import Fold, Trace  # noqa: E402

with nki_ours.as_nki(shadow=True):
    import nki
    import nki.isa as nisa
    import nki.language as nl

X = np.zeros((128, 512), np.float32)


def doubling(body):
    """A kernel that loads a tile, does what the body says with the loop's index, and stores it."""

    @nki.jit
    def kernel(x, n):
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        for i in nl.affine_range(n):
            tile = nl.ndarray(x.shape, x.dtype)
            nisa.dma_copy(dst=tile, src=x)
            body(i, tile, n)
            nisa.dma_copy(dst=out, src=tile)
        return out

    return kernel


def double(tile):
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)


def counts(kernel, n, repeats=True):
    """Instructions, of all iterations, and whether some were told."""
    kernel.launch((X, n), {}, compute=False, repeats=repeats)
    trace = kernel.trace
    return int(unfolded(trace, np.zeros(len(trace), np.int64)).times.sum()), kernel.session.repeated


BODIES = {
    "nothing": (lambda i, tile, n: double(tile), True),
    "the first": (lambda i, tile, n: double(tile) if i == 0 else None, True),
    "the last": (lambda i, tile, n: double(tile) if i == n - 1 else None, True),
    "a border": (lambda i, tile, n: double(tile) if 4 * i + 3 < 4 * n else None, True),
    "one inside": (lambda i, tile, n: double(tile) if i == 50 else None, False),
    "one inside, scaled": (lambda i, tile, n: double(tile) if 2 * i + 1 == 101 else None, False),
    "one that is none": (lambda i, tile, n: double(tile) if 2 * i == 101 else None, True),
    "remainders": (lambda i, tile, n: double(tile) if i % 50 == 49 else None, False),
    "a key": (lambda i, tile, n: double(tile) if {50: True}.get(i) else None, False),
    "a half": (lambda i, tile, n: double(tile) if i < n // 2 else None, False),
    "a triangle": (lambda i, tile, n: [double(tile) for _ in range(i)], False),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_loop_is_told_only_where_its_text_allows(name):
    body, told = BODIES[name]
    kernel = doubling(body)
    wanted, _ = counts(kernel, 120, repeats=False)
    got, repeated = counts(kernel, 120)
    assert got == wanted and (repeated or not told)
    if not told:
        assert len(kernel.trace) == wanted


def test_a_long_loop_takes_what_it_would_in_full(monkeypatch):
    repeats = sys.modules["trellis.nki.language.repeats"]  # trellis.nki.language is the module that kernels import

    kernel = doubling(lambda i, tile, n: [double(tile) for _ in range(3)])
    kernel.launch((X, 6000), {}, compute=False, repeats=False)
    full = timing.time_of(kernel.trace)
    monkeypatch.setattr(repeats, "FOLDED_FROM", 10_000)
    monkeypatch.setattr(repeats, "FOLDED_ROWS", 2_000)
    kernel.launch((X, 6000), {}, compute=False)
    folded = timing.time_of(kernel.trace)
    assert len(kernel.trace) < 3_000 and folded.instructions == full.instructions == 30_000
    for name in ("seconds", "low", "high"):
        assert getattr(folded, name) == pytest.approx(getattr(full, name), rel=0.02)
    assert folded.dma["bytes"] == pytest.approx(full.dma["bytes"], rel=1e-3)
    for engine, share in full.engines.items():
        assert folded.engines[engine] == pytest.approx(share, abs=0.03)
    assert sum(line.instructions for line in folded.hot_lines) == 30_000


def test_folds_within_folds():
    t = Trace("nested", kind=["memset"] * 20)
    t.folds += [Fold(0, 2, 3, 5), Fold(8, 2, 3, 5), Fold(0, 8, 2, 10)]  # twice 8 rows, of which 6 are a loop
    end = np.arange(20) * 1_000_000
    found = unfolded(t, end)
    assert found.times.sum() == 4 + (1 + 11) * (4 + 2 * 6 + 2)
    assert found.seconds == pytest.approx((10 * 8 + (1 + 11) * 5 * 2) * 1e-6)
