"""NKIBench's operators with the references beside them, and the kernels that others wrote for them."""

import csv
import json
import re
import statistics
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from nki_cases.case import BETA_HEAD, KernelCase, load, load_text

OPERATORS = ("adamw", "add_rmsnorm_matmul", "bmm_softmax", "bmm", "gqa_full", "lora", "mamba", "matmul_add_rmsnorm",
             "transpose_matmul", "rmsnorm_matmul", "matmul", "rope", "silu", "swiglu")


@lru_cache(maxsize=1)
def _answers(reference: Path) -> tuple[Any, Any, Any]:
    """The module, its inputs, and what it gives: versions of an operator share them."""
    r = load(reference)
    np.random.seed(0)
    inputs = r.get_inputs()
    return r, inputs, r.forward(*inputs)


def _judged(reference: Path, module: Any) -> list[tuple[Any, Any]]:
    r, inputs, wanted = _answers(reference)
    outputs = r.transform_nki_outputs(module.kernel(*r.transform_to_nki_inputs(inputs)), wanted)
    return list(zip(outputs, wanted if isinstance(wanted, tuple) else (wanted,), strict=False))


def _reference(root: Path, operator: str) -> Path | None:
    found = [p for p in sorted((root / "NKIBench/reference").glob("*_numpy_*.py"))
             if p.name.startswith(f"{operator}_M") or p.name.startswith(f"{operator}_B")
             or p.name.startswith(f"{operator}_single")]
    return found[0] if found else None


def _case(group: str, reference: Path, path: Path, chip: str = "", ms: float = 0) -> KernelCase:
    def run() -> Any:
        text = path.read_text()
        module = load(path) if "import neuronxcc" in text else load_text(text, BETA_HEAD)
        return _judged(reference, module)

    published = f"{1e3 * ms:.4g} us" if ms else ""
    return KernelCase(group, path.stem, run, 3e-5, chip, published, lambda: _answers(reference))


def nkibench(root: Path) -> Iterator[KernelCase]:
    csv.field_size_limit(1 << 30)
    with (root / "experiments/full_complete_local/profile_results.csv").open() as file:
        times = {Path(row["kernel"]).name: float(json.loads(row["profile"])["latency"]) for row in csv.DictReader(file)}
    for operator in OPERATORS:
        reference = _reference(root, operator)
        for path in sorted((root / "NKIBench/kernels").glob("*.py")):
            if reference is not None and path.name.rsplit("_", 1)[0] == reference.name.rsplit("_", 2)[0]:
                yield _case("AccelOpt NKIBench", reference, path, "trn1", times.get(path.name, 0))
    for name, operator in (("mamba_v1", "mamba"), ("mamba_v2", "mamba"), ("mamba_v3", "mamba"),
                           ("mamba_optimized", "mamba"), ("rope_optimized", "rope")):
        reference = _reference(root, operator)
        if reference is not None:
            yield _case("AccelOpt samples", reference, root / f"samples/nki/{name}.py")


def kda(root: Path, nkibench_root: Path) -> Iterator[KernelCase]:
    for workspace in sorted((root / "workspaces").iterdir()):
        reference = _reference(nkibench_root, workspace.name.removesuffix("_single_freq_apply"))
        measured: dict[str, list[float]] = {}
        wrong: set[str] = set()
        with (workspace / "benchmark.csv").open() as file:
            for row in csv.DictReader(file):
                wrong |= {Path(row["candidate"]).name} if row["passed"] == "false" else set()
                if row["passed"] == "true" and re.fullmatch(r"[0-9.]+", row["latency_ms"] or ""):
                    measured.setdefault(Path(row["candidate"]).name, []).append(float(row["latency_ms"]))
        for path in sorted((workspace / "runs").glob("*.py")):
            if reference is not None and "def kernel(" in path.read_text():
                ms = statistics.median(measured[path.name]) if path.name in measured else 0
                case = _case("kda-for-trainium", reference, path, "trn2", ms)
                if path.name in wrong and not ms:
                    case.published = "wrong by its author's check"
                yield case
