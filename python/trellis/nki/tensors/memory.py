"""Storage of tiles and of tensors in HBM. On chip rows are partitions, and the free dimensions of one lie together."""

from math import prod
from typing import Any

import numpy as np

from trellis.nki.kernels.session import Session
from trellis.nki.tensors.types import trellis_name


class Memory:
    """A buffer of the trace, and its bytes, which are taken when first asked for."""

    __slots__ = ("buffer", "space", "row_bytes", "bytes", "written", "read", "_data", "accumulated", "counted")

    def __init__(self, buffer: int, space: str, row_bytes: int, total: int) -> None:
        self.buffer, self.space, self.row_bytes, self.bytes = buffer, space, row_bytes, total
        self.written = False
        self.read = False
        self.counted = False
        self._data: Any = None
        self.accumulated: Any = None  # PSUM: which elements have been written

    @property
    def data(self) -> Any:
        if self._data is None:
            self._data = np.zeros(self.bytes, np.uint8)
        return self._data

    def adopt(self, array: Any) -> None:
        """Takes a contiguous array's bytes as its own."""
        self._data = array.reshape(-1).view(np.uint8)
        self.written = True


def allocate(s: Session, shape: tuple[int, ...], dtype: Any, space: str, *, partition: int = 0, name: str = "",
             role: str = "internal", address: tuple[int, int] | None = None, site: int = 0) -> tuple[Memory, tuple[int, ...]]:
    """New storage, and the strides of its dimensions in elements. On chip `partition` is the dimension of partitions."""
    size = dtype.itemsize
    strides = [0] * len(shape)
    step = 1
    for d in range(len(shape) - 1, -1, -1):
        if space == "hbm" or d != partition:
            strides[d] = step
            step *= shape[d]
    line = s.line()
    if space == "hbm":
        rows, row_bytes = 1, step * size
    else:
        strides[partition] = step
        rows, row_bytes = shape[partition], step * size
    buffer = s.trace.add_buffer(name or f"{space}{len(s.trace.buffers)}", space, trellis_name(dtype), shape, rows=rows,
                                row_bytes=row_bytes, role=role, address=address, line=line, site=site or line, core=s.core)
    return Memory(buffer, space, row_bytes, prod(shape) * size), tuple(strides)
