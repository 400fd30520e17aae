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


@pytest.fixture
def filled():
    """A kernel that takes columns from an object and, on trn1 alone, twice as many."""
    with nki_ours.as_nki(shadow=True):
        import nki
        import nki.isa as nisa
        import nki.language as nl

        class Config(nl.NKIObject):
            n: int

        @nki.jit
        def kernel(x, config):
            n = config.n * (2 if nisa.get_nc_version() < nisa.nc_version.gen3 else 1)
            out = nl.ndarray((128, n), dtype=x.dtype, buffer=nl.shared_hbm)
            tile = nl.ndarray((128, n), dtype=x.dtype, buffer=nl.sbuf)
            nisa.memset(tile, 0.0)
            nisa.dma_copy(dst=out, src=tile)
            return out

        yield kernel, Config


def columns(price):
    return price.results[0][0][1]


def test_a_price_is_of_what_its_arguments_hold(filled):
    kernel, config = filled
    x = Fake(128, 8)
    assert [columns(calls.price_of(kernel, x, config(n=n))) for n in (64, 128, 256, 64)] == [64, 128, 256, 64]
    assert calls.price_of(kernel, x, config(n=64)) is calls.price_of(kernel, x, config(n=64))
    changed = config(n=64)
    before = calls.price_of(kernel, x, changed)
    changed.n = 32
    assert (columns(before), columns(calls.price_of(kernel, x, changed))) == (64, 32)


def test_a_price_is_of_the_chip_that_the_call_is_for(filled):
    kernel, config = filled
    x, of_64 = Fake(128, 8), config(n=64)
    assert columns(calls.price_of(kernel, x, of_64)) == 64
    with nki_ours.as_nki(shadow=True, chip="trn1"):
        assert columns(calls.price_of(kernel, x, of_64)) == 128
    assert columns(calls.price_of(type(kernel)(kernel.func, platform_target="trn1"), x, of_64)) == 128
    assert columns(calls.price_of(kernel, x, of_64)) == 64


def test_keys_of_objects_within_each_other():
    class Plain:
        pass

    one, two = Plain(), Plain()
    one.of, two.of = {"list": [1, 2.0, one]}, {"list": [1, 2.0, two]}
    assert calls.known(one) == calls.known(two) and hash(calls.known(one)) == hash(calls.known(two))
    two.of["list"][1] = 2
    assert calls.known(one) != calls.known(two)
    assert calls.known(len) == calls.known(len) and calls.known(len) != calls.known(abs)


def test_keys_of_what_has_no_attributes():
    class Slotted:
        __slots__ = ("n",)

        def __init__(self, n):
            self.n = n

    class Mine(set):
        pass

    for make in (Slotted, lambda n: {n}, lambda n: Mine([n]), range, lambda n: slice(n), lambda n: n * 1j, np.arange):
        assert calls.known(make(3)) == calls.known(make(3)) != calls.known(make(4))
    changed = Slotted(1)
    before = calls.known(changed)
    changed.n = 2
    assert calls.known(changed) != before


def test_keys_of_tensors_of_torch():
    torch = pytest.importorskip("torch")
    assert calls.known(torch.tensor(64)) == calls.known(torch.tensor(64)) != calls.known(torch.tensor(128))
    assert calls.known([torch.zeros(2, 3)]) != calls.known([torch.zeros(3, 2)])


def test_the_text_of_the_module():
    assert doctest.testmod(calls).failed == 0
