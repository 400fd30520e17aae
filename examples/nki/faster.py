"""One product of matrices, three times: out [M, N] = left [K, M] transposed times right [K, N].

docs/nki_faster.md goes from the first to the last. M and N are multiples of 1024, K of 128."""

import nki
import nki.isa as nisa
import nki.language as nl

TILE_K, TILE_M, TILE_N = 128, 128, 512  # what one instruction of the array takes
WIDE = 1024  # columns of a block


def load(tensor, row, rows, column, columns):
    tile = nl.ndarray((rows, columns), dtype=tensor.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=tensor[row : row + rows, column : column + columns])
    return tile


def store(out, row, column, psum):
    tile = nl.ndarray(psum.shape, dtype=out.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=tile, src=psum)
    nisa.dma_copy(dst=out[row : row + TILE_M, column : column + TILE_N], src=tile)


def result(left, right):
    return nl.ndarray((left.shape[1], right.shape[1]), dtype=left.dtype, buffer=nl.shared_hbm)


@nki.jit
def tiled(left, right):
    """Both tiles are loaded for each product."""
    out = result(left, right)
    for m in range(0, left.shape[1], TILE_M):
        for n in range(0, right.shape[1], TILE_N):
            psum = nl.ndarray((TILE_M, TILE_N), dtype=nl.float32, buffer=nl.psum)
            for k in range(0, left.shape[0], TILE_K):
                a = load(left, k, TILE_K, m, TILE_M)
                b = load(right, k, TILE_K, n, TILE_N)
                nisa.nc_matmul(dst=psum, stationary=a, moving=b)
            store(out, m, n, psum)
    return out


@nki.jit
def kept(left, right):
    """A column of left's tiles is loaded once for all of right."""
    out = result(left, right)
    ks = range(0, left.shape[0], TILE_K)
    for m in range(0, left.shape[1], TILE_M):
        a = {k: load(left, k, TILE_K, m, TILE_M) for k in ks}
        for n in range(0, right.shape[1], TILE_N):
            psum = nl.ndarray((TILE_M, TILE_N), dtype=nl.float32, buffer=nl.psum)
            for k in ks:
                nisa.nc_matmul(dst=psum, stationary=a[k], moving=load(right, k, TILE_K, n, TILE_N))
            store(out, m, n, psum)
    return out


@nki.jit
def blocked(left, right):
    """Both factors of a block stay on chip, loaded in wide rows."""
    out = result(left, right)
    ks = range(0, left.shape[0], TILE_K)
    for first in range(0, right.shape[1], WIDE):
        b = {k: load(right, k, TILE_K, first, WIDE) for k in ks}
        for top in range(0, left.shape[1], WIDE):
            a = {k: load(left, k, TILE_K, top, WIDE) for k in ks}
            for m in range(0, WIDE, TILE_M):
                for n in range(0, WIDE, TILE_N):
                    psum = nl.ndarray((TILE_M, TILE_N), dtype=nl.float32, buffer=nl.psum)
                    for k in ks:
                        nisa.nc_matmul(dst=psum, stationary=a[k][:, m : m + TILE_M], moving=b[k][:, n : n + TILE_N])
                    store(out, top + m, first + n, psum)
    return out


def in_numpy(left, right):
    return left.T @ right
