"""How well the timing of NKI kernels orders versions of one kernel that were measured on hardware.

    python bench/nki_ladders.py --kda PATH --nkibench PATH [--samples PATH] [--only OP]

PATHs are checkouts of public repositories: Jerry2423/kda-for-trainium (versions of 14 operators with measured times),
zhang677/AccelOpt (their inputs, in NKIBench), aws-neuron/nki-samples (the matmul tutorial, whose times its page
states). Prints for each ladder Kendall's tau over the pairs whose measured times differ by 10% or more, and of the pairs
that were ranked with disjoint intervals how many are right.
"""

import argparse
import csv
import importlib.util
import itertools
import json
import pathlib
import re
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

DIFFERENT = 1.1  # measured times that differ by less are no pair


@dataclass
class Version:
    name: str
    measured: float  # any unit
    timing: Any = None
    fault: str = ""


@dataclass
class Ladder:
    name: str
    versions: list[Version] = field(default_factory=list)

    def pairs(self) -> Iterator[tuple[Version, Version]]:
        """Of timed versions: the slower one first, as measured."""
        for a, b in itertools.combinations([v for v in self.versions if v.timing], 2):
            slow, fast = (a, b) if a.measured > b.measured else (b, a)
            if slow.measured >= DIFFERENT * fast.measured:
                yield slow, fast


def load(path: pathlib.Path) -> Any:
    spec = importlib.util.spec_from_file_location("version_" + path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def attempt(version: Version, run: Any, chip: str) -> None:
    from trellis.nki import timing

    try:
        begun = time.monotonic()
        trace = run()
        traced = time.monotonic()
        version.timing = timing.time_of(trace, chip)
        print(f"  {version.name:44} {version.measured:9.4g}  {version.timing.seconds * 1e6:10.1f} us "
              f"[{version.timing.low * 1e6:.1f}, {version.timing.high * 1e6:.1f}]  {len(trace)} instructions, "
              f"{traced - begun:.1f} s + {time.monotonic() - traced:.1f} s", flush=True)  # fmt: skip
    except Exception as e:  # a table of what runs: the fault is its row
        version.fault = f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"
        print(f"  {version.name:44} {version.measured:9.4g}  {version.fault[:140]}", flush=True)


def kda(root: pathlib.Path, bench: pathlib.Path, only: str) -> Iterator[Ladder]:
    cases = json.loads((root / "baselines.json").read_text())
    for case in cases.values():
        op = case["op"]
        if only and only not in op:
            continue
        stem = case["kernel"].removesuffix("_0.py")
        reference = load(next((bench / "reference").glob(stem + "_numpy_*.py")))
        inputs = reference.transform_to_nki_inputs(reference.get_inputs())
        measured: dict[str, list[float]] = {}
        with (root / "workspaces" / op / "benchmark.csv").open() as file:
            for row in csv.DictReader(file):
                number = re.fullmatch(r"[0-9.]+", row["latency_ms"] or "")
                if row["passed"] == "true" and number and row["candidate"].startswith("runs/"):
                    measured.setdefault(row["candidate"], []).append(float(row["latency_ms"]))
        ladder = Ladder("kda " + op)
        print(ladder.name, flush=True)
        texts = [(root / "workspaces" / op / c, statistics.median(times)) for c, times in measured.items()]
        texts.append((bench / "kernels" / case["kernel"], case["baseline_latency_ms"]))
        for path, ms in texts:
            if not path.exists():
                continue

            def run(path: pathlib.Path = path) -> Any:
                kernel = load(path).kernel
                kernel(*inputs)
                return kernel.trace

            ladder.versions.append(Version(path.stem, ms))
            attempt(ladder.versions[-1], run, "trn2")
        yield ladder


TUTORIAL = {"nki_matmul_tiled_": 51.8, "nki_matmul_hoist_load_": 42.96, "nki_matmul_fully_optimized_": 6.97}  # ms, trn1


def samples(root: pathlib.Path, only: str) -> Iterator[Ladder]:
    if only and only not in "tutorial matmul":
        return
    import ml_dtypes

    where = root / "src/nki_samples/tutorials/matrix_multiplication/matrix_multiplication_nki_kernels.py"
    module = load(where)
    ladder = Ladder("tutorial matmul")
    print(ladder.name)
    a, b = np.zeros((8192, 4096), ml_dtypes.bfloat16), np.zeros((8192, 8192), ml_dtypes.bfloat16)
    for name, ms in TUTORIAL.items():

        def run(name: str = name) -> Any:
            kernel = getattr(module, name)
            kernel(a, b)
            return kernel.trace

        ladder.versions.append(Version(name, ms))
        attempt(ladder.versions[-1], run, "trn1")
    yield ladder


def tau(pairs: list[tuple[Version, Version]]) -> float:
    signs = [np.sign(slow.timing.seconds - fast.timing.seconds) for slow, fast in pairs]
    return float(np.mean(signs)) if signs else float("nan")


def report(ladders: list[Ladder]) -> None:
    print(f"\n{'ladder':34} versions timed pairs    tau ranked  right  ratio to measured")
    everything: list[tuple[Version, Version]] = []
    for ladder in ladders:
        pairs = list(ladder.pairs())
        everything += pairs
        timed = [v for v in ladder.versions if v.timing]
        ranked = [(s, f) for s, f in pairs if s.timing.low > f.timing.high or f.timing.low > s.timing.high]
        right = sum(s.timing.low > f.timing.high for s, f in ranked)
        ratios = [v.timing.seconds * 1e3 / v.measured for v in timed]
        middle = statistics.median(ratios) if ratios else float("nan")
        print(f"{ladder.name:34} {len(ladder.versions):8} {len(timed):5} {len(pairs):5} {tau(pairs):6.2f} {len(ranked):6} "
              f"{right:6}  {middle:.2f}")
    ranked = [(s, f) for s, f in everything if s.timing.low > f.timing.high or f.timing.low > s.timing.high]
    right = sum(s.timing.low > f.timing.high for s, f in ranked)
    print(f"all: {len(everything)} pairs, tau {tau(everything):.2f}; {len(ranked)} ranked, {right} of them right")


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("kda", "nkibench", "samples"):
        p.add_argument("--" + name, type=pathlib.Path)
    p.add_argument("--only", default="", help="ladders whose name has this")
    options = p.parse_args()
    if options.kda and not options.nkibench:
        p.error("--kda needs --nkibench, the folder NKIBench of zhang677/AccelOpt, for the kernels' inputs")
    import trellis.nki as nki

    nki.settings.compute = False
    ladders: list[Ladder] = []
    with nki.as_nki():
        if options.samples:
            ladders += samples(options.samples, options.only)
        if options.kda:
            ladders += kda(options.kda, options.nkibench, options.only)
    report(ladders)
    return 0


if __name__ == "__main__":
    sys.exit(main())
