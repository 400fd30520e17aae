"""autocomp's harnesses as they stand: scripts that put a kernel beside its authors' reference, and judge it themselves.

They need torch; torch_xla's device is this machine."""

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from nki_cases.case import KernelCase, load_text

PARTS = ("trn-internal", "trn-e2e")  # searched.py calls the others with smaller arrays

NEEDED = ("# SUBSTITUTE HERE", "\ndef ref(", "\ndef test_nki(")  # the others judge a whole layer


def harnesses(root: Path) -> Iterator[KernelCase]:
    for part in PARTS:
        for harness in sorted((root / "harnesses" / part).glob("*.py")):
            stem = harness.stem.removesuffix("_test")
            found = [p for p in ((root / "sols" / part / f"{stem}{end}.py") for end in ("_ref", "")) if p.exists()]
            if not found or any(part not in harness.read_text() for part in NEEDED):
                continue

            def run(harness: Path = harness, solution: Path = found[0]) -> Any:
                if "import torch" in harness.read_text():
                    importlib.import_module("torch")
                module = load_text(harness.read_text().replace("# SUBSTITUTE HERE", solution.read_text()), "")
                return [(np.float32(bool(module.test_nki(module.ref, module.solution))), np.float32(1))]

            yield KernelCase("autocomp harnesses", f"{part} {stem}", run)
