"""Scripts and kernels from the command line."""

import argparse
import importlib.util
import os
import runpy
import sys
import warnings
from typing import Any

import numpy as np

from trellis.nki.imports import as_nki
from trellis.nki.kernels.jit import Kernel
from trellis.nki.kernels.session import NkiError, NkiWarning
from trellis.nki.tensors.types import to_dtype, trellis_name
from trellis.nki.timing.commands import COMMANDS, run_command

__all__ = ["argument", "main"]

HELP = """NKI kernels without hardware: files that import nki, or neuronxcc.nki, run unmodified.

  python -m trellis.nki SCRIPT.py [ARGS]                 runs a script, as Python would
  python -m trellis.nki run FILE.py:KERNEL --arg a=4096x4096:bf16 --arg n=8 [--grid 2]
                                                         runs one kernel on random arrays, and says what it did
  python -m trellis.nki profile | compare | check | answer | serve ...
                                                         about time: each has --help

Arguments of a kernel are arrays, NAME=DIMxDIM:TYPE, or values in Python's words, NAME=8. Types are numpy's, NKI's
(bfloat16, float8_e4m3) or Trellis's (bf16, f8e4m3). Before either:"""
_SHORT = {"f32": "float32", "bf16": "bfloat16", "f16": "float16", "f8e4m3": "float8_e4m3", "f8e4m3fn": "float8_e4m3fn",
          "f8e5m2": "float8_e5m2", "i32": "int32", "u32": "uint32", "i8": "int8", "u8": "uint8", "i16": "int16",
          "u16": "uint16"}  # fmt: skip


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser("python -m trellis.nki", description=HELP,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--chip", default="", help="trn1, inf2, trn2 or trn3; else what the kernel says, else trn2")
    p.add_argument("--rules", choices=("strict", "device"), default="strict",
                   help="strict refuses what the documentation forbids; device warns of it and goes on")
    p.add_argument("--shadow", action="store_true", help="even where a real nki or neuronxcc is installed")
    p.add_argument("--no-compute", action="store_true", help="only the trace: no arithmetic, results are zeros")
    p.add_argument("words", nargs=argparse.REMAINDER, metavar="SCRIPT.py [ARGS] | run FILE.py:KERNEL ...")
    return p


def _kernel_parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser("python -m trellis.nki run")
    p.add_argument("kernel", metavar="FILE.py:KERNEL")
    p.add_argument("--arg", action="append", default=[], metavar="NAME=DIMxDIM:TYPE", help="an array, or a value")
    p.add_argument("--grid", default="", help="the kernel's grid, as 2 or 4x2")
    p.add_argument("--seed", type=int, default=0)
    return p


def argument(text: str, random: Any) -> tuple[str, Any]:
    """A --arg as its name and value."""
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"--arg {text}: expected NAME=DIMxDIM:TYPE or NAME=VALUE")
    shape, colon, kind = value.partition(":")
    if colon and all(part.isdigit() for part in shape.split("x")):
        dtype = to_dtype(_SHORT.get(kind, kind))
        dims = tuple(int(n) for n in shape.split("x"))
        if dtype.kind in "iu":
            return name, random.integers(0, 100, dims).astype(dtype)
        return name, random.standard_normal(dims).astype(np.float32).astype(dtype)
    import ast

    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


def load_file(path: str) -> Any:
    """A file as a module, with its folder on the path."""
    folder = os.path.dirname(os.path.abspath(path))
    if folder not in sys.path:
        sys.path.insert(0, folder)
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise NkiError(f"{path}: expected a file of Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def describe(kernel: Kernel, results: Any) -> list[str]:
    """What a run gave and did."""
    assert kernel.trace is not None
    trace = kernel.trace
    out = []
    for k, r in enumerate(results if isinstance(results, tuple) else (results,)):
        if isinstance(r, np.ndarray):
            out.append(f"result {k}: {trellis_name(r.dtype)}{list(r.shape)}, sum {r.astype(np.float64).sum():.6g}")
    counts = ", ".join(f"{n} {kind}" for kind, n in sorted(trace.summary().items(), key=lambda item: -item[1]))
    out.append(f"{trace.name} on {trace.chip}: {len(trace)} instructions: {counts}")
    try:
        out.append(str(kernel.timing()))
    except (NkiError, ValueError) as e:
        out.append(f"no time: {e}")
    return out


def run_kernel(words: list[str]) -> int:
    options = _kernel_parser().parse_args(words)
    path, colon, name = options.kernel.rpartition(":")
    if not colon:
        raise NkiError(f"{options.kernel}: expected FILE.py:KERNEL")
    module = load_file(path)
    if not hasattr(module, name):
        kernels = [k for k, v in vars(module).items() if isinstance(v, Kernel)]
        raise NkiError(f"{path} has no {name}; expected one of {', '.join(kernels) or 'its functions'}")
    found = getattr(module, name)
    kernel = found if isinstance(found, Kernel) else Kernel(found, beta="neuronxcc" in open(path).read())
    random = np.random.default_rng(options.seed)
    arguments = dict(argument(text, random) for text in options.arg)
    if options.grid:
        kernel = kernel[tuple(int(n) for n in options.grid.split("x"))]
    print("\n".join(describe(kernel, kernel(**arguments))))
    return 0


def run_script(words: list[str]) -> int:
    path = words[0]
    sys.argv = words
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    runpy.run_path(path, run_name="__main__")
    return 0


def _shown(message: Any, category: Any, *_: Any) -> str:
    return f"warning: {message}\n"


def main(argv: list[str]) -> int:
    options = parser().parse_args(argv)
    if not options.words:
        parser().print_help()
        return 2
    warnings.formatwarning = _shown  # type: ignore[assignment]
    warnings.simplefilter("always", NkiWarning)
    try:
        with as_nki(shadow=options.shadow, chip=options.chip, rules=options.rules,
                    compute=False if options.no_compute else None):
            if options.words[0] in COMMANDS:
                return run_command(options.words[0], options.words[1:])
            return run_kernel(options.words[1:]) if options.words[0] == "run" else run_script(options.words)
    except (NkiError, ImportError, FileNotFoundError) as e:
        print(f"error: {e}", file=sys.stderr)
        return 1
