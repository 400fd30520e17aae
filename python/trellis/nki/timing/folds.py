"""Loops of which a trace has some iterations: what the others add to a run."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from trellis.nki.trace import Fold, Trace

__all__ = ["Unfolded", "unfolded"]


class Unfolded(NamedTuple):
    """Seconds that the missing iterations take, and how often each recorded instruction runs."""

    seconds: float
    times: npt.NDArray[np.float64]


def _last(fold: Fold) -> slice:
    """The last of the recorded iterations in a row, which stands for those that are missing."""
    end = fold.first + fold.rows * fold.kept
    return slice(end - fold.rows, end)


def _period(fold: Fold, end: npt.NDArray[np.int64]) -> float:
    """Seconds from an iteration to the next, in the second half of the recorded ones."""
    first = (fold.kept - 1) // 2
    spans = end[fold.first:fold.first + fold.rows * fold.kept].reshape(fold.kept, fold.rows)
    return float((spans[-1] - spans[first]).mean()) * 1e-12 / (fold.kept - 1 - first)


def unfolded(trace: Trace, end: Any) -> Unfolded:
    """`end`: when each recorded instruction ended, in picoseconds."""
    times = np.ones(len(trace))
    seconds = 0.0
    for fold in sorted(trace.folds, key=lambda f: f.rows, reverse=True):  # the outer ones first
        seconds += times[fold.first] * fold.missing * _period(fold, end)
        times[_last(fold)] *= 1 + fold.missing
    return Unfolded(seconds, times)
