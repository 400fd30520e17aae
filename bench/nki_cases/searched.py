"""autocomp's kernels and steps, and nki-autotune's."""

import ast
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from nki_cases import answers
from nki_cases.case import BETA_HEAD, HEAD, KernelCase, floats, load, load_text

Inputs = Callable[[], tuple[tuple[Any, ...], Any]]


def _bf16() -> Any:
    import ml_dtypes

    return ml_dtypes.bfloat16


def _rmsnorm() -> Any:
    a, g = floats(512, 4096), floats(4096, seed=1)
    return (a, g), answers.rmsnorm(a, g)


def _layernorm() -> Any:
    x, g, b = floats(512, 8192), floats(8192, seed=1), floats(8192, seed=2)
    return (x, 1e-5, g, b), answers.layernorm(x, 1e-5, g, b)


def _gemm() -> Any:
    a, b = floats(2048, 2048, dtype=_bf16()), floats(2048, 2048, seed=1, dtype=_bf16())
    return (a, b), a.astype(np.float32).T @ b.astype(np.float32)


def _mamba(spread: bool = False) -> Any:
    delta, u = floats(1, 256, 2048), floats(1, 256, 2048, seed=1)
    a, b, c = -floats(256, 16, seed=2), floats(1, 16, 2048, seed=3), floats(1, 16, 2048, seed=4)
    wanted = answers.mamba(delta, u, a, b, c)
    if spread:
        b, c = (np.repeat(x, 128, axis=1) for x in (b, c))
    return (delta, u, a, b, c), wanted


def _attention() -> Any:
    q, k, v = (floats(128, 4096, seed=s) for s in range(3))
    return (q, k, v), answers.attention(q, k, v.T)


def _cumsum() -> Any:
    x = floats(2048, 2048)
    return (x,), x.cumsum(-1)


def _transpose() -> Any:
    x = floats(64, 512, 512)
    return (x, 1), x.transpose(0, 2, 1)


def _maxpool() -> Any:
    x = floats(448, 448)
    return (x, 3), answers.pooled(x, 3, np.max)


def _rope() -> Any:
    x, cos, sin = floats(128, 4096), floats(64, 4096, seed=1), floats(64, 4096, seed=2)
    e, o = x[:64], x[64:]
    return (x, cos, sin), np.concatenate([e * cos - o * sin, o * cos + e * sin])


def _causal(heads: int = 0) -> Any:
    """The harnesses' random numbers are all positive; without heads, the kernel has none."""
    n = max(heads, 1)
    q, k, v = floats(n, 2048, 128), floats(n, 128, 2048, seed=1), floats(n, 2048, 128, seed=2)
    wanted = np.stack([answers.attention(q[h].T, k[h], v[h], causal=True) for h in range(n)])
    given = (q, k, v) if heads else (q[0], k[0], v[0])
    return (*given, _bf16(), np.float32), wanted if heads else wanted[0]


def _conv1d() -> Any:
    x, w = floats(8, 512, 1, 2048), floats(512, 1, 1, 3, seed=1)
    padded = np.pad(x, ((0, 0), (0, 0), (0, 0), (1, 1)))
    wanted = sum(padded[..., k:k + 2048] * w[:, 0, 0, k][None, :, None, None] for k in range(3))
    return (x, w), wanted


def _sdattention() -> Any:
    q, k, v = (floats(4096, 64, seed=s) for s in range(3))
    return (q, k, v), answers.attention(q.T, k.T, v, scale=0.125)


def _conv2d(transposed: bool = False) -> Any:
    x, w = floats(1, 128, 128, 128), floats(512, 128, 3, 3, seed=1)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    wanted = answers.convolved(padded, w, np.zeros(512, np.float32))
    return (x, np.ascontiguousarray(w.transpose(1, 2, 3, 0)) if transposed else w), wanted


_AS_IS = [0, 1, 2, 3]
NAMED: dict[str, dict[str, Any]] = {
    "4_conv1d": {"padding": ((0, 0), (1, 1))},
    "5_conv2d": {"padding": ((1, 1), (1, 1)), "stride": (1, 1), "rhs_dilation": (1, 1), "in_perm": _AS_IS, "kern_perm": _AS_IS,
                 "out_perm": _AS_IS}}  # fmt: skip
UNSAID = {("6_csa_2048", "nki2"), ("8_mha", "nki2")}  # they take a mask whose form their harnesses alone say
OTHER: dict[tuple[str, str], Inputs] = {("3_mamba", "nki2"): lambda: _mamba(True), ("5_conv2d", "nki2"): lambda: _conv2d(True)}

# What a harness has above the kernel that it judges.
ABOVE = """
def div_ceil(n, d):
    return -(-n // d)

def normalize_dim(axis, rank):
    return axis % rank

def n_elts(shape):
    return math.prod(shape)
"""
TUTORIAL: dict[str, Inputs] = {"0_rmsnorm": _rmsnorm, "1_layernorm": _layernorm, "2_gemm": _gemm, "3_mamba": _mamba,
                               "4_attention": _attention, "5_sdattention": _sdattention}
