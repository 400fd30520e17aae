"""aws-neuron/nki-samples, the examples of aws-neuron-sdk, and the CS149 course's kernels."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from nki_cases import answers
from nki_cases.case import KernelCase, floats, load, random


def _bf16() -> Any:
    import ml_dtypes

    return ml_dtypes.bfloat16


def matmuls(group: str, path: Path) -> Iterator[KernelCase]:
    shapes = {"basic_": (128, 64, 512), "tiled_": (512, 512, 1024), "hoist_load_": (512, 512, 1024),
              "block_free_dimension_": (512, 512, 1024), "fully_optimized_": (2048, 2048, 1024)}
    for name, (k, m, n) in shapes.items():
        def run(name: str = name, k: int = k, m: int = m, n: int = n) -> Any:
            a, b = floats(k, m, dtype=_bf16()), floats(k, n, seed=1, dtype=_bf16())
            return [(getattr(load(path), f"nki_matmul_{name}")(a, b), a.astype(np.float32).T @ b.astype(np.float32))]
        yield KernelCase(group, f"matmul {name.strip('_')}", run)


def mambas(group: str, path: Path) -> Iterator[KernelCase]:
    for version in ("mamba_v1", "mamba_v2", "mamba_v3"):
        def run(version: str = version) -> Any:
            delta, u = floats(1, 256, 512), floats(1, 256, 512, seed=1)
            a, b, c = -floats(256, 16, seed=2), floats(1, 16, 512, seed=3), floats(1, 16, 512, seed=4)
            return [(getattr(load(path), version)(delta, u, a, b, c), answers.mamba(delta, u, a, b, c))]
        yield KernelCase(group, version, run)


def small(group: str, folder: Path, adds: list[tuple[str, str]]) -> Iterator[KernelCase]:
    """Addition, transposition, pooling."""
    for file, name in adds:
        def run(file: str = file, name: str = name) -> Any:
            a, b = floats(512, 2048), floats(512, 2048, seed=1)
            return [(getattr(load(folder / file), name)(a, b), a + b)]
        yield KernelCase(group, Path(file).stem.removesuffix("_nki_kernels"), run)

    def pool() -> Any:
        x = floats(8, 8, 64)
        module = load(folder / "average_pool2d/average_pool2d_nki_kernels.py")
        return [(module.tensor_avgpool_kernel(x, 2), answers.average_pool(x, 2))]

    def transpose() -> Any:
        x = floats(5, 30)
        module = load(folder / "transpose2d/transpose2d_nki_kernels.py")
        return [(module.tensor_transpose2D_kernel_(x, shape2D=(5, 6)),
                 x.reshape(5, 5, 6).transpose(0, 2, 1).reshape(5, 30))]

    yield KernelCase(group, "average_pool2d", pool)
    yield KernelCase(group, "transpose2d", transpose)


def attentions(path: Path) -> Iterator[KernelCase]:
    for version in ("v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v8a", "v9", "v10", "v11"):
        def run(version: str = version) -> Any:
            n = 128 if version in ("v1", "v2") else 1024 if version == "v3" else 2048
            q, k, v = (random(s).standard_normal((128, n)).astype(np.float32) for s in range(3))
            return [(getattr(load(path), f"attn_fwd_{version}")(q, k, v), answers.attention(q, k, v.T))]
        yield KernelCase("nki-samples", f"attention_fwd {version}", run)


def contributed(folder: Path) -> Iterator[KernelCase]:
    def bilinear() -> Any:
        x = floats(2, 64, 32, 32)
        return [(load(folder / "interpolate_bilinear_fwd.py").interpolate_bilinear_2x_fwd(x), answers.doubled(x, (2, 3)))]

    def trilinear() -> Any:
        x = floats(2, 64, 12, 12, 12)
        return [(load(folder / "interpolate_trilinear_fwd.py").interpolate_trilinear_2x_fwd(x),
                 answers.doubled(x, (2, 3, 4)))]

    def pooling() -> Any:
        x = floats(448, 448)
        return [(load(folder / "maxpooling.py").max_pooling_2d_stride_1(x, 3), answers.pooled(x, 3, np.max))]

    def product() -> Any:
        import neuronxcc.nki as nki

        a, b = floats(1024, 1024, dtype=_bf16()), floats(1024, 2048, seed=1, dtype=_bf16())
        kernel = nki.jit(load(folder / "matmul.py").matmul)
        return [(kernel(a, b), a.astype(np.float32).T @ b.astype(np.float32))]

    yield KernelCase("nki-samples", "interpolate_bilinear", bilinear)
    yield KernelCase("nki-samples", "interpolate_trilinear", trilinear)
    yield KernelCase("nki-samples", "maxpooling", pooling)
    yield KernelCase("nki-samples", "matmul (contributed)", product)


def microscaled(group: str, folder: Path) -> Iterator[KernelCase]:
    """The tutorial of microscaled products, by the numpy answers beside it."""

    def packed(name: str) -> Any:
        import nki.language as nl

        return {"float8_e5m2": nl.float8_e5m2_x4, "float8_e4m3fn": nl.float8_e4m3fn_x4,
                "float4_e2m1fn": nl.float4_e2m1fn_x4}[name]

    def offline(name: str) -> Any:
        import ml_dtypes

        cpu, kernels, dtype = load(folder / "mx_cpu_utils.py"), load(folder / "mx_kernels.py"), getattr(ml_dtypes, name)
        _, _, a, a_scale = cpu.generate_stabilized_mx_data(dtype, (128, 512))
        _, _, b, b_scale = cpu.generate_stabilized_mx_data(dtype, (128, 2048))
        return [(kernels.kernel_offline_quantized_mx_matmul(a, a_scale, b, b_scale, packed(name)),
                 cpu.nc_matmul_mx_golden(a, b, a_scale, b_scale, dtype, dtype))]

    def on_device() -> Any:
        import ml_dtypes

        cpu, kernels, dtype = load(folder / "mx_cpu_utils.py"), load(folder / "mx_kernels.py"), ml_dtypes.float8_e5m2
        _, _, a, a_scale = cpu.generate_stabilized_mx_data(dtype, (128, 512))
        data, _, _, _ = cpu.generate_stabilized_mx_data(dtype, (128, 2048))
        b, b_scale = cpu.quantize_mx_golden(data, dtype)
        got = kernels.kernel_on_device_quantize_matmul_mx(a, a_scale, data.astype(_bf16()), packed("float8_e5m2"),
                                                          packed("float8_e5m2"))
        return [(got, cpu.nc_matmul_mx_golden(a, b, a_scale, b_scale, dtype, dtype))]

    def strided(by_copy: bool) -> Any:
        import ml_dtypes

        cpu, kernels, dtype = load(folder / "mx_cpu_utils.py"), load(folder / "mx_kernels.py"), ml_dtypes.float8_e5m2
        a, _, _, _ = cpu.generate_stabilized_mx_data(dtype, (512, 128))
        b, _, _, _ = cpu.generate_stabilized_mx_data(dtype, (512, 512))
        got = kernels.kernel_copy_strided_quantize_matmul_mx(a.astype(_bf16()), b.astype(_bf16()), packed("float8_e5m2"),
                                                             by_copy)
        return [(got, a.T @ b)]

    yield KernelCase(group, "mx offline f8e5m2", lambda: offline("float8_e5m2"))
    yield KernelCase(group, "mx offline f4e2m1", lambda: offline("float4_e2m1fn"))
    yield KernelCase(group, "mx quantised on the device", on_device)
    yield KernelCase(group, "mx strided by tensor_copy", lambda: strided(True))
    yield KernelCase(group, "mx strided by DMA", lambda: strided(False))


def nki_samples(root: Path) -> Iterator[KernelCase]:
    t = root / "src/nki_samples/tutorials"
    adds = [("tensor_addition/tensor_addition_nki_kernels.py", "nki_tensor_add"),
            ("tensor_addition/spmd_tensor_addition_nki_kernels.py", "nki_tensor_add"),
            ("tensor_addition/spmd_multiple_nc_tensor_addition_nki_kernels.py", "nki_tensor_add_nc2")]
    yield from small("nki-samples", t, adds)
    yield from matmuls("nki-samples", t / "matrix_multiplication/matrix_multiplication_nki_kernels.py")
    yield from mambas("nki-samples", t / "fused_mamba/mamba_nki_kernels.py")
    yield from attentions(t / "attention_fwd_performance/attention_kernels.py")
    yield from microscaled("nki-samples", t / "mxfp-matmul")
    yield from contributed(root / "contributed")


def sdk_examples(root: Path) -> Iterator[KernelCase]:
    e = root / "nki/examples"
    yield from small("aws-neuron-sdk", e, [("tensor_addition/tensor_addition_nki_kernels.py", "nki_tensor_add")])
    yield from matmuls("aws-neuron-sdk", e / "matrix_multiplication/matrix_multiplication_nki_kernels.py")
    yield from mambas("aws-neuron-sdk", e / "fused_mamba/mamba_nki_kernels.py")

    def split() -> Any:
        x = floats(128, 512)
        out = load(e / "index-case-1.py").tensor_split_kernel_(x)
        return list(zip(out, (x[:, 0::2], x[:, 1::2]), strict=True))

    def pool() -> Any:
        x = floats(128, 64, 64)
        return [(load(e / "index-case-3.py").tensor_maxpool_kernel_(x, 2), answers.max_pool(x[None], 2)[0])]

    yield KernelCase("aws-neuron-sdk", "index-case-1", split)
    yield KernelCase("aws-neuron-sdk", "index-case-3", pool)


def cs149(root: Path) -> Iterator[KernelCase]:
    kernels = root / "part1/kernels.py"
    for name, n in (("vector_add_naive", 128), ("vector_add_tiled", 25600), ("vector_add_stream", 25600)):
        def run(name: str = name, n: int = n) -> Any:
            a, b = floats(n), floats(n, seed=1)
            return [(getattr(load(kernels), name)(a, b), a + b)]
        yield KernelCase("asst4-trainium2", name, run)
