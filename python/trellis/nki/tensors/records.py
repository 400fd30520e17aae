"""An operand's elements as a view of the trace: rows, and in each a pattern of counts and strides."""

from typing import TYPE_CHECKING

from trellis.nki.tensors.types import trellis_name
from trellis.nki.trace import View

if TYPE_CHECKING:
    from trellis.nki.tensors.tensor import NkiTensor

__all__ = ["Dims", "merged", "MOST_DIMS", "view_of"]

MOST_DIMS = 4
Dims = list[tuple[int, int]]


def merged(dims: Dims) -> tuple[tuple[int, int], ...]:
    """Dimensions without those of one element, neighbours that lie together as one, and at most four."""
    out: Dims = []
    for count, stride in dims:
        if count == 1:
            continue
        if out and out[-1][1] == count * stride and stride != 0:
            out[-1] = (out[-1][0] * count, stride)
        elif out and out[-1][1] == 0 and stride == 0:
            out[-1] = (out[-1][0] * count, 0)
        else:
            out.append((count, stride))
    while len(out) > MOST_DIMS:  # the two outermost as one, of the inner one's stride
        (a, _), (b, stride) = out[:2]
        out[:2] = [(a * b, stride)]
    return tuple(out) or ((1, 1),)


def view_of(t: "NkiTensor", rows: int | None = None) -> View:
    """`rows`: of an operand in HBM, how many the other operand has."""
    name = trellis_name(t.dtype)
    dims, offset = list(zip(t.shape, t.strides, strict=True)), t.offset
    if t.bounds is not None:  # under a mask: only what it lets through
        dims = [(n, stride) for (_, stride), (_, n) in zip(dims, t.bounds, strict=True)]
        offset += sum(first * stride for (first, _), stride in zip(t.bounds, t.strides, strict=True))
    if t.flat is not None and t.valid is None and t.bounds is None:
        dims = _contiguous(t.shape)
        offset = 0
    if t.on_chip:
        return _on_chip(t, name, dims, offset)
    dims = [d for d in dims if d[0] != 1]
    count, pitch, inner = _split(dims, rows)
    return View(t.memory.buffer, 0, count, max(offset, 0), merged(inner), pitch, name)


def _contiguous(shape: tuple[int, ...]) -> Dims:
    step, out = 1, []
    for count in reversed(shape):
        out.append((count, step))
        step *= count
    return out[::-1]


def _split(dims: Dims, rows: int | None) -> tuple[int, int, Dims]:
    """Rows, their pitch and the dimensions within one, so that there are as many rows as asked for, where that can
    be."""
    if not dims:
        return 1, 0, []
    if rows is not None:
        count, k = 1, 0
        while k < len(dims) and count < rows:
            count *= dims[k][0]
            k += 1
        if count == rows and rows > 1:
            outer = merged(dims[:k])
            if len(outer) == 1:
                return rows, outer[0][1], dims[k:]
        if rows == 1:
            return 1, 0, dims
    if len(dims) == 1 and rows is None:
        return 1, 0, dims
    return dims[0][0], dims[0][1], dims[1:]


def _on_chip(t: "NkiTensor", name: str, dims: Dims, offset: int) -> View:
    """Of several blocks, the first: an instruction reaches one."""
    buffer, offset, size = t.memory.buffer, max(offset, 0), t.dtype.itemsize
    partitions, row_bytes = t.memory.block or (0, t.memory.row_bytes)
    row = max(1, row_bytes // size)
    if partitions:
        which, offset = divmod(offset, partitions * row)
        buffer += which
        dims = [(n, s) for n, s in dims if n == 1 or s == 0 or s % (partitions * row)]
    first, inside = divmod(offset, row)
    count, free = 1, []
    for n, stride in dims:
        if n > 1 and stride and stride % row == 0:  # from partition to partition
            count *= n
            first += min(0, (n - 1) * stride // row)
        else:
            free.append((n, stride))
    return View(buffer, first, count, inside, merged(free), 0, name)
