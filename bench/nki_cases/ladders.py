"""Versions of one kernel that others measured on hardware, by the checkout that has their text."""

import ast
import csv
import json
import re
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from nki_cases.case import BETA_HEAD, load, load_text

Run = Callable[[], Any]  # the trace

STATIC_DESCRIPTORS = (("dma.generate", "0 ns"), ("dma.descriptor.write", "0 ns"))  # compiled with --disable-dge
OF_2024 = (("dma.prefetch", "0"), ("dma.interval", "350 ns"))  # by compilers to 2.21: dma.interval.2024 of trn1.chip


@dataclass
class Measured:
    name: str
    value: float  # a time, in any unit
    run: Run


@dataclass
class LadderCase:
    """Versions of one kernel; or, where `alike` is false, kernels whose times alone are compared."""

    name: str
    chip: str
    versions: list[Measured]
    us: float = 1e3  # microseconds in a unit of the measured values
    alike: bool = True
    halved: bool = False  # a value may be the whole time or half of it
    changes: tuple[tuple[str, str], ...] = ()  # of the chip's figures, as the flags of the compiler were


def traced(kernel: Any, *arguments: Any) -> Any:
    """The last kernel that a call runs."""
    from trellis.nki.kernels.jit import settings

    seen: list[Any] = []
    settings.watchers.append(watch := lambda trace, _: seen.append(trace))
    try:
        kernel(*arguments)
    finally:
        settings.watchers.remove(watch)
    return seen[-1]


def zeros(*shape: int, dtype: Any = np.float32) -> Any:
    return np.zeros(shape, dtype)


def bf16(*shape: int) -> Any:
    import ml_dtypes

    return np.zeros(shape, ml_dtypes.bfloat16)


# KDA's versions whose value is a whole time, by benchmark.csv: the share of time that Scalar is busy is 34% in silu_v1, of
# 0.3009 ms, and in silu_v2_pingpong, of 0.5889; 25% in silu_v2_k4, of 0.3971, and in silu_v2_k3, of 0.7729. All four give
# it the same work. Shares of other operators' versions agree with their values.
WHOLE = ("silu_v2_pingpong", "silu_v2_k3")


def kda(root: Path, bench: Path) -> Iterator[LadderCase]:
    """14 operators of NKIBench in 5 to 17 versions each, Trainium 2.

    Its values are medians of samples of which, where a distribution is given, every other one is of nothing (min 0.0098
    ms, mean 0.7733, p90 1.5373, max 1.5383): the median is then the mean of both, half the time."""
    for case in json.loads((root / "baselines.json").read_text()).values():
        op = case["op"]
        stem = case["kernel"].removesuffix("_0.py")
        reference = load(next((bench / "reference").glob(stem + "_numpy_*.py")))
        measured: dict[str, list[float]] = {}
        with (root / "workspaces" / op / "benchmark.csv").open() as file:
            for row in csv.DictReader(file):
                number = re.fullmatch(r"[0-9.]+", row["latency_ms"] or "")
                if row["passed"] == "true" and number and row["candidate"].startswith("runs/"):
                    measured.setdefault(row["candidate"], []).append(float(row["latency_ms"]))
        texts = [(root / "workspaces" / op / c, statistics.median(times) / (2 if Path(c).stem in WHOLE else 1))
                 for c, times in measured.items()]  # fmt: skip
        texts.append((bench / "kernels" / case["kernel"], case["baseline_latency_ms"]))

        inputs = cache(lambda reference=reference: reference.transform_to_nki_inputs(reference.get_inputs()))

        def run(path: Path, inputs: Any = inputs) -> Any:
            return traced(load(path).kernel, *inputs())

        yield LadderCase(f"kda {op}", "trn2", [Measured(p.stem, ms, lambda p=p, run=run: run(p))
                                               for p, ms in texts if p.exists()], halved=True,
                         changes=STATIC_DESCRIPTORS)  # fmt: skip


