"""What neuronxcc's middle end does not do twice: loads of the same data, and what a loop computes anew from what has
not changed.

Profiles of NKIBench's kernels say how many bytes each read from HBM: those whose repeated loads fit in SBUF read each
element once (add_rmsnorm_matmul 42.0 MB of the 302 that its text loads, bmm 33.6 of 84), the others as often as they
say (transpose_matmul 392 of 403). Of the tutorial's two Mamba kernels, the one whose product does not depend on the
inner loop keeps Vector busy for one operation less."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from trellis.nki.trace import COLUMNS, Trace, View

__all__ = ["without_repetition"]

ROTATING = 2  # tiles in flight of what is loaded again and again


class Result(NamedTuple):
    """What an instruction made, and where."""

    at: int
    buffer: int


class Pass:
    """Over a trace, in its order: which instructions are left out, and which buffers stand for others."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.dropped: set[int] = set()
        self.stands_for: dict[int, int] = {}  # from a buffer to one with the same content
        self.writers: dict[int, int] = {}
        self.last_write: dict[int, int] = {}
        for outputs in trace.outputs:
            for v in outputs:
                b = trace.views[v].buffer
                self.writers[b] = self.writers.get(b, 0) + 1

    def place(self, v: int) -> View:
        """A view, of the buffer that stands for its own."""
        view = self.trace.views[v]
        return view._replace(buffer=self.stands_for.get(view.buffer, view.buffer))

    def made(self, at: int) -> int | None:
        """The tile in SBUF that only this instruction writes."""
        t = self.trace
        if len(t.outputs[at]) != 1:
            return None
        b = t.buffers[t.views[t.outputs[at][0]].buffer]
        alone = b.space == "sbuf" and b.address is None and b.role == "internal" and self.writers.get(b.index) == 1
        return b.index if alone else None

    def key(self, at: int) -> Any:
        """Equal for instructions that do the same to the same elements."""
        t = self.trace
        out = t.views[t.outputs[at][0]]
        b = t.buffers[out.buffer]
        return (t.kind[at], t.core[at], tuple(sorted(t.attributes[at].items())), tuple(map(self.place, t.inputs[at])),
                out[1:], b.rows, b.row_bytes, b.dtype)  # fmt: skip

    def run(self, wanted: Callable[[int], bool], results: Callable[[int, Any], Result | None],
            keep: Callable[[int, Any, Result], None]) -> None:  # fmt: skip
        t = self.trace
        self.last_write.clear()
        for at in range(len(t)):
            if at in self.dropped:
                continue
            buffer = self.made(at) if wanted(at) else None
            if buffer is not None:
                key = self.key(at)
                before = results(at, key)
                inputs = [view.buffer for view in key[3]]
                if before is not None and all(self.last_write.get(b, -1) < before.at for b in inputs):
                    self.dropped.add(at)
                    self.stands_for[buffer] = before.buffer
                    continue
                keep(at, key, Result(at, buffer))
            for v in t.outputs[at]:
                self.last_write[self.place(v).buffer] = at

    def trace_left(self) -> Trace:
        """The trace without what is left out."""
        t = self.trace
        kept = [at for at in range(len(t)) if at not in self.dropped]
        number = {at: n for n, at in enumerate(kept)}
        column: dict[str, Any] = {
            name: [getattr(t, name)[at] for at in kept] for name in (*COLUMNS, "outputs", "inputs")
        }
        begun = np.searchsorted(kept, np.flatnonzero(t.begins))  # what is left out hands its region to what comes next
        column["begins"] = np.isin(np.arange(len(kept)), begun).tolist()
        pairs: dict[str, Any] = {
            name: [(number[a], number[b]) for a, b in getattr(t, name) if a in number and b in number]
            for name in ("depends", "after")
        }
        return replace(t, views=[self.place(v) for v in range(len(t.views))], no_reorder=[],
                       collectives={number[at]: c for at, c in t.collectives.items()}, **column, **pairs)  # fmt: skip


def _peak(trace: Trace, spans: dict[int, tuple[int, int]], weight: Callable[[int], int]) -> int:
    """The most bytes of a partition that live at once."""
    events = []
    for b, (first, last) in spans.items():
        size = trace.buffers[b].row_bytes * weight(b)
        events += [(first, 1, size), (last + 1, 0, -size)]
    now = most = 0
    for _, _, change in sorted(events):
        now += change
        most = max(most, now)
    return most


