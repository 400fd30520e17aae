"""Searches and gathers: the eight largest, where they stand, and elements by index."""

from typing import Any

import numpy as np

from trellis.nki.instructions.emit import G, V, emit, instruction, refuse, session
from trellis.nki.instructions.masks import masked, results_of
from trellis.nki.tensors.types import F32

__all__ = ["nc_n_gather"]

CORE = 16  # partitions of one of GpSimd's cores
NOWHERE = 0xFFFFFFFF


def _rows(t: Any) -> Any:
    return t.f32().reshape(t.shape[0], -1)


@instruction("max8")
def max8(dst: Any, src: Any, name: Any = None) -> Any:
    count = src.size // src.shape[0]
    if not 8 <= count <= 16384:
        raise refuse(f"max8 of {src!r}; expected 8 to 16,384 elements a partition (nki.isa.max8)")
    if session().compute:
        values = masked(src.f32(), "max").reshape(src.shape[0], -1)
        largest = np.partition(values, count - 8, axis=1)[:, -8:]
        dst.write(-np.sort(-largest, axis=1), _rows_of(src))
    return emit("max8", (dst,), (src,), allowed=(V,), name="max8")


def _rows_of(t: Any) -> Any:
    """Rows of which the mask, which is of the operand, lets anything through."""
    return results_of(t.shape, tuple(range(1, t.ndim)), (t.shape[0], 1))


def places_of(data: Any, vals: Any, ascending: bool) -> Any:
    """Where each of a row's eight values stands; equal values share their places in order, or in reverse."""
    out = np.full((data.shape[0], vals.shape[1]), NOWHERE, np.uint32)
    for row in range(data.shape[0]):
        columns: dict[float, list[int]] = {}
        for k, value in enumerate(vals[row].tolist()):
            columns.setdefault(value, []).append(k)
        for value, where in columns.items():
            found = np.flatnonzero(data[row] == value)[: len(where)]
            out[row, where[: len(found)] if ascending else where[::-1][: len(found)]] = found
    return out


@instruction("nc_find_index8")
def nc_find_index8(dst: Any, data: Any, vals: Any, name: Any = None) -> Any:
    if session().compute:
        places = places_of(masked(data.f32(), "max").reshape(data.shape[0], -1), _rows(vals), True)
        dst.write(places, _rows_of(data))
    return emit("nc_find_index8", (dst,), (data, vals), allowed=(V,), name="nc_find_index8")


@instruction("nc_match_replace8")
def nc_match_replace8(dst: Any, data: Any, vals: Any, imm: Any, dst_idx: Any = None, name: Any = None) -> Any:
    s = session()
    if s.compute:
        rows = _rows(data)
        places = places_of(masked(data.f32(), "max").reshape(data.shape[0], -1), _rows(vals), s.beta)
        out = rows.copy()
        for row in range(len(rows)):
            found = places[row][places[row] != NOWHERE].astype(np.int64)
            out[row, found] = np.float32(imm)
        dst.write(out.reshape(data.shape) if out.size == data.size else out)
        if dst_idx is not None:
            dst_idx.write(places, _rows_of(data))
    return emit("nc_match_replace8", (dst, dst_idx), (data, vals), allowed=(V,), name="nc_match_replace8",
                attributes={"value": float(imm)})


@instruction("nc_n_gather")
def nc_n_gather(dst: Any, data: Any, indices: Any, name: Any = None) -> Any:
    if session().compute:
        places = indices.read().reshape(indices.shape[0], -1).astype(np.int64)
        got = np.take_along_axis(data.read().reshape(data.shape[0], -1), places, axis=1)
        dst.write(got.reshape(dst.shape))
    return emit("nc_n_gather", (dst,), (data, indices), allowed=(G,), name="nc_n_gather")


@instruction("local_gather")
def local_gather(dst: Any, src_buffer: Any, index: Any, num_elem_per_idx: int = 1, num_valid_indices: Any = None,
                 name: Any = None) -> Any:
    each = int(num_elem_per_idx)
    if session().compute:
        data = src_buffer.read().reshape(src_buffer.shape[0], -1)
        table = index.read().reshape(index.shape[0], -1).astype(np.int64)
        count = table.size // max(1, table.shape[0] // CORE) if num_valid_indices is None else int(num_valid_indices)
        out = np.zeros((data.shape[0], dst.size // dst.shape[0]), data.dtype)
        for first in range(0, data.shape[0], CORE):
            order = table[first:first + CORE].T.reshape(-1)[:count]
            places = (order[:, None] + np.arange(each)[None, :]).reshape(-1)
            out[first:first + CORE, : len(places)] = data[first:first + CORE, places]
        dst.write(out.reshape(dst.shape))
    return emit("local_gather", (dst,), (src_buffer, index), allowed=(G,), name="local_gather",
                attributes={"step": each} | ({} if num_valid_indices is None else {"count": int(num_valid_indices)}))


@instruction("nonzero_with_count")
def nonzero_with_count(dst: Any, src: Any, index_offset: int = 0, padding_val: int = -1, name: Any = None) -> Any:
    if session().compute:
        values = src.read().reshape(src.shape[0], -1)
        out = dst.array.reshape(dst.shape[0], -1).copy()
        for row in range(0, values.shape[0], CORE):
            found = np.flatnonzero(values[row])
            out[row, :] = padding_val
            out[row, : len(found)] = found + index_offset
            out[row, -1] = len(found)
        dst.write(out.reshape(dst.shape))
    return emit("nonzero_with_count", (dst,), (src,), allowed=(G,), name="nonzero_with_count",
                attributes={"start": index_offset, "value": padding_val})


@instruction("topk")
def topk(val_dst: Any, idx_dst: Any, src: Any, n: int, name: Any = None) -> Any:
    if session().compute:
        data = src.f32().reshape(src.shape[0], -1)
        k = val_dst.size // val_dst.shape[0]
        values, places = np.zeros((data.shape[0], k), F32), np.zeros((data.shape[0], k), np.uint32)
        for first in range(0, data.shape[0], CORE):
            snake = data[first:first + CORE].T.reshape(-1)[:n]
            best = np.argsort(-snake, kind="stable")[:k][::-1]
            values[first:first + CORE], places[first:first + CORE] = snake[best], best
        val_dst.write(values)
        idx_dst.write(places)
    return emit("topk", (val_dst, idx_dst), (src,), allowed=(G,), name="topk", attributes={"count": int(n)})


@instruction("sequence_bounds")
def sequence_bounds(dst: Any, segment_ids: Any, name: Any = None) -> Any:
    if session().compute:
        ids = segment_ids.read().reshape(-1)
        n = len(ids)
        first, last = np.full(n, n, np.int64), np.full(n, -1, np.int64)
        edges = np.flatnonzero(np.diff(ids)) + 1
        for begin, end in zip([0, *edges], [*edges, n], strict=True):
            if ids[begin] != 0:
                first[begin:end], last[begin:end] = begin, end
        dst.write(np.stack([first, last]).reshape(dst.shape))
    return emit("sequence_bounds", (dst,), (segment_ids,), allowed=(G,), name="sequence_bounds")
