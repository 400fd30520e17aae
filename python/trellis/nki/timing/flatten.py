"""A trace as the flat arrays that the core's back end reads."""

import dataclasses
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from trellis import _native
from trellis.nki.trace import ENGINES, Trace, View

__all__ = ["draft_of", "label", "split_tiles"]

_SPACES = {"sbuf": 0, "psum": 1, "hbm": 2}
_ROLES = {"internal": 0, "input": 1, "output": 2}
_RINGS = {name: number for number, name in enumerate(ENGINES)}  # as the core's builder: the ring of its engine
_FURTHER_RINGS = len(ENGINES)
_MOST_DIMS = 4


# Keys by their meaning in full, and as the assembler writes them.
_SHORT = {"compare": "cmp", "compare1": "cmp1", "target": "to", "source": "from", "semaphore": "sem",
          "rounding": "round", "epsilon": "eps", "reduce_command": "reduce_cmd", "tile_column": "tile_col",
          "tile_columns": "tile_cols", "bounds": "oob", "duration": "ns"}  # fmt: skip


@cache
def _types() -> dict[str, int]:
    return {name: number for number, name in enumerate(_native.dtype_names())}


@cache
def _vocabulary() -> dict[str, tuple[int, dict[str, int]]]:
    """Of each attribute's key: its number, and the numbers of its words."""
    return {
        key: (number, {word: n for n, word in enumerate(words)})
        for number, (key, words) in enumerate(_native.core_vocabulary().items())
    }


def _attribute(key: str, value: Any) -> tuple[int, float]:
    key = _SHORT.get(key, key)
    if key not in _vocabulary():
        raise ValueError(f"attribute {key!r}: expected one of {', '.join(_vocabulary())}")
    number, words = _vocabulary()[key]
    if isinstance(value, str):
        if value not in words:
            raise ValueError(f"{key}={value!r}: expected one of {', '.join(words) or 'no word, but a number'}")
        return number, words[value]
    return number, float(value)


def _view_row(view: View, hbm: bool) -> list[int]:
    size = _native.element_bytes(view.dtype)
    pattern = [(count, stride) for count, stride in view.pattern if count != 1] or [(1, 1)]
    if len(pattern) > _MOST_DIMS:
        raise ValueError(f"a view of {len(pattern)} dimensions: expected at most {_MOST_DIMS}")
    dims = [n for pair in pattern for n in pair]
    row = [view.buffer, _types()[view.dtype], 0 if hbm else view.first_row, view.rows, view.offset * size,
           view.pitch * size if hbm else 0, len(pattern)]  # fmt: skip
    if hbm:
        row[4] += view.first_row * view.pitch * size
    return row + dims + [1] * (2 * _MOST_DIMS - len(dims))


def _buffers(trace: Trace) -> tuple[list[str], npt.NDArray[np.int64]]:
    names: dict[str, int] = {}
    unique, rows = [], []
    for b in trace.buffers:
        times = names[b.name] = names.get(b.name, 0) + 1
        unique.append(b.name if times == 1 else f"{b.name}#{times}")
        partition, offset = b.address or (0, 0)
        rows.append((_SPACES[b.space], _types()[b.dtype], _ROLES[b.role], b.core, partition,
                     1 if b.space == "hbm" else b.rows, offset, max(b.row_bytes, 1), b.site,
                     b.address is not None and b.space != "hbm"))  # fmt: skip
    return unique, np.array(rows, np.int64).reshape(len(rows), 10)


def _range(view: View) -> tuple[int, int]:
    """The bytes of a row, from the first to one past the last."""
    low = high = view.offset
    for count, stride in view.pattern:
        low, high = low + min(0, (count - 1) * stride), high + max(0, (count - 1) * stride)
    size = _native.element_bytes(view.dtype)
    return low * size, (high + 1) * size


