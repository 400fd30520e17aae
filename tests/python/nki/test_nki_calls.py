"""The price of a kernel's call without data, and a program that stands in for kernels."""

import doctest

import numpy as np
import pytest

nki_ours = pytest.importorskip("trellis.nki", reason="ml_dtypes is not installed")
from trellis.nki import calls  # noqa: E402


class Fake:
    """A tensor without data, as a framework has them."""

    def __init__(self, *shape, dtype="torch.bfloat16"):
        self.shape, self.dtype = shape, dtype


@pytest.fixture
def product():
    with nki_ours.as_nki(shadow=True):
        import nki
        import nki.isa as nisa
        import nki.language as nl

        @nki.jit
        def kernel(left, right):
            out = nl.ndarray((left.shape[1], right.shape[1]), dtype=left.dtype, buffer=nl.shared_hbm)
            for n in range(right.shape[1] // 512):
                a, b = (nl.ndarray((128, w), dtype=left.dtype, buffer=nl.sbuf) for w in (128, 512))
                total = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
                done = nl.ndarray((128, 512), dtype=left.dtype, buffer=nl.sbuf)
                nisa.dma_copy(dst=a, src=left)
                nisa.dma_copy(dst=b, src=right[:, n * 512:(n + 1) * 512])
                nisa.nc_matmul(dst=total, stationary=a, moving=b)
                nisa.tensor_copy(dst=done, src=total)
                nisa.dma_copy(dst=out[:, n * 512:(n + 1) * 512], src=done)
            return out

        yield kernel


def test_a_call_is_priced_by_shapes(product):
    small, large = (calls.price_of(product, Fake(128, 128), Fake(128, n)) for n in (1024, 8192))
    assert small.results == (((128, 1024), "bf16"),) and large.results == (((128, 8192), "bf16"),)
    assert small.flops == 2 * 128 * 128 * 1024 and large.flops == 8 * small.flops
    assert small.low < small.seconds < small.high and large.seconds > 2 * small.seconds
    assert calls.price_of(product, Fake(128, 128), Fake(128, 1024)) is small
    real = np.zeros((128, 1024), calls.to_dtype("bfloat16"))
    product(np.zeros((128, 128), real.dtype), real)
    assert nki_ours.timing.time_of(product.trace).seconds == small.seconds


def test_a_program_can_stand_in_for_kernels(product):
    seen = []

    def recorded(kernel, args, kwargs):
        price = calls.price_of(kernel, *args, **kwargs)
        seen.append((kernel.name, price.seconds))
        return [Fake(*shape, dtype=dtype) for shape, dtype in price.results]

    nki_ours.settings.stand_in = recorded
    try:
        (out,) = product(Fake(128, 128), Fake(128, 512))
    finally:
        nki_ours.settings.stand_in = None
    assert out.shape == (128, 512) and seen[0][0] == "kernel" and seen[0][1] > 0


def test_the_text_of_the_module():
    assert doctest.testmod(calls).failed == 0
