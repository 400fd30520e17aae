"""One kernel of the corpus, and how its answer is judged."""

import importlib.util
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass
class KernelCase:
    group: str
    name: str
    run: Callable[[], list[tuple[Any, Any]]]  # what came out, and what should
    tolerance: float = 2e-2  # of the error's norm over the answer's
    chip: str = ""  # that its time is published for
    published: str = ""  # the time of this call
    prepare: Callable[[], Any] = lambda: None  # what the runs of several share, before each has a process of its own


def load(path: Path, folder: Path | None = None) -> Any:
    """A file as a module; imports beside it work."""
    for place in {str(path.parent), str(folder or path.parent)}:
        if place not in sys.path:
            sys.path.insert(0, place)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def load_text(text: str, head: str) -> Any:
    """A kernel's text that lacks its imports."""
    path = Path(tempfile.mkdtemp()) / "kernel_text.py"
    path.write_text(head + "\n" + text)
    return load(path)


BETA_HEAD = """import math
import numpy as np
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.typing as nt
from neuronxcc.nki.language import par_dim
"""
HEAD = """import math
import numpy as np
import nki
import nki.language as nl
import nki.isa as nisa
"""


def random(seed: int = 0) -> Any:
    return np.random.default_rng(seed)


def floats(*shape: int, seed: int = 0, dtype: Any = np.float32) -> Any:
    return random(seed).random(shape, dtype=np.float32).astype(dtype)


def error(got: Any, wanted: Any) -> float:
    """The norm of what differs over the answer's norm."""
    a, b = np.asarray(got).astype(np.float64), np.asarray(wanted).astype(np.float64)
    if a.size != b.size:
        return float("inf")
    a = a.reshape(b.shape)
    return float(np.linalg.norm(a - b) / max(np.linalg.norm(b), 1e-30))
