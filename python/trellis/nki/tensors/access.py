"""A tensor's methods that choose elements: brackets, slices, explicit patterns and indirect places."""

from typing import Any

import numpy as np

from trellis.nki.kernels.session import refuse
from trellis.nki.tensors.indexing import view_at
from trellis.nki.tensors.registers import VirtualRegister, number
from trellis.nki.tensors.types import to_dtype
from trellis.nki.tensors.views import Reshaping

__all__ = ["Access"]

GROUP = 16  # partitions whose indices are read together


class Access(Reshaping):
    __slots__ = ()
    index: Any
    on_chip: Any

    def __getitem__(self, key: Any) -> Any:
        return view_at(self, key)

    def slice(self, dim: int, start: Any, end: Any, step: int = 1) -> Any:
        key: list[Any] = [slice(None)] * len(self.shape)
        key[dim] = slice(number(start), number(end), step)
        return view_at(self, tuple(key))

    def select(self, dim: int, index: Any) -> Any:
        dim %= len(self.shape)
        place = number(index)
        if not -self.shape[dim] <= place < self.shape[dim]:
            raise refuse(f"index {place} of dimension {dim} of {self!r}: out of bounds")
        key: list[Any] = [slice(None)] * len(self.shape)
        key[dim] = place % self.shape[dim]
        t = view_at(self, tuple(key))
        if not isinstance(index, (int, np.integer)):
            t.index = index
        return t

    def vector_select(self, dim: int, vector_offset: Any) -> Any:
        if dim != 0:
            raise refuse(f"vector_select of dimension {dim}; expected 0")
        chosen = vector_offset.read().reshape(-1).astype(np.int64)
        t = view_at(self, chosen)
        t.index = vector_offset
        return t

    def ap(self, pattern: Any, offset: Any = None, scalar_offset: Any = None, vector_offset: Any = None,
           indirect_dim: int = 0, dtype: Any = None) -> Any:
        """An explicit pattern of [stride, count], in elements."""
        if self.flat is not None:
            raise refuse(f".ap of {self!r}, whose elements are reached by indices")
        dtype = self.dtype if dtype is None else to_dtype(dtype)
        strides = tuple(number(s) for s, _ in pattern)
        shape = tuple(number(n) for _, n in pattern)
        start = self.offset * self.dtype.itemsize // dtype.itemsize + (0 if offset is None else number(offset))
        if scalar_offset is not None:
            start += number(scalar_offset) * self._stride_in(indirect_dim, dtype)
        t = self.like(shape, strides, start, dtype=dtype, partition=0)
        if scalar_offset is not None and not isinstance(scalar_offset, VirtualRegister):
            t.index = scalar_offset
        if vector_offset is not None:
            self._choose_places(t, vector_offset, indirect_dim)
        elif self._beyond(t) and scalar_offset is not None:
            t.flat, t.valid = np.zeros(shape, np.int64), np.zeros(shape, bool)  # only oob_mode.skip lets it pass
        elif self._beyond(t):
            raise refuse(f"pattern {[list(p) for p in pattern]} at offset {start} of {self!r}: out of bounds")
        return t

    def _stride_in(self, dim: int, dtype: Any) -> int:
        return int(self.strides[dim] * self.dtype.itemsize // dtype.itemsize)

    def _beyond(self, t: Any) -> bool:
        """Whether a pattern leaves its memory or, on chip, the partition that it begins in."""
        size, row = t.dtype.itemsize, self.memory.row_bytes // t.dtype.itemsize
        ends = [(n - 1) * s for n, s in zip(t.shape, t.strides, strict=True)]
        if (
            t.offset + sum(min(e, 0) for e in ends) < 0
            or (t.offset + sum(max(e, 0) for e in ends)) * size >= self.memory.bytes
        ):
            return True
        free = [e for e, s in zip(ends, t.strides, strict=True) if row and s % row]
        first = t.offset % row if row else 0
        return bool(
            self.on_chip and (first + sum(min(e, 0) for e in free) < 0 or first + sum(max(e, 0) for e in free) >= row)
        )

    def _choose_places(self, t: Any, places: Any, dim: int) -> None:
        """Indices are taken column after column (nki.isa.dma_transpose)."""
        chosen, stride = places.read().T.reshape(-1).astype(np.int64)[: t.shape[0]], self._stride_in(dim, t.dtype)
        flat = np.asarray(t.offset, np.int64) + chosen.reshape((-1,) + (1,) * (len(t.shape) - 1)) * stride
        for axis in range(1, len(t.shape)):
            along = np.arange(t.shape[axis], dtype=np.int64) * t.strides[axis]
            flat = flat + along.reshape(tuple(-1 if a == axis else 1 for a in range(len(t.shape))))
        inside = (chosen >= 0) & (chosen < self.shape[dim])
        t.flat = np.broadcast_to(flat, t.shape)
        t.valid = None if inside.all() else np.broadcast_to(
            inside.reshape((-1,) + (1,) * (len(t.shape) - 1)), t.shape)
        t.index = places

    def indirect(self, index: Any, num_elem: int | None = None) -> Any:
        """Elements at places along the free dimension that 16 partitions share (NeuronCore-v4)."""
        table = index.read().astype(np.int64)
        count = table.size if num_elem is None else num_elem
        rows = self.shape[0]
        flat = np.empty((rows, count), np.int64)
        for first in range(0, rows, GROUP):
            order = table[first:first + GROUP].reshape(min(GROUP, rows - first), -1).T.reshape(-1)[:count]
            for row in range(first, min(first + GROUP, rows)):
                flat[row, : len(order)] = self.offset + row * self.strides[0] + order * self.strides[-1]
        t = self.like((rows, count), (0, 0), self.offset)
        t.flat, t.index = flat, index
        return t
