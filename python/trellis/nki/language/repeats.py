"""Loops of neuronxcc's dialect when only the time is wanted: a few iterations are traced, the others follow from them.

That compiler reads a loop's body once, with the index as a symbol, so that iterations differ by steps alone. Some are
traced; what they record has to advance by even steps, also to the last one, which is traced too. Else all are traced.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from trellis.nki.kernels.session import Session
from trellis.nki.trace import Trace, View

__all__ = ["Repeated"]

SAMPLES = 4  # the first may differ, and from the others come two equal steps
FEWEST = SAMPLES + 3


class Mark(NamedTuple):
    """How long the parts of a trace are."""

    row: int
    view: int
    buffer: int
    orders: int

    @staticmethod
    def of(t: Trace) -> "Mark":
        return Mark(len(t), len(t.views), len(t.buffers), len(t.no_reorder) + len(t.depends) + len(t.after) + len(t.labels))


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
                and self.end.buffer - self.begin.buffer == o.end.buffer - o.begin.buffer)


def _same_rows(t: Trace, a: Body, b: Body) -> bool:
    """Whether two iterations record the same but for the places of their views."""
    if not a.same_shape(b) or a.begin.orders != b.end.orders:
        return False
    one, two = slice(a.begin.row, a.end.row), slice(b.begin.row, b.end.row)
    for column in (t.kind, t.line, t.engine, t.allowed, t.queue, t.core, t.attributes, t.names):
        if column[one] != column[two]:
            return False
    first, shift = a.begin.view, b.begin.view - a.begin.view
    for views in (t.outputs, t.inputs):
        for mine, other in zip(views[one], views[two], strict=True):
            if tuple(v + shift if v >= first else v for v in mine) != other:
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
    columns: list[list[Any]] = [t.kind, t.engine, t.allowed, t.attributes, t.line, t.names, t.queue, t.core]
    for column in columns:
        column.extend(column[rows])
    for views in (t.outputs, t.inputs):
        views.extend([tuple(v + view_shift if v >= first_view else v for v in each) for each in views[rows]])


def _cut(t: Trace, row: int) -> None:
    """Drops instructions; views and buffers stay, since tensors may know their numbers."""
    columns: list[list[Any]] = [t.kind, t.engine, t.allowed, t.outputs, t.inputs, t.attributes, t.line, t.names, t.queue,
                                t.core]  # fmt: skip
    for column in columns:
        del column[row:]


class Repeated:
    """A loop's indices, of which only some are given out where that tells the rest."""

    def __init__(self, s: Session, values: range) -> None:
        self.session, self.values = s, values

    @staticmethod
    def wanted(s: Session, values: range) -> bool:
        return s.beta and not s.compute and s.team is None and s.repeats and len(values) >= FEWEST

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, k: int) -> int:
        return self.values[k]

    def __iter__(self) -> Iterator[int]:
        t, values = self.session.trace, self.values
        marks = [Mark.of(t)]
        for i in values[:SAMPLES]:
            yield i
            marks.append(Mark.of(t))
        bodies = [Body(a, b) for a, b in zip(marks, marks[1:], strict=False)][1:]
        steps = self._even_steps(bodies)
        if steps is None:
            yield from values[SAMPLES:]
            return
        self.session.repeated = True
        for k in range(SAMPLES, len(values) - 1):
            _append(t, bodies[-1], steps, k - SAMPLES + 1)
        begin = Mark.of(t)
        yield values[-1]
        last = Body(begin, Mark.of(t))
        far = _steps(t, bodies[-1], last) if _same_rows(t, bodies[-1], last) else None
        times = len(values) - SAMPLES
        if far is None or far != [Step(s.buffer * times, s.row * times, s.offset * times) for s in steps]:
            _cut(t, bodies[-1].end.row)
            yield from values[SAMPLES:]

    def _even_steps(self, bodies: list[Body]) -> list[Step] | None:
        t = self.session.trace
        if any(not _same_rows(t, a, b) for a, b in zip(bodies, bodies[1:], strict=False)):
            return None
        found = [_steps(t, a, b) for a, b in zip(bodies, bodies[1:], strict=False)]
        return found[0] if all(each == found[0] for each in found) else None
