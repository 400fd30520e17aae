"""RMS normalisation: each row of x over the root of its mean square, times a weight.

  python -m trellis.nki examples/nki/rmsnorm.py

It runs where NKI itself is installed, too. Prints right or wrong, and the time where one is at hand."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def rmsnorm(x, weight, epsilon=1e-6):
    rows, columns = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)

    # The weight once, in every partition.
    scale = nl.ndarray((128, columns), dtype=weight.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=scale, src=weight.ap(pattern=[[0, 128], [1, columns]]))

    for tile in nl.affine_range(rows // 128):
        here = nl.ds(tile * 128, 128)
        row = nl.ndarray((128, columns), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=row, src=x[here, :])

        # One instruction of Scalar: squares, and their sum.
        square = nl.ndarray((128, columns), dtype=nl.float32, buffer=nl.sbuf)
        total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation_reduce(dst=square, op=nl.square, data=row, reduce_op=nl.add, reduce_res=total)

        # 1 / sqrt(total / columns + epsilon)
        nisa.tensor_scalar(dst=total, data=total, op0=nl.multiply, operand0=1.0 / columns, op1=nl.add, operand1=epsilon)
        nisa.activation(dst=total, op=nl.rsqrt, data=total)

        result = nl.ndarray((128, columns), dtype=x.dtype, buffer=nl.sbuf)
        nisa.scalar_tensor_tensor(dst=result, data=row, op0=nl.multiply, operand0=total, op1=nl.multiply, operand1=scale)
        nisa.dma_copy(dst=out[here, :], src=result)
    return out


def main():
    random = np.random.default_rng(1)
    x = random.standard_normal((512, 2048)).astype(np.float32)
    weight = random.standard_normal((1, 2048)).astype(np.float32)
    wanted = x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-6) * weight
    print("right" if np.allclose(rmsnorm(x, weight), wanted, rtol=1e-4, atol=1e-5) else "wrong")
    if hasattr(rmsnorm, "timing"):  # NKI itself has no such question
        print(rmsnorm.timing())


if __name__ == "__main__":
    main()
