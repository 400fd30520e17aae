"""Loops when only the time is wanted: a few iterations are traced, the others follow from them.

neuronxcc's compiler reads a loop's body once, with the index as a symbol, so that iterations differ by steps alone. In
nki, whose loops are Python's, an index says whether the text asked it for more than that (`counted.py`). Some
iterations are traced; what they record has to advance by even steps, also to the last one, which is traced too. Else
all are traced. Of a loop that would record very much, only so many iterations are as it takes to reach a steady state
(trace.Fold).
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from trellis.nki.kernels.session import Session
from trellis.nki.language.counted import LoopWatch
from trellis.nki.trace import COLUMNS, Fold, Trace, View

__all__ = ["Repeated"]

SAMPLES = 4  # iterations traced first: the first one may differ, and the others show two equal steps
FEWEST = SAMPLES + 3
FOLDED_FROM = 100_000  # instructions from which a loop is folded
FOLDED_ROWS = 20_000  # instructions of such a loop that are recorded, in
FOLDED_KEPT = 4  # so many iterations at least
LONG = 64  # iterations from which loops of nki's own dialect are shortened: its indices cost more to watch


class Mark(NamedTuple):
    """How long the parts of a trace are."""

    row: int
    view: int
    buffer: int
    orders: int
    folds: int

    @staticmethod
    def of(t: Trace) -> "Mark":
        orders = len(t.no_reorder) + len(t.depends) + len(t.after) + len(t.labels) + len(t.collectives)
        return Mark(len(t), len(t.views), len(t.buffers), orders, len(t.folds))


class Step(NamedTuple):
    """By how much a view advances in one iteration."""

    buffer: int
    row: int
    offset: int


class Body(NamedTuple):
    """An iteration: where it is in the trace."""

    begin: Mark
    end: Mark

    def same_shape(self, o: "Body") -> bool:
        return (self.end.row - self.begin.row == o.end.row - o.begin.row
                and self.end.view - self.begin.view == o.end.view - o.begin.view
                and self.end.buffer - self.begin.buffer == o.end.buffer - o.begin.buffer
                and self.end.folds - self.begin.folds == o.end.folds - o.begin.folds)


def _columns(t: Trace) -> list[list[Any]]:
    return [getattr(t, name) for name in COLUMNS]


def _same_rows(t: Trace, a: Body, b: Body) -> bool:
    """Whether two iterations record the same but for the places of their views."""
    if not a.same_shape(b) or a.begin.orders != b.end.orders:
        return False
    one, two = slice(a.begin.row, a.end.row), slice(b.begin.row, b.end.row)
    if any(column[one] != column[two] for column in _columns(t)):
        return False
    first, shift = a.begin.view, b.begin.view - a.begin.view
    for views in (t.outputs, t.inputs):
        for mine, other in zip(views[one], views[two], strict=True):
            if tuple(v + shift if v >= first else v for v in mine) != other:
                return False
    moved = b.begin.row - a.begin.row
    if [f._replace(first=f.first + moved) for f in t.folds[a.begin.folds : a.end.folds]] != t.folds[
        b.begin.folds : b.end.folds
    ]:
        return False
    kinds = [[(m.space, m.dtype, m.shape, m.site, m.address) for m in t.buffers[body.begin.buffer:body.end.buffer]]
             for body in (a, b)]  # fmt: skip
    return kinds[0] == kinds[1]


def _steps(t: Trace, a: Body, b: Body) -> list[Step] | None:
    """From one iteration to another; None where views differ by more than their place."""
    out = []
    shift = b.begin.buffer - a.begin.buffer
    for mine, other in zip(t.views[a.begin.view:a.end.view], t.views[b.begin.view:b.end.view], strict=True):
        if (mine.rows, mine.pattern, mine.pitch, mine.dtype) != (other.rows, other.pattern, other.pitch, other.dtype):
            return None
        inside = mine.buffer >= a.begin.buffer
        moved = other.buffer - mine.buffer - (shift if inside else 0)
        if inside and moved:
            return None
        out.append(Step(moved, other.first_row - mine.first_row, other.offset - mine.offset))
    return out


def _append(t: Trace, body: Body, steps: list[Step], times: int) -> None:
    """Another iteration, that many steps after the body's."""
    first_view, view_shift = body.begin.view, len(t.views) - body.begin.view
    buffer_shift = len(t.buffers) - body.begin.buffer
    for b in t.buffers[body.begin.buffer:body.end.buffer]:
        t.buffers.append(replace(b, index=len(t.buffers)))
    for v, step in zip(t.views[first_view:body.end.view], steps, strict=True):
        buffer = v.buffer + (buffer_shift if v.buffer >= body.begin.buffer else step.buffer * times)
        t.views.append(View(buffer, v.first_row + step.row * times, v.rows, v.offset + step.offset * times, v.pattern,
                            v.pitch, v.dtype))  # fmt: skip
    rows = slice(body.begin.row, body.end.row)
    moved = len(t) - body.begin.row
    t.folds.extend([f._replace(first=f.first + moved) for f in t.folds[body.begin.folds:body.end.folds]])
    for column in _columns(t):
        column.extend(column[rows])
    for views in (t.outputs, t.inputs):
        views.extend([tuple(v + view_shift if v >= first_view else v for v in each) for each in views[rows]])


