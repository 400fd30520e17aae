"""What the DMA rings do."""

from typing import Any

import numpy as np

from trellis.nki.instructions.emit import G, S, SYNC, emit, engine_of, instruction, refuse, session
from trellis.nki.instructions.masks import let_in
from trellis.nki.instructions.operators import alu, apply, name_of
from trellis.nki.tensors.types import F32, convert, through_f32

__all__ = ["check_inside", "copied", "dma_copy", "order_of", "record_copy"]

RINGS = (SYNC, S, G)
REPEATED = {"add": np.add, "max": np.maximum, "min": np.minimum, "multiply": np.multiply,
            "subtract": np.subtract}  # whose results no order changes


def _skips(oob_mode: Any) -> bool:
    return oob_mode is not None and name_of(oob_mode) == "skip"


def check_inside(t: Any, oob_mode: Any) -> None:
    if t.valid is None or _skips(oob_mode) or session().mask is not None or bool(t.valid.all()):
        return
    bad = np.argwhere(~np.broadcast_to(t.valid, t.shape))[0].tolist()
    error = refuse(f"the index of element {bad} of {t!r} is out of bounds; expected oob_mode.skip, or an index inside")
    if not session().beta:
        raise error
    place, size = int(np.broadcast_to(t.flat, t.shape)[tuple(bad)]), t.memory.bytes // t.itemsize
    plain = IndexError(f"index {place} is out of bounds for axis 0 with size {size}")  # numpy raises the same
    plain.add_note(str(error))
    raise plain


def _ring(engine: Any, dge_mode: Any) -> tuple[str | None, tuple[str, ...]]:
    """The queue that a call asks for, and those that serve its way of making descriptors."""
    asked = engine_of(engine)
    mode = "unknown" if dge_mode is None else name_of(dge_mode)
    if mode == "swdge":
        return G, (G,)
    if asked is not None:
        return (asked if asked in RINGS else SYNC), RINGS
    return None, (SYNC, S) if mode == "hwdge" else RINGS


def copied(dst: Any, src: Any) -> Any:
    """The source's elements in the destination's shape."""
    values = through_f32(src.read(), dst.dtype)
    if values.shape != dst.shape and values.size == dst.size:
        values = values.reshape(dst.shape)
    return values


def record_copy(name: str, dst: Any, src: Any, engine: Any = None, dge_mode: Any = None, partial: bool = False) -> Any:
    """A copy by DMA, or, where a tensor chooses rows, a gather or a scatter."""
    queue, allowed = _ring(engine, dge_mode)
    if src.index is not None and src.flat is not None and not src.on_chip:
        table = src.like(src.shape, tuple(src.strides), 0)
        return emit("dma_gather", (dst,), (table, src.index), allowed=(G,), name=name, queue=G, partial=partial)
    if dst.index is not None and dst.flat is not None and not dst.on_chip:
        table = dst.like(dst.shape, tuple(dst.strides), 0)
        return emit("dma_scatter", (table,), (src, dst.index), allowed=(G,), name=name, queue=G)
    return emit("dma_copy", (dst,), (src,), allowed=allowed, name=name, engine=queue, queue=queue, partial=partial)


@instruction("dma_copy")
def dma_copy(dst: Any, src: Any, priority: Any = None, oob_mode: Any = None, dge_mode: Any = None, engine: Any = None,
             name: Any = None, dst_rmw_op: Any = None, unique_indices: bool = True) -> Any:
    s = session()
    if "psum" in (dst.space, src.space) and s.strict and not s.beta:
        raise refuse(f"dma_copy of {src!r} to {dst!r}; DMA does not reach PSUM since 0.3 (nki.isa.dma_copy)")
    if dst.size != src.size and not (s.mask is not None or dst.flat is not None):
        raise refuse(f"dma_copy of {src!r} to {dst!r}; expected as many elements of both")
    check_inside(src, oob_mode)
    check_inside(dst, oob_mode)
    if s.compute:
        _store(dst, src, dst_rmw_op)
    return record_copy("dma_copy", dst, src, engine, dge_mode, partial=dst_rmw_op is not None or src.valid is not None)


