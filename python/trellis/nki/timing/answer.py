"""One answer for programs that write kernels: right or wrong, how long, why, what to try."""

import argparse
import os
import traceback
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from trellis.nki.kernels.session import NkiWarning
from trellis.nki.timing import subject
from trellis.nki.timing.timing import Timing, time_of

__all__ = ["answer", "answer_and_timing"]

_TOLERANCE = {2: 2e-2, 1: 2e-1}  # of results of so many bytes; else f32's


def _first_wrong(got: npt.NDArray[Any], wanted: npt.NDArray[Any]) -> dict[str, Any] | None:
    if got.shape != wanted.shape:
        return {"shape": list(got.shape), "expected_shape": list(wanted.shape)}
    tolerance = _TOLERANCE.get(got.dtype.itemsize, 1e-4)
    a, b = got.astype(np.float64), wanted.astype(np.float64)
    scale = float(np.max(np.abs(b))) if b.size else 0.0
    apart = ~np.isclose(a, b, rtol=tolerance, atol=tolerance * scale, equal_nan=True)
    if not apart.any():
        return None
    place = tuple(int(n) for n in np.argwhere(apart)[0])
    return {"index": list(place), "got": float(a[place]), "expected": float(b[place]), "wrong": int(apart.sum()),
            "of": int(apart.size), "tolerance": tolerance}  # fmt: skip


def _reference(text: str, path: str, arguments: dict[str, Any]) -> Any:
    file, _, name = text.rpartition(":")
    module = subject.module_of(file or path, (), "nki_reference")
    if not hasattr(module, name):
        raise ValueError(f"--reference {text}: {file or path} has no {name}")
    wide = {k: v.astype(np.float32) if isinstance(v, np.ndarray) and v.dtype.kind not in "iub" else v
            for k, v in arguments.items()}  # fmt: skip
    return getattr(module, name)(**wide)


def _error(e: BaseException) -> dict[str, Any]:
    """With the line of the user's file, the innermost that is not ours."""
    ours = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep  # the package
    frames = [f for f in traceback.extract_tb(e.__traceback__) if not f.filename.startswith(ours)]
    place = next((f for f in reversed(frames) if f.filename.endswith(".py")), None)
    error: dict[str, Any] = {"error": f"{type(e).__name__}: {e}"}
    if isinstance(e, SyntaxError):
        error.update(file=e.filename, line=e.lineno)
    elif place is not None:
        error.update(file=place.filename, line=place.lineno, text=place.line)
    return error


def answer(which: str, options: argparse.Namespace) -> dict[str, Any]:
    """Never raises for what a kernel's text does: that is in `errors`."""
    return answer_and_timing(which, options)[0]


def answer_and_timing(which: str, options: argparse.Namespace) -> tuple[dict[str, Any], Timing | None]:
    """The timing is None where the kernel failed."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", NkiWarning)
        out, timing = _answered(which, options)
    out["warnings"] = [str(each.message) for each in heard]
    return out, timing


def _answered(which: str, options: argparse.Namespace) -> tuple[dict[str, Any], Timing | None]:
    timing = None
    out: dict[str, Any] = {"kernel": which, "right": None, "errors": []}
    try:
        call = subject.call_of(which, options)
        if options.reference:
            wanted = _reference(options.reference, which.partition(".py")[0] + ".py", call.arguments)
            results = call.result if isinstance(call.result, tuple) else (call.result,)
            pairs = zip(results, wanted if isinstance(wanted, tuple) else (wanted,), strict=True)
            wrong = next((w for got, want in pairs if (w := _first_wrong(np.asarray(got), np.asarray(want)))), None)
            out["right"] = wrong is None
            if wrong is not None:
                out["first_wrong"] = wrong
        timing = time_of(call.trace, options.chip, subject.figures(options))
        out.update(timing.json())
    except Exception as e:  # whatever the kernel's text raises is its answer
        out["errors"].append(_error(e))
    return out, timing
