"""Arrays of indices and masks of neuronxcc's dialect: real numpy arrays."""

from typing import Any

import numpy as np

from trellis.nki.tensors.registers import number

__all__ = ["mask_of"]


class IndexArray(np.ndarray[Any, Any]):
    """An array of indices or, compared, a mask. `a and b` of masks is both, as the old compiler reads it."""

    _pending: Any = None

    def __array_finalize__(self, other: Any) -> None:
        pass

    def __bool__(self) -> bool:
        if self.size > 1 and self.dtype == bool:
            IndexArray._pending = self
            return True
        return bool(np.asarray(self).reshape(-1)[0]) if self.size else False

    def _joined(self, mask: Any) -> Any:
        before, IndexArray._pending = IndexArray._pending, None
        return mask if before is None or not isinstance(mask, np.ndarray) else mask & before

    def __lt__(self, other: Any) -> Any:
        return self._joined(super().__lt__(other))

    def __le__(self, other: Any) -> Any:
        return self._joined(super().__le__(other))

    def __gt__(self, other: Any) -> Any:
        return self._joined(super().__gt__(other))

    def __ge__(self, other: Any) -> Any:
        return self._joined(super().__ge__(other))

    def __eq__(self, other: Any) -> Any:
        return self._joined(super().__eq__(other))

    def __ne__(self, other: Any) -> Any:
        return self._joined(super().__ne__(other))

    __hash__ = None


def as_indices(array: Any) -> IndexArray:
    return np.asarray(array).view(IndexArray)


def arange(*args: Any) -> IndexArray:
    return np.arange(*(number(a) for a in args)).view(IndexArray)


class Grid(tuple[Any, ...]):
    """What nl.mgrid gives: an array for each dimension, by the names p, x, y, z or unpacked."""

    def __getattr__(self, name: str) -> Any:
        order = ("p", "x", "y", "z", "w")
        if name in order and order.index(name) < len(self):
            return self[order.index(name)]
        raise AttributeError(name)


class MeshGrid:
    """nl.mgrid[0:128, 0:512]."""

    def __getitem__(self, key: Any) -> Grid:
        parts = key if isinstance(key, tuple) else (key,)
        lines = []
        for axis, part in enumerate(parts):
            start, stop = number(part.start or 0), number(part.stop)
            line = np.arange(start, stop, 1 if part.step is None else number(part.step))
            lines.append(as_indices(line.reshape(tuple(-1 if a == axis else 1 for a in range(len(parts))))))
        return Grid(lines)


def mask_of(mask: Any) -> Any:
    """A mask as numpy has it; None where everything is let through."""
    if mask is None or isinstance(mask, (bool, np.bool_)):
        return None if mask is None or mask else np.zeros((1,), bool)
    if hasattr(mask, "memory"):
        return mask.read() != 0
    return np.asarray(mask).astype(bool)
