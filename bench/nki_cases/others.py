"""Kernels of students and of other libraries: trainium-kernel-fusion, a solution of CS149's assignment, nkipy."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from nki_cases import answers
from nki_cases.case import KernelCase, floats, load, load_text


def _bf16() -> Any:
    import ml_dtypes

    return ml_dtypes.bfloat16


def _gelu(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(0.7978845608028654 * (x + 0.044715 * x**3)))


def fusion(root: Path) -> Iterator[KernelCase]:
    def case(name: str, file: str, kernel: str, make: Callable[[], tuple[tuple[Any, ...], Any]]) -> KernelCase:
        def run() -> Any:
            args, wanted = make()
            return [(getattr(load(root / "kernels" / file, root), kernel)(*args), wanted)]

        return KernelCase("trainium-kernel-fusion", name, run)

    def attention() -> Any:
        q, k, v = (floats(128, 4096, seed=s) for s in range(3))
        return (q, k, v), answers.attention(q, k, v.T)

    def product() -> Any:
        x, w, b = floats(512, 256), floats(512, 1024, seed=1) - 0.5, floats(1, 1024, seed=2)
        return (x, w, b), x.T @ w + b

    def softmax() -> Any:
        x = floats(256, 1024)
        return (x,), answers.softmax(x)

    def gelu() -> Any:
        x = 4 * floats(256, 1024) - 2
        return (x,), _gelu(x)

    def mlp() -> Any:
        args, y = product()
        return args, _gelu(y)

    yield case("baseline softmax", "baseline/softmax.py", "softmax_kernel", softmax)
    yield case("baseline attention", "baseline/attention.py", "baseline_attention", attention)
    yield case("baseline gemm", "baseline/mlp_gemm.py", "gemm_kernel", product)
    yield case("baseline gelu", "baseline/mlp_gemm.py", "gelu_kernel", gelu)
    yield case("fused attention", "fused/attention.py", "fused_attention", attention)
    yield case("fused mlp pwl", "fused/mlp.py", "fused_mlp_pwl", mlp)
    yield case("fused mlp taylor", "fused/mlp.py", "fused_mlp_taylor", mlp)


def cs149_solution(root: Path) -> Iterator[KernelCase]:
    kernels, group = root / "part1/kernels.py", "asst4-trainium2 (solution)"

    def added(name: str, n: int, constant: str, value: int) -> Callable[[], Any]:
        """With a value that fits the vector, or the chip: the file has the one that was tried last."""

        def run() -> Any:
            a, b = floats(n), floats(n, seed=1)
            text = re.sub(rf"\b{constant} = \d+", f"{constant} = {value}", kernels.read_text())
            return [(getattr(load_text(text, ""), name)(a, b), a + b)]

        return run

    def transposed() -> Any:
        x = floats(1024, 1024)
        return [(load(kernels).matrix_transpose(x), x.T)]

    def convolved(pool: int, dtype: Any) -> Callable[[], Any]:
        def run() -> Any:
            x, w, b = floats(1, 128, 32, 16, dtype=dtype), floats(128, 128, 3, 3, seed=1, dtype=dtype), floats(128, seed=2, dtype=dtype)
            wanted = answers.convolved(*(a.astype(np.float32) for a in (x, w, b)))
            got = load(root / "part2/conv2d.py").fused_conv2d_maxpool(x, w, b, pool)
            return [(got, answers.max_pool(wanted, pool) if pool > 1 else wanted)]

        return run

    yield KernelCase(group, "vector_add_tiled 128", added("vector_add_tiled", 25_600, "ROW_CHUNK", 128))
    yield KernelCase(group, "vector_add_stream 200", added("vector_add_stream", 25_600, "FREE_DIM", 200))
    yield KernelCase(group, "matrix_transpose", transposed)
    for pool in (1, 2):
        for dtype in (np.float32, np.float16):
            yield KernelCase(group, f"conv2d {np.dtype(dtype).name} pool {pool}", convolved(pool, dtype))


def nkipy(root: Path) -> Iterator[KernelCase]:
    def run(rows: int, dtype: Any) -> Any:
        x, g = floats(rows, 512, dtype=dtype), floats(512, seed=1, dtype=dtype)
        kernel = load(root / "examples/models/gpt_oss/kernels/nki/rmsnorm.py").nki_rmsnorm_kernel
        return [(kernel(x, g, 1e-5), answers.rmsnorm(x, g.astype(np.float32), 1e-5))]

    yield KernelCase("nkipy", "gpt_oss rmsnorm f32", lambda: run(256, np.float32))
    yield KernelCase("nkipy", "gpt_oss rmsnorm bf16, 200 rows", lambda: run(200, _bf16()))