def split_tiles(trace: Trace) -> Trace:
    """The same kernel with each tile that is only touched by parts apart as so many tiles, which live for themselves.

    So a compiler that fuses loops can keep a few parts of a tile that as a whole would not fit.
    """
    ranges: dict[int, set[tuple[int, int]]] = {}
    for view in trace.views:
        b = trace.buffers[view.buffer]
        if b.space != "hbm" and b.address is None:
            ranges.setdefault(view.buffer, set()).add(_range(view))
    split = dataclasses.replace(trace, buffers=list(trace.buffers), views=list(trace.views))
    parts: dict[int, list[tuple[int, int, int]]] = {}  # of a buffer: first byte, one past the last, the new buffer
    for number, touched in ranges.items():
        merged: list[list[int]] = []
        for low, high in sorted(touched):
            if merged and low < merged[-1][1]:
                merged[-1][1] = max(merged[-1][1], high)
            else:
                merged.append([low, high])
        if len(merged) == 1:
            continue
        whole = trace.buffers[number]
        for low, high in merged:
            parts.setdefault(number, []).append((low, high, len(split.buffers)))
            split.buffers.append(dataclasses.replace(whole, index=len(split.buffers), row_bytes=high - low))
    for n, view in enumerate(trace.views):
        if view.buffer not in parts:
            continue
        low = _range(view)[0]
        first, _, part = next(each for each in parts[view.buffer] if each[0] <= low < each[1])
        split.views[n] = view._replace(buffer=part, offset=view.offset - first // _native.element_bytes(view.dtype))
    return split


def default_engine(trace: Trace, at: int) -> str:
    """Of a DMA that names no queue: Sync triggers what fills tiles, GpSimd what empties them, which may have to
    wait."""
    allowed = trace.allowed[at]
    to_hbm = trace.buffers[trace.views[trace.outputs[at][0]].buffer].space == "hbm"
    wanted = "gpsimd" if to_hbm else "sync"
    return wanted if wanted in allowed else allowed[0]


class _Columns:
    """The instructions' columns, as they grow."""

    def __init__(self, trace: Trace, rings: int) -> None:
        self.trace, self.rings = trace, rings
        self.kinds: dict[str, int] = {}
        self.rows: list[tuple[int, ...]] = []
        self.views: list[int] = []
        self.keys: list[int] = []
        self.values: list[float] = []
        self.turn = dict.fromkeys(ENGINES, 0)
        self._sets: dict[tuple[str, ...], int] = {}

    def _set(self, allowed: tuple[str, ...]) -> int:
        if allowed not in self._sets:
            self._sets[allowed] = sum(1 << _RINGS[e] for e in allowed)
        return self._sets[allowed]

    def _ring(self, engine: str) -> int:
        """With several rings for an engine's transfers, they take turns."""
        if (
            self.rings == 1 or _RINGS[engine] < _FURTHER_RINGS - 3
        ):  # Tensor and Vector trigger only transfers asked of them
            return _RINGS[engine]
        self.turn[engine] += 1
        turn = self.turn[engine] % self.rings
        return _RINGS[engine] if turn == 0 else _FURTHER_RINGS + (self.rings - 1) * (_RINGS[engine] - 2) + turn - 1

    def add(self, at: int, in_order: bool) -> None:
        trace = self.trace
        kind, asked = trace.kind[at], trace.engine[at]
        dma = kind.startswith("dma_") or kind == "sendrecv"
        ring = -1
        if dma:
            asked = trace.queue[at] or asked or default_engine(trace, at)
            ring = self._ring(asked)
        allowed = 0 if asked else self._set(trace.allowed[at])
        attributes = trace.attributes[at]
        for key, value in attributes.items():
            number, amount = _attribute(key, value)
            self.keys.append(number)
            self.values.append(amount)
        self.views += trace.outputs[at]
        self.views += trace.inputs[at]
        self.rows.append((self.kinds.setdefault(kind, len(self.kinds)), _RINGS[asked or trace.allowed[at][0]], allowed,
                          trace.core[at], ring, trace.line[at], len(trace.outputs[at]), len(trace.inputs[at]),
                          len(attributes), in_order, trace.begins[at]))  # fmt: skip


def label(trace: Trace, line: int) -> str:
    """A source line as reports show it."""
    file, number, text = trace.lines[line]
    return f"{file.rsplit('/', 1)[-1]}:{number} {text.strip()}" if file else "(no line)"


def draft_of(trace: Trace, rings: int = 1) -> _native.CoreDraft:
    """`rings`: how many DMA rings each triggering engine uses in turn."""
    names, buffers = _buffers(trace)
    hbm = [b.space == "hbm" for b in trace.buffers]
    views = np.array([_view_row(v, hbm[v.buffer]) for v in trace.views], np.int64).reshape(-1, 7 + 2 * _MOST_DIMS)
    ordered = np.zeros(len(trace), bool)
    for first, last in trace.no_reorder:
        ordered[first:last] = True
    columns = _Columns(trace, rings)
    for at, keeps in enumerate(ordered.tolist()):
        columns.add(at, keeps)
    return _native.CoreDraft(
        trace.name,
        names,
        buffers,
        views,
        list(columns.kinds),
        np.array(columns.rows, np.int64).reshape(-1, 11),
        np.array(columns.views, np.int32),
        np.array(columns.keys, np.int32),
        np.array(columns.values, np.float64),
        sorted(trace.depends),
        sorted(trace.after),
        [label(trace, n) for n in range(len(trace.lines))],
    )
