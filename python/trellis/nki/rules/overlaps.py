"""Tiles that a kernel places over each other: what one holds must have been read before another is written there.

Each tile has storage of its own here, so such a kernel's results are not those of a device."""

import warnings
from functools import cache
from typing import NamedTuple

import numpy as np

from trellis.nki.kernels.session import NkiWarning, Session
from trellis.nki.tensors.types import TYPES
from trellis.nki.trace import Buffer, Trace, View

__all__ = ["box_in", "check_overlaps", "element_bytes"]

MOST_PLACES = 1_000  # different places in a kernel; with more, overlaps are not looked for


@cache
def _sizes() -> dict[str, int]:
    return {name: np.dtype(dtype).itemsize for dtype, name in TYPES.values()}


def element_bytes(name: str) -> int:
    """By the type's name in a trace."""
    return _sizes().get(name, 1)


class Box(NamedTuple):
    """A piece of a core's memory: partitions, and bytes of each."""

    space: str
    core: int
    row: int
    last_row: int  # one past it
    byte: int
    last_byte: int

    def meets(self, o: "Box") -> bool:
        return (self.space == o.space and self.core == o.core and self.row < o.last_row and o.row < self.last_row
                and self.byte < o.last_byte and o.byte < self.last_byte)  # fmt: skip

    def holds(self, o: "Box") -> bool:
        return (self.space == o.space and self.core == o.core and self.row <= o.row and o.last_row <= self.last_row
                and self.byte <= o.byte and o.last_byte <= self.last_byte)  # fmt: skip


def _place(b: Buffer) -> Box:
    """Of a tile without an address: as if it began at the first byte of the first partition."""
    row, byte = b.address or (0, 0)
    return Box(b.space, b.core, row, row + b.rows, byte, byte + b.row_bytes)


def box_in(view: View, b: Buffer) -> Box:
    """What a view touches of a tile."""
    whole = _place(b)
    low = high = view.offset
    for count, stride in view.pattern:
        low, high = low + min(0, (count - 1) * stride), high + max(0, (count - 1) * stride)
    size = element_bytes(view.dtype)
    row = whole.row + view.first_row
    return Box(b.space, b.core, row, row + view.rows, whole.byte + low * size, whole.byte + (high + 1) * size)


class Overwritten(NamedTuple):
    box: Box
    by: int  # a buffer
    at: int  # an instruction


class Places:
    """Which tiles hold something where, along a trace."""

    def __init__(self, t: Trace, placed: dict[int, Box]) -> None:
        self.t, self.placed = t, placed
        places = set(placed.values())
        self.near = {p: [q for q in places if p.meets(q)] for p in places}
        self.holding: dict[Box, list[int]] = {p: [] for p in places}  # the tiles that have been written there
        self.lost: dict[int, list[Overwritten]] = {}  # of a tile: what others were written over

    def read(self, v: int) -> Overwritten | None:
        """What was written over a view since."""
        view = self.t.views[v]
        lost = self.lost.get(view.buffer)
        if not lost:
            return None
        box = box_in(view, self.t.buffers[view.buffer])
        return next((each for each in lost if each.box.meets(box)), None)

    def write(self, v: int, at: int) -> None:
        view = self.t.views[v]
        mine = view.buffer
        if mine not in self.placed:
            return
        box = box_in(view, self.t.buffers[mine])
        for place in self.near[self.placed[mine]]:
            for other in [o for o in self.holding[place] if o != mine and box.meets(place)]:
                self.lost.setdefault(other, []).append(Overwritten(box, mine, at))
                if box.holds(place):
                    self.holding[place].remove(other)
        self.lost[mine] = [each for each in self.lost.get(mine, ()) if not box.holds(each.box)]
        here = self.holding[self.placed[mine]]
        if mine not in here:
            here.append(mine)


def check_overlaps(s: Session) -> None:
    """Warns where a tile is read of which another one has overwritten a part."""
    t = s.trace
    placed = {b.index: _place(b) for b in t.buffers if b.address is not None and b.space != "hbm"}
    if not placed or len(set(placed.values())) > MOST_PLACES:
        return
    places = Places(t, placed)
    said: set[tuple[int, int]] = set()
    for at in range(len(t)):
        adds = t.attributes[at].get("accumulate")
        for v in (*t.inputs[at], *(t.outputs[at] if adds else ())):
            lost = places.read(v)
            if lost is not None and (t.line[at], t.line[lost.at]) not in said:
                said.add((t.line[at], t.line[lost.at]))
                file, number, _ = t.lines[t.line[at]]
                one, other = t.buffers[t.views[v].buffer], t.buffers[lost.by]
                row, byte = one.address or (0, 0)
                warnings.warn(f"{file}:{number}: {one.name} (partition {row}, byte {byte} of {one.space.upper()}) is "
                              f"read, and {other.name} was written over it in line {t.lines[t.line[lost.at]][1]}: "
                              "their addresses meet",
                              NkiWarning, stacklevel=2)  # fmt: skip
        for v in t.outputs[at]:
            places.write(v, at)
