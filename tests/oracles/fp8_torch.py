"""Rounds a matrix to 8 bits with PyTorch's types, as factors of fp8 products are, and writes down what comes out:

    python3 tests/oracles/fp8_torch.py tests/oracles/fp8_torch.json

tensor: scaled by the largest power of two that leaves the largest element within the format. mx: OCP's blocks of 32, whose
scale is 2^(floor(log2 of the largest) - the format's largest exponent), and what is beyond the largest element saturates.
The test train.Fp8.* rounds the same matrix. Needs torch."""
import json
import math
import sys

import torch

from llama_torch import pseudo_random

ROWS, COLUMNS, BLOCK = 5, 72, 32  # neither is a multiple of a block
FORMATS = {"e4m3": (torch.float8_e4m3fn, 448.0, 8), "e5m2": (torch.float8_e5m2, 57344.0, 15)}


def matrix():
    """Of many magnitudes."""
    signs = torch.from_numpy(pseudo_random("fp8", ROWS * COLUMNS))
    sizes = torch.from_numpy(pseudo_random("fp8.sizes", ROWS * COLUMNS))
    return (signs * torch.exp2(torch.floor(24 * sizes))).float().reshape(ROWS, COLUMNS)


def of_tensor(x, kind):
    dtype, most, _ = FORMATS[kind]
    scale = 2.0 ** math.floor(math.log2(most / x.abs().max().item()))
    return (x * scale).to(dtype).float() / scale


def of_blocks(x, kind):
    dtype, most, exponent = FORMATS[kind]
    out = x.clone()
    for row in out:
        for first in range(0, row.numel(), BLOCK):
            block = row[first:first + BLOCK]
            scale = 2.0 ** (math.floor(math.log2(block.abs().max().item())) - exponent)
            block.copy_((block / scale).clamp(-most, most).to(dtype).float() * scale)
    return out


if __name__ == "__main__":
    x = matrix()
    made = {"torch": torch.__version__.split("+")[0], "matrix": x}
    for kind in FORMATS:
        made[f"tensor_{kind}"] = of_tensor(x, kind)
        made[f"mx_{kind}"] = of_blocks(x, kind)
        made[f"mx_rows_{kind}"] = of_blocks(x.T.contiguous(), kind).T
    with open(sys.argv[1], "w") as file:
        file.write("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v if isinstance(v, str) else v.reshape(-1).tolist())}"
                                      for k, v in made.items()) + "\n}\n")