def _spans(trace: Trace, stands_for: dict[int, int]) -> dict[int, tuple[int, int]]:
    """Of each tile in SBUF: its first and last use."""
    spans: dict[int, tuple[int, int]] = {}
    space = [b.space for b in trace.buffers]
    of_view = [v.buffer for v in trace.views]
    for at in range(len(trace)):
        for v in (*trace.outputs[at], *trace.inputs[at]):
            b = of_view[v]
            if space[b] != "sbuf":
                continue
            b = stands_for.get(b, b)
            spans[b] = (spans[b][0] if b in spans else at, at)
    return spans


def _fits(p: Pass, sbuf: int) -> bool:
    """Whether there is room for the tiles that stand for others to stay, and for what else the kernel has, in
    rotation."""
    t = p.trace
    spans = _spans(t, p.stands_for)
    kept = set(p.stands_for.values())
    return _peak(t, spans, lambda b: 1 if b in kept else ROTATING) <= sbuf


def _keeper(known: dict[Any, Result]) -> Callable[[int, Any, Result], None]:
    def keep(_: int, key: Any, made: Result) -> None:
        known.setdefault(key, made)

    return keep


def _finder(known: dict[Any, Result]) -> Callable[[int, Any], Result | None]:
    return lambda _, key: known.get(key)


def _loads(p: Pass, sbuf: int) -> None:
    """Each tensor's loads by themselves, those that save most first, as far as there is room."""
    t = p.trace
    again: dict[int, int] = {}
    seen: set[Any] = set()
    read_only = [b.role == "input" and p.writers.get(b.index, 0) == 0 for b in t.buffers]

    def source(at: int) -> int:
        """The tensor that an instruction loads from; -1: it is no load."""
        if t.kind[at] != "dma_copy" or len(t.inputs[at]) != 1:
            return -1
        b = t.views[t.inputs[at][0]].buffer
        return b if read_only[b] else -1

    for at in range(len(t)):
        if (tensor := source(at)) >= 0 and p.made(at) is not None:
            key = p.key(at)
            if key in seen:
                again[tensor] = again.get(tensor, 0) + t.buffers[t.views[t.outputs[at][0]].buffer].row_bytes
            seen.add(key)
    for tensor in sorted(again, key=lambda n: -again[n]):
        before = set(p.dropped), dict(p.stands_for)
        first: dict[Any, Result] = {}
        p.run(lambda at, tensor=tensor: source(at) == tensor, _finder(first), _keeper(first))  # type: ignore[misc]
        if not _fits(p, sbuf):
            p.dropped, p.stands_for = before


def _invariants(trace: Trace, sbuf: int) -> Pass:
    """What an instruction computed before from the same tiles, as the text names them: all of it where there is room,
    else what it computed the last time that its line ran. A tile that is loaded anew is another one."""
    moves = (
        "dma_",
        "nc_matmul",
        "nc_transpose",
        "memset",
        "iota",
        "core_barrier",
        "sendrecv",
        "register",
        "rand",
        "rng",
        "dropout",
    )
    t = trace
    for all_of in (True, False):
        p = Pass(t)
        known: dict[Any, tuple[Any, Result]] = {}

        def place(at: int, key: Any, all_of: bool = all_of) -> Any:
            return (t.line[at], key) if all_of else (t.line[at], t.core[at])

        def before(at: int, key: Any, known: Any = known, place: Any = place) -> Result | None:
            found = known.get(place(at, key))
            return found[1] if found is not None and found[0] == key else None

        def keep(at: int, key: Any, made: Result, known: Any = known, place: Any = place) -> None:
            known[place(at, key)] = key, made

        p.run(lambda at: not t.kind[at].startswith(moves) and len(t.inputs[at]) > 0, before, keep)
        if not p.dropped or _fits(p, sbuf):
            break
    return p


def without_repetition(trace: Trace, sbuf_bytes: int) -> Trace:
    """The same trace where nothing is done twice."""
    p = _invariants(trace, sbuf_bytes)
    _loads(p, sbuf_bytes)
    return p.trace_left() if p.dropped else trace
