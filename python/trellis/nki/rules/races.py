"""Two cores of a logical core that touch the same of HBM, one of them to write, with no barrier on it in between."""

import bisect
import warnings
from typing import Any, NamedTuple

import numpy as np

from trellis.nki.instructions.emit import COLLECTIVES
from trellis.nki.kernels.session import NkiWarning, Session
from trellis.nki.rules.overlaps import element_bytes
from trellis.nki.trace import View

__all__ = ["check_races"]

SOURCE = "nki.isa.core_barrier"


class Access(NamedTuple):
    at: int  # an instruction
    core: int
    writes: bool
    view: int


def _dims(view: View, unit: int) -> tuple[int, list[tuple[int, int]]]:
    """Where a view of HBM begins, and its dimensions' counts and strides, in units of so many bytes."""
    size = element_bytes(view.dtype) // unit
    dims = [(view.rows, view.pitch), *view.pattern]
    return (view.offset + view.first_row * view.pitch) * size, [
        (n, step * size) for n, step in dims if n > 1 and step
    ] + [(size, 1)]


def _ends(view: View) -> tuple[int, int]:
    """The first byte, and one past the last."""
    low, dims = _dims(view, 1)
    return (
        low + sum(min(0, (n - 1) * step) for n, step in dims),
        low + 1 + sum(max(0, (n - 1) * step) for n, step in dims),
    )


class Ledger:
    """Who has touched which elements of a tensor since the last barrier."""

    def __init__(self, bytes_of_it: int, unit: int) -> None:
        self.unit = unit
        self.marks = np.zeros(-(-bytes_of_it // unit), np.uint8)

    def elements(self, view: View) -> Any:
        first, dims = _dims(view, self.unit)
        return np.lib.stride_tricks.as_strided(self.marks[first:], [n for n, _ in dims], [step for _, step in dims])

    def touch(self, a: Access, view: View) -> bool:
        """Whether another core has written there, or has read what is written now. Two bits of a mark are of each
        core."""
        marks = self.elements(view)
        others = 0
        for core in range(4):
            if core != a.core:
                others |= (3 if a.writes else 2) << 2 * core
        met = bool((marks & np.uint8(others)).any())
        marks |= np.uint8((2 if a.writes else 1) << 2 * a.core)
        return met


def _accesses(s: Session) -> dict[tuple[int, int], list[Access]]:
    """Of HBM, by tensor and by how many barriers on it were before. What may touch less than its view says is left out,
    and so are collectives, which wait for each other."""
    t = s.trace
    met: dict[int, list[int]] = {}
    for buffer, at in sorted(s.meetings):
        met.setdefault(buffer, []).append(at)
    found: dict[tuple[int, int], list[Access]] = {}
    for at, kind in enumerate(t.kind):
        if t.partial[at] or kind in COLLECTIVES or kind.startswith(("dma_gather", "dma_scatter")):
            continue
        for writes, views in ((False, t.inputs[at]), (True, t.outputs[at])):
            for v in views:
                b = t.views[v].buffer
                if t.buffers[b].space == "hbm":
                    found.setdefault((b, bisect.bisect(met.get(b, ()), at)), []).append(
                        Access(at, t.core[at], writes, v)
                    )
    return found


def _apart(accesses: list[Access], s: Session) -> bool:
    """Whether it can be told without looking at elements that there is no race."""
    if len({a.core for a in accesses}) < 2 or not any(a.writes for a in accesses):
        return True
    spans = sorted((*_ends(s.trace.views[a.view]), a.core) for a in accesses)
    last, core = spans[0][1], spans[0][2]
    for low, high, mine in spans[1:]:
        if low < last and mine != core:
            return False
        if high > last or low >= last:
            last, core = max(last, high), mine
    return True


def check_races(s: Session) -> None:
    """Warns where what one core reads or writes depends on how fast the other is."""
    if s.trace.lnc < 2:
        return
    t = s.trace
    said: set[tuple[int, int]] = set()
    for (b, _), accesses in _accesses(s).items():
        if _apart(accesses, s):
            continue
        buffer = t.buffers[b]
        unit = min(element_bytes(t.views[a.view].dtype) for a in accesses)
        ledger = Ledger(buffer.row_bytes, unit)
        for n, a in enumerate(accesses):
            view = t.views[a.view]
            if not ledger.touch(a, view):
                continue
            earlier = (o for o in reversed(accesses[:n]) if o.core != a.core and (o.writes or a.writes)
                       and not _alike(a, o, s) and _meet(view, t.views[o.view], buffer.row_bytes, unit))  # fmt: skip
            other = next(earlier, None)
            if other is None:
                continue
            lines = t.line[a.at], t.line[other.at]
            if lines in said or lines[::-1] in said:
                continue
            said.add(lines)
            file, number, _ = t.lines[lines[0]]
            words = {True: "writes", False: "reads"}
            warnings.warn(f"{file}:{number}: core {a.core} {words[a.writes]} what core {other.core} "
                          f"{words[other.writes]} in line {t.lines[lines[1]][1]} of {buffer.name} in HBM, with no "
                          f"barrier on it in between; expected nisa.core_barrier({buffer.name}, (0, 1)) ({SOURCE})",
                          NkiWarning, stacklevel=2)  # fmt: skip


def _alike(a: Access, o: Access, s: Session) -> bool:
    """Whether both are the same line's write of the same place: a kernel that does not divide its work writes the same
    twice."""
    t = s.trace
    return a.writes and o.writes and t.line[a.at] == t.line[o.at] and t.views[a.view] == t.views[o.view]


def _meet(one: View, other: View, size: int, unit: int) -> bool:
    ledger = Ledger(size, unit)
    ledger.touch(Access(0, 0, True, 0), one)
    return ledger.touch(Access(0, 1, True, 0), other)
