"""A product of matrices in tiles: out [M, N] = left [K, M] transposed times right [K, N].

  python -m trellis.nki examples/nki/matmul.py [K M N]

Two ways: `simple` loads both tiles for every product; `kept` loads a column of tiles once and keeps it in SBUF."""

import sys

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

K, M, N = 128, 128, 512  # what one instruction of the array takes


def evict(out, psum, m, n):
    tile = nl.ndarray((M, N), dtype=out.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=tile, src=psum)
    nisa.dma_copy(dst=out[m * M : (m + 1) * M, n * N : (n + 1) * N], src=tile)


def load(tensor, k, first, count):
    tile = nl.ndarray((K, count), dtype=tensor.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=tensor[k * K : (k + 1) * K, first : first + count])
    return tile


@nki.jit
def simple(left, right):
    out = nl.ndarray((left.shape[1], right.shape[1]), dtype=left.dtype, buffer=nl.shared_hbm)
    for m in nl.affine_range(left.shape[1] // M):
        for n in nl.affine_range(right.shape[1] // N):
            psum = nl.ndarray((M, N), dtype=nl.float32, buffer=nl.psum)
            for k in nl.affine_range(left.shape[0] // K):
                nisa.nc_matmul(dst=psum, stationary=load(left, k, m * M, M), moving=load(right, k, n * N, N))
            evict(out, psum, m, n)
    return out


@nki.jit
def kept(left, right):
    out = nl.ndarray((left.shape[1], right.shape[1]), dtype=left.dtype, buffer=nl.shared_hbm)
    steps = range(left.shape[0] // K)
    for m in nl.affine_range(left.shape[1] // M):
        column = [load(left, k, m * M, M) for k in steps]
        for n in nl.affine_range(right.shape[1] // N):
            psum = nl.ndarray((M, N), dtype=nl.float32, buffer=nl.psum)
            for k in steps:
                nisa.nc_matmul(dst=psum, stationary=column[k], moving=load(right, k, n * N, N))
            evict(out, psum, m, n)
    return out


def main():
    k, m, n = (int(a) for a in sys.argv[1:4]) if len(sys.argv) > 3 else (512, 512, 1024)
    random = np.random.default_rng(1)
    left = random.standard_normal((k, m)).astype(np.float32).astype(nl.bfloat16)
    right = random.standard_normal((k, n)).astype(np.float32).astype(nl.bfloat16)
    wanted = left.astype(np.float32).T @ right.astype(np.float32)
    for kernel in (simple, kept):
        got = kernel(left, right).astype(np.float32)
        apart = np.linalg.norm(got - wanted) / np.linalg.norm(wanted)
        print(f"{kernel.__name__}: {'right' if apart < 1e-2 else 'wrong'}")
        if hasattr(kernel, "timing"):  # NKI itself has no such question
            print(kernel.timing())


if __name__ == "__main__":
    main()
