"""A tensor, as kernels hold it: a place in memory, a type, and how its elements are reached."""

from math import prod
from typing import Any

import numpy as np

from trellis.nki.kernels.session import refuse, session
from trellis.nki.tensors import records
from trellis.nki.tensors.memory import Memory
from trellis.nki.tensors.types import BF16, F32, convert
from trellis.nki.tensors.access import Access

__all__ = ["broadcasts", "NkiTensor"]


class NkiTensor(Access):
    """Elements of a memory: by strides, or, where indices follow no stride, one by one (`flat`)."""

    __slots__ = ("memory", "dtype", "shape", "strides", "offset", "partition", "flat", "valid", "index", "born",
                 "mask", "_view", "_array", "name", "region", "settled", "bounds", "element")

    def __init__(self, memory: Memory, dtype: Any, shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0,
                 *, partition: int = 0, name: str = "", region: Any = None) -> None:
        self.memory, self.dtype, self.shape, self.strides, self.offset = memory, dtype, shape, strides, offset
        self.partition = partition  # the dimension of partitions, on chip
        self.flat: Any = None  # places of the elements in memory, of the tensor's shape
        self.valid: Any = None  # which of them are inside; None: all
        self.index: Any = None  # the tensor whose numbers chose the places
        self.born: int | None = None  # the instruction that made it, whose result no one has named yet
        self.mask: Any = None  # what that instruction left alone
        self.settled = False  # by `tensor[key] += value`, after which Python assigns it to tensor[key] once more
        self.bounds: Any = None
        self.element = False  # chosen by a number for each dimension: as an index, a number itself
        self._view: Any = None
        self._array: Any = None
        self.name, self.region = name, region

    # What kernels ask of a tensor.
    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def itemsize(self) -> int:
        return int(self.dtype.itemsize)

    @property
    def buffer(self) -> Any:
        return self.region

    @property
    def space(self) -> str:
        return str(self.memory.space)

    @property
    def on_chip(self) -> bool:
        return bool(self.memory.space != "hbm")

    def assert_shape(self, shape: Any) -> "NkiTensor":
        if self.shape != tuple(shape):
            raise refuse(f"{self!r} has not the asserted shape {list(shape)}")
        return self

    def as_tile(self) -> "NkiTensor":
        """neuronxcc tells a view from the tile that it is; here they are one."""
        return self

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Any:
        return (self[i] for i in range(self.shape[0]))

    def __repr__(self) -> str:
        return f"{self.name or 'tensor'}({list(self.shape)} {self.dtype} in {self.memory.space})"

    def __hash__(self) -> int:
        return id(self)

    def __bool__(self) -> bool:
        if self.size == 1:
            return bool(self.read().reshape(())[()] != 0)
        return True

    def like(self, shape: tuple[int, ...], strides: tuple[int, ...], offset: int, **more: Any) -> "NkiTensor":
        """Another view of the same memory."""
        t = NkiTensor(self.memory, more.pop("dtype", self.dtype), shape, strides, offset,
                      partition=more.pop("partition", self.partition), name=self.name, region=self.region)
        t.index = self.index
        return t

    # Values.
    @property
    def array(self) -> Any:
        """Numpy's view of the elements; of those without strides a copy."""
        if self._array is None:
            if self.flat is not None:
                return self.gathered()
            size = self.dtype.itemsize
            self._array = np.ndarray(self.shape, self.dtype, self.memory.data, self.offset * size,
                                     tuple(s * size for s in self.strides))
        return self._array

    def _elements(self) -> Any:
        return self.memory.data.view(self.dtype) if self.memory.bytes % self.dtype.itemsize == 0 else \
            self.memory.data[: self.memory.bytes // self.dtype.itemsize * self.dtype.itemsize].view(self.dtype)

    def gathered(self) -> Any:
        elements = self._elements()
        got = elements[np.clip(self.flat, 0, len(elements) - 1)]
        return got if self.valid is None else np.where(self.valid, got, np.zeros((), got.dtype))

    def read(self) -> Any:
        """The elements, which are now known to be used."""
        m = self.memory
        if not m.written and not m.read:
            s = session()
            s.uninitialised += 1
            if s.compute:
                s.warn("unwritten", f"{self!r} is read, and nothing has been written to it: on a device its contents "
                                    f"are arbitrary")
        m.read = True
        return self.array

    def f32(self) -> Any:
        values = self.read()
        if values.dtype == F32:
            return values
        if values.dtype == BF16:  # the upper half of an f32, three times as fast as astype
            return np.left_shift(values.view(np.uint16), 16, dtype=np.uint32).view(F32)
        return values.astype(F32)

    def write(self, values: Any, mask: Any = None) -> None:
        """Stores values, cast to the tensor's type; where a mask is false, nothing."""
        self.memory.written = True
        if not isinstance(values, np.ndarray):
            values = np.asarray(values)
        if values.dtype != self.dtype and not self.dtype.names:
            values = convert(values, self.dtype)
        if mask is None:
            mask = session().mask
            if mask is not None and not broadcasts(mask, self.shape):
                mask = None
        if self.flat is not None:
            self._scatter(values, mask)
        elif mask is not None:
            np.copyto(self.array, _fitted(values, self.shape), where=mask)
        else:
            self.array[...] = _fitted(values, self.shape)
        if self.memory.space == "psum":
            self.touch()

    def _scatter(self, values: Any, mask: Any) -> None:
        values = np.broadcast_to(_fitted(values, self.shape), self.shape)
        keep = np.ones(self.shape, bool) if self.valid is None else np.broadcast_to(self.valid, self.shape)
        if mask is not None:
            keep = keep & np.broadcast_to(mask, self.shape)
        self._elements()[np.broadcast_to(self.flat, self.shape)[keep]] = values[keep]

    def _marks(self) -> tuple[Any, int]:
        """PSUM: the marks of what has been written, and how many of them an element has."""
        m, size = self.memory, self.dtype.itemsize
        if m.accumulated is None:
            m.accumulated, m.unit = np.zeros(m.bytes // size, bool), size
        if size < m.unit:
            m.accumulated, m.unit = np.repeat(m.accumulated, m.unit // size), size
        return m.accumulated, size // m.unit

    def touched(self) -> Any:
        """PSUM: which of the elements have been written."""
        marks, each = self._marks()
        if self.flat is not None:
            places = self.flat if each == 1 else self.flat[..., None] * each + np.arange(each)
            return marks[places] if each == 1 else marks[places].all(axis=-1)
        if each == 1:
            return np.ndarray(self.shape, bool, marks, self.offset, self.strides)
        return self._pieces(marks, each).all(axis=-1)

    def touch(self) -> None:
        """PSUM: the elements have been written."""
        marks, each = self._marks()
        if self.flat is None:
            self._pieces(marks, each)[...] = True
        else:
            inside = self.flat if self.valid is None else self.flat[np.broadcast_to(self.valid, self.flat.shape)]
            marks[inside[..., None] * each + np.arange(each)] = True

    def _pieces(self, marks: Any, each: int) -> Any:
        """The marks of the elements, a view."""
        return np.ndarray((*self.shape, each), bool, marks, self.offset * each, (*(s * each for s in self.strides), 1))

    # The trace.
    def view(self, dtype: Any = None) -> Any:
        """With a type: the same bits as that type's elements."""
        return self.reinterpreted(dtype)

    def record(self, rows: int | None = None) -> int:
        """The index of this operand's view in the trace."""
        if self._view is None or rows is not None:
            self._view = session().trace.add_view(records.view_of(self, rows))
        return int(self._view)

    def same_place(self, other: "NkiTensor") -> bool:
        return (self.memory is other.memory and self.offset == other.offset and self.shape == other.shape
                and self.strides == other.strides and self.flat is None and other.flat is None)

    def same_elements(self, other: "NkiTensor") -> bool:
        """As same_place, of elements that indices chose one by one."""
        return (self.memory is other.memory and self.flat is not None and other.flat is not None
                and np.array_equal(self.flat, other.flat))


def broadcasts(mask: Any, shape: tuple[int, ...]) -> bool:
    """Whether a mask fits a shape."""
    if mask.ndim > len(shape):
        return False
    return all(m in (1, n) for m, n in zip(mask.shape[::-1], shape[::-1], strict=False))


def _fitted(values: Any, shape: tuple[int, ...]) -> Any:
    """Values in a shape that has as many elements, or that they broadcast to."""
    if values.shape == shape or values.size == 1:
        return values.reshape(()) if values.size == 1 else values
    if values.size == prod(shape):
        return values.reshape(shape)
    try:
        return np.broadcast_to(values, shape)
    except ValueError:
        raise refuse(f"values of {list(values.shape)} do not fit a destination of {list(shape)}") from None