def tutorial(root: Path) -> Iterator[LadderCase]:
    """The SDK's tutorials, Trainium 1: bf16 products of 4096 x 8192 x 8192, and fused Mamba of 4,096 channels."""
    folder = root / "src/nki_samples/tutorials"
    path = folder / "matrix_multiplication/matrix_multiplication_nki_kernels.py"
    times = {"tiled_": 51.8, "hoist_load_": 42.96, "fully_optimized_": 6.97}
    yield LadderCase("tutorial matmul", "trn1", [
        Measured(name.strip("_"), ms, lambda name=name: traced(getattr(load(path), f"nki_matmul_{name}"),
                                                               bf16(8192, 4096), bf16(8192, 8192)))
        for name, ms in times.items()], changes=OF_2024)  # fmt: skip
    mamba = folder / "fused_mamba/mamba_nki_kernels.py"
    tables = {512: {"v1": 2.34, "v2": 1.61}, 1024: {"v2": 4.4, "v3": 3.3}, 2048: {"v2": 8.9, "v3": 6.6},
              4096: {"v2": 17.6, "v3": 13.3}, 8192: {"v2": 52.2, "v3": 27.8}}  # fmt: skip
    for n, table in tables.items():
        channels = 4096
        inputs = (zeros(1, channels, n), zeros(1, channels, n), zeros(channels, 16), zeros(1, 16, n), zeros(1, 16, n))
        yield LadderCase(f"tutorial mamba {n}", "trn1", [
            Measured(v, ms, lambda v=v, inputs=inputs: traced(getattr(load(mamba), f"mamba_{v}"), *inputs))
            for v, ms in table.items()])  # fmt: skip


def _scored(path: Path) -> list[tuple[str, float]]:
    """Text and score of each step of a search, the first one first."""
    found: list[tuple[str, float]] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            values = {k.arg: k.value.value for k in node.keywords if isinstance(k.value, ast.Constant)}
            if isinstance(values.get("code"), str) and isinstance(values.get("score"), float):
                found.append((str(values["code"]), float(values["score"])))
    return found[::-1]


def autocomp(root: Path) -> Iterator[LadderCase]:
    """Steps of three searches, Trainium 1."""
    n, half = 8192, 4096
    inputs: dict[str, Callable[[], tuple[Any, ...]]] = {
        "1_gemm": lambda: (bf16(n, half), bf16(n, n)),
        "3_mamba": lambda: (zeros(1, 256, 2048), zeros(1, 256, 2048), zeros(256, 16), zeros(1, 16, 2048), zeros(1, 16, 2048)),
        "4_attention": lambda: (bf16(128, 4096), bf16(128, 4096), bf16(128, 4096)),
    }
    for stem, make in inputs.items():
        try:
            steps = _scored(root / f"examples/trn-tutorial/{stem}_trace.py")
        except SyntaxError:
            continue

        def run(text: str, make: Any = make) -> Any:
            module = load_text(text, BETA_HEAD)
            kernel = getattr(module, "solution", None) or getattr(module, "test", None) or module.optimized
            return traced(kernel, *make())

        yield LadderCase(f"autocomp {stem[2:]}", "trn1", [
            Measured(f"step {k}", ms, lambda text=text, run=run: run(text)) for k, (text, ms) in enumerate(steps)])  # fmt: skip


def cs149(root: Path) -> Iterator[LadderCase]:
    """Additions of vectors of 25,600 by a student, Trainium 2, in microseconds."""
    text = (root / "part1/kernels.py").read_text()

    def run(name: str, constant: str, value: int) -> Any:
        changed = re.sub(rf"\b{constant} = \d+", f"{constant} = {value}", text)
        return traced(getattr(load_text(changed, ""), name), zeros(25_600), zeros(25_600))

    versions = [("vector_add_tiled", "ROW_CHUNK", 1, 37_308), ("vector_add_tiled", "ROW_CHUNK", 128, 378),
                ("vector_add_stream", "FREE_DIM", 2, 186), ("vector_add_stream", "FREE_DIM", 200, 15)]  # fmt: skip
    yield LadderCase("cs149 vector add", "trn2", [
        Measured(f"{name} {value}", us, lambda name=name, constant=constant, value=value: run(name, constant, value))
        for name, constant, value, us in versions], us=1)  # fmt: skip
    convolution = root / "part2/conv2d.py"

    def conv(dtype: Any, pool: int) -> Any:
        kernel = load(convolution).fused_conv2d_maxpool
        return traced(kernel, zeros(1, 256, 224, 224, dtype=dtype), zeros(256, 256, 3, 3, dtype=dtype), zeros(256, dtype=dtype), pool)

    yield LadderCase("cs149 convolution", "trn2", [
        Measured(f"{np.dtype(dtype).name} pool {pool}", us, lambda dtype=dtype, pool=pool: conv(dtype, pool))
        for dtype, pool, us in ((np.float32, 1, 3832), (np.float16, 1, 824), (np.float32, 2, 3829), (np.float16, 2, 824))],
        us=1)  # fmt: skip