def _store(dst: Any, src: Any, op: Any) -> None:
    values = copied(dst, src)
    if op is not None:
        word = alu(op, "dst_rmw_op")
        if dst.flat is not None:
            _combine_repeated(dst, values, word, _let_through(dst, src))
            return
        values = apply(word, dst.array.astype(F32), values.astype(F32))
    dst.write(values, _let_through(dst, src))


def _let_through(dst: Any, src: Any) -> Any:
    """Elements of the destination that the mask lets through and the source has; None: all."""
    mask = let_in(dst.shape)
    if src.valid is None:
        return mask
    inside = np.broadcast_to(src.valid, src.shape)
    if inside.shape != dst.shape:
        inside = inside.reshape(dst.shape) if inside.size == dst.size else np.broadcast_to(inside, dst.shape)
    return inside if mask is None else inside & mask


def _combine_repeated(dst: Any, values: Any, op: str, mask: Any) -> None:
    """dst op= values, where places of dst may repeat."""
    if op not in REPEATED:
        raise refuse(f"dst_rmw_op={op} of rows that indices choose; expected {', '.join(REPEATED)}")
    keep = np.ones(dst.shape, bool) if dst.valid is None else np.broadcast_to(dst.valid, dst.shape)
    if mask is not None:
        keep = keep & mask
    values = np.broadcast_to(convert(values, dst.dtype), dst.shape)
    places = np.broadcast_to(dst.flat, dst.shape)
    with np.errstate(all="ignore"):
        REPEATED[op].at(dst._elements(), places[keep], values[keep])
    dst.memory.written = True


def order_of(axes: Any, dimensions: int) -> tuple[int, ...]:
    """The dimensions of the source, in the order in which dma_transpose's result has them."""
    return tuple(axes) if axes else {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}[dimensions]


@instruction("dma_transpose")
def dma_transpose(dst: Any, src: Any, axes: Any = None, priority: Any = None, dge_mode: Any = None,
                  oob_mode: Any = None, name: Any = None) -> Any:
    check_inside(src, oob_mode)
    order = order_of(axes, src.ndim)
    if session().compute:
        let = let_in(src.shape)
        dst.write(src.read().transpose(order).reshape(dst.shape),
                  None if let is None else let.transpose(order).reshape(dst.shape))
    queue, allowed = _ring(None, dge_mode)
    if src.index is not None and src.flat is not None:
        src = src.like(src.shape, tuple(src.strides), 0)
    return emit("dma_transpose", (dst,), (src,), allowed=allowed, name="dma_transpose", queue=queue)


@instruction("dma_compute")
def dma_compute(dst: Any, srcs: Any, reduce_op: Any, scales: Any = None, unique_indices: bool = True,
                oob_mode: Any = None, name: Any = None) -> Any:
    word = alu(reduce_op, "reduce_op")
    scales = [1.0] * len(srcs) if scales is None else list(scales)
    if session().compute:
        total: Any = None
        for src, scale in zip(srcs, scales, strict=True):
            values = copied(dst, src).astype(F32) * np.float32(scale)
            total = values if total is None else apply(word, total, values)
        if dst.flat is not None and any(t.memory is dst.memory for t in srcs) and not unique_indices:
            _combine_others(dst, srcs, scales, word)
        else:
            dst.write(total, None if dst.valid is None else np.broadcast_to(dst.valid, dst.shape))
    return emit("dma_compute", (dst,), tuple(srcs), allowed=(G,), name="dma_compute", attributes={"op": word}, queue=G)


def _combine_others(dst: Any, srcs: Any, scales: Any, op: str) -> None:
    """dst op= the sources that are not of its memory, where rows of dst may repeat."""
    for src, scale in zip(srcs, scales, strict=True):
        if src.memory is not dst.memory:
            _combine_repeated(dst, copied(dst, src).astype(F32) * np.float32(scale), op, _let_through(dst, src))
