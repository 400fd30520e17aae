"""Storage of tiles and of tensors in HBM, in the order of their dimensions. On chip rows are partitions; a tile's
blocks follow each other here, and stand side by side there."""

import itertools
from math import prod
from typing import Any

import numpy as np

from trellis.nki.kernels.session import Session
from trellis.nki.tensors.types import trellis_name

__all__ = ["allocate", "Memory"]


# Storage that kernels have dropped, by size, to be used again: new memory costs a page fault for each page.
KEPT_FROM, MOST_KEPT = 1 << 15, 1 << 28
_kept: dict[int, list[Any]] = {}
_kept_bytes = 0


def taken(size: int) -> Any:
    """Storage of zeros."""
    global _kept_bytes
    spare = _kept.get(size)
    if spare:
        _kept_bytes -= size
        data = spare.pop()
        data.fill(0)
        return data
    return np.zeros(size, np.uint8)


def give_back(data: Any) -> None:
    global _kept_bytes
    if data.base is None and _kept_bytes + data.size <= MOST_KEPT:
        _kept_bytes += data.size
        _kept.setdefault(data.size, []).append(data)


class Memory:
    """A buffer of the trace, and its bytes, which are taken when first asked for."""

    __slots__ = ("buffer", "space", "row_bytes", "bytes", "written", "read", "_data", "accumulated", "unit", "block")

    def __init__(self, buffer: int, space: str, row_bytes: int, total: int) -> None:
        self.buffer, self.space, self.row_bytes, self.bytes = buffer, space, row_bytes, total
        self.written = False
        self.read = False
        self.block: tuple[int, int] | None = (
            None  # a tile with blocks: its partitions, and bytes of each; blocks follow each other
        )
        self._data: Any = None
        self.accumulated: Any = None  # PSUM: which pieces have been written
        self.unit = 0  # bytes of a piece: the smallest element by which it was written

    @property
    def data(self) -> Any:
        if self._data is None:
            self._data = taken(self.bytes)
        return self._data

    def __del__(self) -> None:
        if self._data is not None and self.bytes >= KEPT_FROM:
            give_back(self._data)

    def adopt(self, array: Any) -> None:
        """Takes a contiguous array's bytes as its own."""
        self._data = array.reshape(-1).view(np.uint8)
        self.written = True


def allocate(s: Session, shape: tuple[int, ...], dtype: Any, space: str, *, partition: int = 0, name: str = "",
             role: str = "internal", address: Any = None, site: int = 0) -> tuple[Memory, tuple[int, ...]]:
    """New storage, and the strides of its dimensions in elements. On chip `partition` is the dimension of partitions.

    `address` is a place, or a function of a block's indices, its partitions and its bytes in each."""
    size = dtype.itemsize
    strides = [0] * len(shape)
    step = 1
    for d in range(len(shape) - 1, -1, -1):
        strides[d] = step
        step *= shape[d]
    line = s.line()
    rows = 1 if space == "hbm" else shape[partition]
    row_bytes = step * size // max(rows, 1)
    each = strides[partition] * size if space != "hbm" else row_bytes
    name = name or f"{space}{len(s.trace.buffers)}"
    blocks = itertools.product(*(range(n) for n in shape[:partition])) if space != "hbm" else [()]
    first = len(s.trace.buffers)
    for block in blocks:
        at = address(block, rows, each) if callable(address) else address
        s.trace.add_buffer(name, space, trellis_name(dtype), shape[partition:], rows=rows, row_bytes=each, role=role,
                           address=at, line=line, site=site or line, core=s.core)
    memory = Memory(first, space, row_bytes, prod(shape) * size)
    memory.block = (rows, each) if each != row_bytes else None
    return memory, tuple(strides)