ADVANCED: dict[str, Inputs] = {"0_cumsum": _cumsum, "1_transpose": _transpose, "2_maxpool": _maxpool, "3_rope": _rope,
                               "4_conv1d": _conv1d, "5_conv2d": _conv2d, "6_csa_2048": _causal, "8_mha": lambda: _causal(8)}


def _steps(path: Path) -> list[str]:
    """The kernel's text at each step of a trace."""
    texts: list[str] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.keyword) and node.arg == "code" and isinstance(node.value, ast.Constant):
            text = str(node.value.value)
            if text not in texts:
                texts.append(text)
    return texts[::-1]


def _case(group: str, name: str, text: Callable[[], str], head: str, inputs: Inputs) -> KernelCase:
    def run() -> Any:
        module = load_text(text(), head + ABOVE)
        kernel = getattr(module, "solution", None) or getattr(module, "test", None) or module.optimized
        args, wanted = inputs()
        out = kernel(*args, **NAMED.get(name.rsplit(" ", 1)[-1], {}))
        if isinstance(out, tuple) and len(out) == 3:  # attention without its divisor, the sums' logarithms, the largest scores
            out = out[0].astype(np.float32) / np.exp(out[1] - out[2])
        return [(out[0] if isinstance(out, tuple) else out, wanted)]

    return KernelCase(group, name, run, 0.15 if name.endswith("8_mha") else 2e-2)  # its sums' logarithms are bf16, near 40


def autocomp(root: Path) -> Iterator[KernelCase]:
    for dialect, head in (("nki1", BETA_HEAD), ("nki2", HEAD)):
        for part, table in (("trn-tutorial", TUTORIAL), ("trn-advanced", ADVANCED)):
            for name, inputs in table.items():
                path = root / f"sols/{part}-{dialect}/{name}_ref.py"
                given = OTHER.get((name, dialect), inputs)
                if (name, dialect) in UNSAID:
                    continue
                if path.exists():
                    yield _case("autocomp", f"{part}-{dialect} {name}", path.read_text, head, given)
    examples = root / "examples/trn-tutorial"
    for stem, inputs in {"1_gemm": _gemm, "2_gemm": _gemm, "3_mamba": _mamba, "4_attention": _attention,
                         "5_sd_attention": _sdattention}.items():  # fmt: skip
        path = examples / f"{stem}_opt.py"
        yield _case("autocomp", f"examples {stem}_opt", path.read_text, BETA_HEAD, inputs)
        try:
            steps = _steps(examples / f"{stem}_trace.py")
        except SyntaxError:
            continue
        for k, text in enumerate(steps):
            yield _case("autocomp", f"examples {stem} step {k}", lambda text=text: text, BETA_HEAD, inputs)


def _without_nkigym() -> None:
    """kernel_transforms.py imports its authors' checker, which it needs only as a script."""
    for name in ("nkigym", "nkigym.synthesis"):
        sys.modules.setdefault(name, types.ModuleType(name))
    sys.modules["nkigym.synthesis"].simulate_fp32 = None  # type: ignore[attr-defined]


def autotune(root: Path) -> Iterator[KernelCase]:
    def inputs() -> Any:
        rng = np.random.default_rng(0)
        a, b = (rng.standard_normal((2048, 2048)).astype(_bf16()) for _ in range(2))
        return a, b

    def product(path: Path, name: str, left_transposed: bool) -> Callable[[], Any]:
        def run() -> Any:
            a, b = inputs()
            left = a.astype(np.float32)
            wanted = (left.T if left_transposed else left) @ b.astype(np.float32)
            _without_nkigym()
            module = load(path, root)
            found = getattr(module, name, None) or _only_kernel(module)
            return [(found(a, b), wanted)]
        return run

    for k in range(16):
        yield KernelCase("nki-autotune", f"kernel_{k}", product(root / "kernel_transforms.py", f"kernel_{k}", True))
    yield KernelCase("nki-autotune", "lhsT_rhs 90.92", product(
        root / "kernel_library/matmul/lhsT_rhs/kernel_hand_90.92mfu.py", "kernel", True))
    yield KernelCase("nki-autotune", "lhs_rhs 89.26", product(
        root / "kernel_library/matmul/lhs_rhs/kernel_handtuned_89.26mfu.py", "kernel", False))

    def online() -> Any:
        a, b = inputs()
        module = load(root / "kernel_library/rmsnorm_matmul/kernel_hand_online.py", root)
        return [(module.rmsnorm_matmul_online(a, b),
                 answers.rmsnorm(a, 1.0, 1e-6) @ b.astype(np.float32))]

    yield KernelCase("nki-autotune", "rmsnorm_matmul online", online)


def _only_kernel(module: Any) -> Any:
    """The last kernel that a module defines."""
    return [v for v in vars(module).values() if type(v).__name__ == "Kernel"][-1]
