"""CS149's Trainium assignments as students solved them: checkouts that are named owner+asst4-trainium or the like."""

import hashlib
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from nki_cases import answers
from nki_cases.case import KernelCase, floats, load

VECTOR = 256_000  # fits the tiles of 128 by 1, 2, 200, 250, 500, 1000 and 2000 that the files have


def students(root: Path) -> Iterator[KernelCase]:
    """Of each distinct kernel one case, under the name of the first who wrote it so."""
    seen: set[str] = set()
    for folder in sorted(root.glob("*asst4-trainium*")):
        if "+" not in folder.name:
            continue
        for file in sorted([*folder.glob("part1/kernels.py"), *folder.glob("part2/conv*.py"), *folder.glob("*_fin.py")]):
            text = file.read_text()
            for name, run in _kernels(file).items():
                if f"def {name}(" not in text or (key := _text(text, name)) in seen:
                    continue
                seen.add(key)
                yield from run(f"{folder.name}: {file.stem} {name}")


def _text(text: str, name: str) -> str:
    """What tells two solutions apart: for a convolution the whole file, whose helpers it calls."""
    if name == "fused_conv2d_maxpool":
        return hashlib.sha256(text.encode()).hexdigest()
    lines = text[text.index(f"def {name}(") :].splitlines()
    return "\n".join([lines[0], *inspect.getblock([f"{line}\n" for line in lines])])


def _kernels(file: Path) -> dict[str, Callable[[str], Iterator[KernelCase]]]:
    def added(kernel: str, n: int) -> Callable[[str], Iterator[KernelCase]]:
        def run() -> Any:
            a, b = floats(n), floats(n, seed=1)
            return [(getattr(load(file), kernel)(a, b), a + b)]

        return lambda name: iter([KernelCase("students", name, run)])

    def transposed(kernel: str) -> Callable[[str], Iterator[KernelCase]]:
        def run() -> Any:
            x = floats(2048, 2048)
            return [(getattr(load(file), kernel)(x), x.T)]

        return lambda name: iter([KernelCase("students", name, run)])

    def convolved(name: str) -> Iterator[KernelCase]:
        def case(channels: int, pool: int, dtype: Any) -> KernelCase:
            def run() -> Any:
                x, b = floats(2, channels, 32, 16, dtype=dtype), floats(channels, seed=2, dtype=dtype)
                w = floats(channels, channels, 3, 3, seed=1, dtype=dtype)
                wanted = answers.convolved(*(a.astype(np.float32) for a in (x, w, b)))
                got = load(file).fused_conv2d_maxpool(x, w, b, pool)
                return [(got, answers.max_pool(wanted, pool) if pool > 1 else wanted)]

            return KernelCase("students", f"{name} {channels} {np.dtype(dtype).name} pool {pool}", run)

        for channels, pool, dtype in ((128, 1, np.float32), (256, 1, np.float16), (256, 2, np.float32)):
            yield case(channels, pool, dtype)

    return {"vector_add_naive": added("vector_add_naive", 128), "vector_add_tiled": added("vector_add_tiled", 25_600),
            "vector_add_stream": added("vector_add_stream", VECTOR),
            "vector_add_direct_allocation": added("vector_add_direct_allocation", VECTOR),
            "matrix_transpose": transposed("matrix_transpose"), "matrix_transpose_improved": transposed("matrix_transpose_improved"),
            "fused_conv2d_maxpool": convolved}  # fmt: skip
