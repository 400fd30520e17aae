"""Assignments to parts of tensors. `x[...] = nisa.f(...)` copies nothing: it names where the result goes."""

from math import prod
from typing import Any

import numpy as np

from trellis.nki.instructions.dma import copied, record_copy
from trellis.nki.instructions.elementwise import memset, tensor_copy, tensor_tensor
from trellis.nki.instructions.operators import alu, apply
from trellis.nki.instructions.products import add_into
from trellis.nki.kernels.session import refuse, session
from trellis.nki.tensors.registers import VirtualRegister
from trellis.nki.tensors.tensor import NkiTensor
from trellis.nki.tensors.types import F32

__all__ = ["assign", "in_place", "LoopSum"]


class LoopSum:
    """What nl.loop_reduce gives: values that the tile it is assigned to takes, or is combined with."""

    __slots__ = ("op", "first", "tile", "mask")

    def __init__(self, op: str, first: bool, tile: NkiTensor, mask: Any) -> None:
        self.op, self.first, self.tile, self.mask = op, first, tile, mask

    def __getattr__(self, name: str) -> Any:
        raise refuse(
            "nl.loop_reduce's result is used; expected tile[...] = nl.loop_reduce(...): what it is assigned to is "
            "what it reduces into (nki.language.loop_reduce)"
        )

    def _used(self, *operands: Any) -> Any:
        return self.shape

    __getitem__ = __setitem__ = __neg__ = __lt__ = __le__ = __gt__ = __ge__ = _used
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _used


def assign(self: NkiTensor, key: Any, value: Any) -> None:
    """self[key] = value."""
    dst = self[key]
    if isinstance(value, LoopSum):
        combine(dst, value)
    elif isinstance(value, NkiTensor):
        if value.same_place(dst) or (value.settled and value.same_elements(dst)):
            return
        _from_tensor(dst, value)
    elif isinstance(value, (np.ndarray, list)):
        _constant(dst, np.asarray(value))
    else:
        memset(dst, int(value) if isinstance(value, VirtualRegister) else value)


def _constant(dst: NkiTensor, values: Any) -> None:
    dst.write(values)
    session().trace.add("memset", (dst.record(),), (), allowed=("vector", "gpsimd"), name="assignment",
                        attributes={"value": 0}, line=session().line())


def _from_tensor(dst: NkiTensor, value: NkiTensor) -> None:
    if renames(dst, value):
        if session().compute:
            dst.write(value.array, _fitting(value.mask, dst.shape))
        else:
            dst.memory.written = True
            if dst.space == "psum":
                dst.touch()
        rewire(dst, value)
    elif dst.on_chip and value.on_chip:
        tensor_copy(dst, _shaped(value, dst.shape))
    else:
        dst.write(copied(dst, value))
        record_copy("assignment", dst, value)


def _shaped(value: NkiTensor, shape: tuple[int, ...]) -> NkiTensor:
    if value.shape != shape and value.size == prod(shape) and value.flat is None:
        try:
            shaped: NkiTensor = value.reshape(shape)
            return shaped
        except Exception:  # its elements lie otherwise: the copy reads them in order
            return value
    return value


def _fitting(mask: Any, shape: tuple[int, ...]) -> Any:
    if mask is None:
        return None
    if mask.size == prod(shape):
        return mask.reshape(shape)
    try:
        np.broadcast_to(mask, shape)
    except ValueError:
        return None
    return mask


def renames(dst: NkiTensor, value: NkiTensor) -> bool:
    """Whether the value is a result that no one has read, so that its instruction may write to `dst` itself."""
    if value.born is None or value.memory.read or not dst.on_chip:
        return False
    if value.space == "psum" and dst.space != "psum":
        return False
    return value.size == dst.size or value.size == 1 or value.ndim <= dst.ndim


def rewire(dst: NkiTensor, value: NkiTensor, **attributes: Any) -> None:
    """The instruction that made `value` writes to `dst`."""
    trace = session().trace
    assert value.born is not None
    old, new = value._view, dst.record()
    trace.outputs[value.born] = tuple(new if v == old else v for v in trace.outputs[value.born])
    if attributes:
        trace.attributes[value.born] = trace.attributes[value.born] | attributes
    trace.buffers[value.memory.buffer].alive = False
    value._view = new
    value.born = None


def combine(dst: NkiTensor, value: LoopSum) -> None:
    """A loop's reduction: the first iteration writes, later ones combine."""
    s, tile = session(), value.tile
    s.mask = value.mask
    if value.first:
        _from_tensor(dst, tile)
    elif dst.space == "psum" and value.op == "add" and _is_product(tile):
        accumulate(dst, tile)
    else:
        tensor_tensor(dst, dst, tile, value.op)
    s.mask = None


def _is_product(value: NkiTensor) -> bool:
    return value.born is not None and not value.memory.read and session().trace.kind[value.born].startswith("nc_matmul")


def accumulate(dst: NkiTensor, value: NkiTensor) -> None:
    """PSUM += a product: the array adds; the first time it overwrites."""
    s = session()
    if s.compute:
        before, s.mask = s.mask, _fitting(value.mask, dst.shape)
        added = add_into(dst, value.array.reshape(dst.shape) if value.size == dst.size else value.array, None)
        s.mask = before
    else:
        added = bool(dst.touched().all())
        dst.touch()
        dst.memory.written = True
    rewire(dst, value, accumulate=int(added))


def in_place(self: NkiTensor, op: str, value: Any) -> NkiTensor:
    """self op= value."""
    if isinstance(value, NkiTensor):
        if op == "add" and self.space == "psum" and _is_product(value):
            accumulate(self, value)
        elif self.on_chip:
            _arithmetic_into(self, op, value)
        else:
            self.write(apply(alu(op), self.array.astype(F32), value.f32()))
            record_copy("assignment", self, value)
    else:
        _arithmetic_into(self, op, value)
    self.settled = True
    return self


def _arithmetic_into(self: NkiTensor, op: str, value: Any) -> None:
    from trellis.nki.language.arithmetic import binary_into

    if self.dtype.kind in "iu" and not isinstance(value, NkiTensor):
        value = float(value)
    binary_into(self, op, self, value)
