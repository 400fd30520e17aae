"""Index arrays: whether their numbers grow evenly along each axis, which makes them a stride."""

from typing import Any, NamedTuple

import numpy as np

__all__ = ["Affine", "as_affine", "from_affine"]


class Affine(NamedTuple):
    base: int
    steps: tuple[int, ...]  # along each axis


def as_affine(index: Any) -> Affine | None:
    """None where the numbers follow no steps."""
    if index.size == 1:
        return Affine(int(index.reshape(-1)[0]), (0,) * index.ndim)
    long = [axis for axis, n in enumerate(index.shape) if n > 1]
    if len(long) == 1:
        line = index.reshape(-1)
        base = int(line[0])
        step = int(line[1]) - base
        even = len(line) == 2 or bool((line[1:] - line[:-1] == step).all())
        return Affine(base, tuple(step if axis == long[0] else 0 for axis in range(index.ndim))) if even else None
    base = int(index[(0,) * index.ndim])
    steps = []
    for axis in range(index.ndim):
        second = tuple(1 if a == axis else 0 for a in range(index.ndim))
        steps.append(int(index[second]) - base if index.shape[axis] > 1 else 0)
    even = np.array_equal(index, from_affine(base, steps, index.shape))
    return Affine(base, tuple(steps)) if even else None


def from_affine(base: int, steps: Any, shape: tuple[int, ...]) -> Any:
    """The numbers again, as an array of the shape."""
    total = np.full((1,) * len(shape), base, np.int64)
    for axis, (step, n) in enumerate(zip(steps, shape, strict=True)):
        if step and n > 1:
            along = np.arange(n, dtype=np.int64) * step
            total = total + along.reshape(tuple(n if a == axis else 1 for a in range(len(shape))))
    return np.broadcast_to(total, shape)