def fusion(root: Path) -> Iterator[LadderCase]:
    """Products with GELU, fused in two ways, Trainium 2, in microseconds."""
    table = {(128, 128, 512): (21, 26, 19, 23), (256, 512, 1024): (40, 53, 28, 40), (512, 1024, 2048): (150, 159, 56, 96),
             (1024, 2048, 4096): (1074, 1297, 288, 403), (2048, 4096, 4096): (4187, 4620, 1554, 1919)}  # fmt: skip
    path = root / "kernels/fused/mlp.py"
    for (m, k, n), times in table.items():
        for kind, of, pwl, taylor in (("f32", zeros, times[0], times[1]), ("bf16", bf16, times[2], times[3])):
            inputs = of(k, m), of(k, n), of(1, n)
            yield LadderCase(f"fusion mlp {kind} {m}x{k}x{n}", "trn2", [
                Measured(name, us, lambda name=name, inputs=inputs: traced(getattr(load(path, root), name), *inputs))
                for name, us in (("fused_mlp_pwl", pwl), ("fused_mlp_taylor", taylor))], us=1)  # fmt: skip


def nkibench(root: Path) -> Iterator[LadderCase]:
    """Mamba and RoPE of NKIBench, as given and optimised, Trainium 1."""
    pairs = {"mamba": ("mamba_M7168", 2.888663, 2.277542), "rope": ("rope_single_freq_apply_B1", 4.333, 3.333)}
    for name, (stem, slow, fast) in pairs.items():
        reference = load(next((root / "NKIBench/reference").glob(stem + "*_numpy_*.py")))
        texts = [(next((root / "NKIBench/kernels").glob(stem + "*.py")), slow), (root / f"samples/nki/{name}_optimized.py", fast)]

        def run(path: Path, reference: Any = reference) -> Any:
            text = path.read_text()
            module = load(path) if "import neuronxcc" in text else load_text(text, BETA_HEAD)
            return traced(module.kernel, *reference.transform_to_nki_inputs(reference.get_inputs()))

        yield LadderCase(f"nkibench {name}", "trn1", [Measured(p.stem, ms, lambda p=p, run=run: run(p)) for p, ms in texts])


def autotune(root: Path) -> Iterator[LadderCase]:
    """Products of 2048 cubed in bf16, Trainium 2: what of the ladder's text is there, in ms from its share of the peak."""
    from nki_cases.searched import _only_kernel, _without_nkigym

    def run(path: str, name: str) -> Any:
        _without_nkigym()
        module = load(root / path, root)
        return traced(getattr(module, name, None) or _only_kernel(module), bf16(2048, 2048), bf16(2048, 2048))

    peak_ms = 2 * 2048**3 / 78.6e12 * 1e3
    versions = [("kernel_0", "kernel_transforms.py", 16.0), ("kernel", "kernel_library/matmul/lhs_rhs/kernel_handtuned_89.26mfu.py", 89.26),
                ("kernel", "kernel_library/matmul/lhsT_rhs/kernel_hand_90.92mfu.py", 90.92)]  # fmt: skip
    yield LadderCase("nki-autotune matmul", "trn2", [
        Measured(f"{share}%", peak_ms * 100 / share, lambda path=path, name=name: run(path, name))
        for name, path, share in versions])  # fmt: skip
