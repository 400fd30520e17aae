"""Scripts and kernels from the command line."""

import argparse
import contextlib
import os
import runpy
import select
import signal
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from trellis.nki.imports import as_nki
from trellis.nki.kernels.session import NkiError, NkiWarning
from trellis.nki.tensors.types import trellis_name
from trellis.nki.timing import subject
from trellis.nki.timing.commands import COMMANDS, run_command

__all__ = ["main"]

HELP = """NKI kernels without hardware: files that import nki, or neuronxcc.nki, run unmodified.

  python -m trellis.nki SCRIPT.py [ARGS]                 runs a script, as Python would
  python -m trellis.nki run FILE.py:KERNEL --arg a=4096x4096:bf16 --arg n=8 [--grid 2]
                                                         runs one kernel on random arrays, and says what it did
  python -m trellis.nki profile | compare | check | answer | serve ...
                                                         about time: each has --help

Arguments of a kernel are arrays, NAME=DIMxDIM:TYPE, or values in Python's words, NAME=8. Types are numpy's, NKI's
(bfloat16, float8_e4m3) or Trellis's (bf16, f8e4m3). Before either:"""


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser("python -m trellis.nki", description=HELP,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--chip", default="", help="trn1, inf2, trn2 or trn3; else what the kernel says, else trn2")
    p.add_argument("--rules", choices=("strict", "device"), default="strict",
                   help="strict refuses what the documentation forbids; device warns of it and goes on")
    p.add_argument("--shadow", action="store_true",
                   help="use Trellis's nki even where a real nki or neuronxcc is installed")
    p.add_argument("--no-compute", action="store_true", help="only the trace: no arithmetic, results are zeros")
    p.add_argument("words", nargs=argparse.REMAINDER, metavar="SCRIPT.py [ARGS] | run FILE.py:KERNEL ...")
    return p


def _kernel_parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(
        "python -m trellis.nki run",
        description=f"Runs a kernel, and says what it did.\n\n{subject.HELP}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("kernel", metavar="KERNEL")
    subject.add_call_options(p)
    return p


def describe(call: subject.Call) -> list[str]:
    """What a run gave and did."""
    trace, out = call.trace, []
    for k, r in enumerate(call.result if isinstance(call.result, tuple) else (call.result,)):
        if isinstance(r, np.ndarray):
            out.append(f"result {k}: {trellis_name(r.dtype)}{list(r.shape)}, sum {r.astype(np.float64).sum():.6g}")
    counts = ", ".join(f"{n} {kind}" for kind, n in sorted(trace.summary().items(), key=lambda item: -item[1]))
    out.append(f"{trace.name} on {trace.chip}: {len(trace)} instructions: {counts}")
    try:
        from trellis.nki.timing import time_of

        out.append(str(time_of(trace)))
    except (ValueError, ImportError) as e:
        out.append(f"no time: {e}")
    return out


def run_kernel(words: list[str]) -> int:
    options = _kernel_parser().parse_args(words)
    try:
        print("\n".join(describe(subject.call_of(options.kernel, options))))
    except subject.SubjectError as e:
        print(f"error: {e}", file=sys.stderr)
        return 1
    return 0


def run_script(words: list[str]) -> int:
    path = words[0]
    sys.argv = words
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    runpy.run_path(path, run_name="__main__")
    return 0


def _shown(message: Any, category: Any, *_: Any) -> str:
    return f"warning: {message}\n"


@contextlib.contextmanager
def while_read() -> Iterator[None]:
    """Where who reads the output has gone, as `head` has, the program ends without a word, like one that SIGPIPE
    ends."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        reader = select.poll()
        reader.register(sys.stdout, 0)  # reports only that the other end is closed
        if not reader.poll(0):
            raise  # the pipe is one of the script's own
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for output at the interpreter's exit
        raise SystemExit(128 + signal.SIGPIPE) from None


def main(argv: list[str]) -> int:
    with while_read():
        return command(argv)


def command(argv: list[str]) -> int:
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
