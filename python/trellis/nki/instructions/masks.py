"""What the running instruction's mask, of neuronxcc's dialect, lets into a reduction, and the results of that."""

from math import prod
from typing import Any

import numpy as np

from trellis.nki.kernels.session import session
from trellis.nki.tensors.tensor import broadcasts

__all__ = ["in_shape", "let_in", "made_of", "masked", "results_of"]

NEUTRAL = {"max": -np.inf, "min": np.inf, "abs_min": np.inf, "multiply": 1.0, "logical_and": 1.0, "bitwise_and": -1}


def in_shape(mask: Any, shape: tuple[int, ...]) -> Any:
    """A mask in the shape of an operand; None where it lets everything in."""
    return None if mask is None or not broadcasts(mask, shape) else np.broadcast_to(mask, shape)


def let_in(shape: tuple[int, ...]) -> Any:
    """in_shape of the running instruction's mask."""
    return in_shape(session().mask, shape)


def masked(values: Any, op: str) -> Any:
    """Values without what the mask leaves out."""
    mask = let_in(values.shape)
    return values if mask is None else np.where(mask, values, np.asarray(NEUTRAL.get(op, 0)).astype(values.dtype))


def made_of(mask: Any, shape: tuple[int, ...], axes: tuple[int, ...], to: tuple[int, ...]) -> Any:
    """Of a reduction of `shape` along axes, the results, in the shape `to`, that are made of anything; None: all."""
    let = in_shape(mask, shape)
    if let is None:
        return None
    kept = let.any(axis=axes)
    return kept.reshape(to) if kept.size == prod(to) else None


def results_of(shape: tuple[int, ...], axes: tuple[int, ...], to: tuple[int, ...]) -> Any:
    """made_of the running instruction's mask."""
    return made_of(session().mask, shape, axes, to)