def _cut(t: Trace, row: int, folds: int) -> None:
    """Drops instructions; views and buffers stay, since tensors may know their numbers."""
    del t.folds[folds:]
    for column in (*_columns(t), t.outputs, t.inputs):
        del column[row:]


class Repeated:
    """A loop's indices, of which only some are given out where that tells the rest."""

    def __init__(self, s: Session, values: range) -> None:
        self.session, self.values = s, values

    @staticmethod
    def wanted(s: Session, values: range) -> bool:
        fewest = FEWEST if s.beta else LONG
        return not s.compute and s.team is None and s.repeats and len(values) >= fewest

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, k: int) -> int:
        return self.values[k]

    def __iter__(self) -> Iterator[int]:
        t, values = self.session.trace, self.values
        watch = None if self.session.beta else LoopWatch(len(values), {*range(SAMPLES), len(values) - 1})
        marks = [Mark.of(t)]
        for k in range(SAMPLES):
            yield values[k] if watch is None else watch.index(k, values)
            marks.append(Mark.of(t))
        bodies = [Body(a, b) for a, b in zip(marks, marks[1:], strict=False)][1:]
        steps = None if watch is not None and watch.asked else self._even_steps(bodies)
        if steps is None:
            yield from values[SAMPLES:]
            return
        self.session.repeated = True
        last, left = bodies[-1], len(values) - SAMPLES - 1
        appended = self._kept(last, left)
        for k in range(appended):
            _append(t, last, steps, k + 1)
        begin = Mark.of(t)
        yield values[-1] if watch is None else watch.index(len(values) - 1, values)
        end = Body(begin, Mark.of(t))
        far = _steps(t, last, end) if _same_rows(t, last, end) else None
        times = left + 1
        wanted = [Step(s.buffer * times, s.row * times, s.offset * times) for s in steps]
        if far is None or far != wanted or (watch is not None and watch.asked):
            _cut(t, last.end.row, last.end.folds)
            yield from values[SAMPLES:]
        elif appended < left:
            t.folds.append(Fold(last.begin.row, last.end.row - last.begin.row, appended + 2, left - appended))

    @staticmethod
    def _kept(body: Body, left: int) -> int:
        """How many of the iterations that are left are recorded."""
        rows = body.end.row - body.begin.row
        if rows == 0 or rows * left < FOLDED_FROM:
            return left
        return min(left, max(FOLDED_KEPT, -(-FOLDED_ROWS // rows)))

    def _even_steps(self, bodies: list[Body]) -> list[Step] | None:
        t = self.session.trace
        if any(not _same_rows(t, a, b) for a, b in zip(bodies, bodies[1:], strict=False)):
            return None
        found = [_steps(t, a, b) for a, b in zip(bodies, bodies[1:], strict=False)]
        return found[0] if all(each == found[0] for each in found) else None
