"""The timeline as a trace that Perfetto and chrome://tracing open: a process for each class, a row for each stream.

Viewers drop an event that overlaps a part of another one of its row, so that communications of a group that are under
way at once, as messages are, have rows of their own.
"""

from typing import Any

from trellis.simulate.price import Priced
from trellis.simulate.price.timeline import Span
from trellis.simulate.record import RankRecord

__all__ = ["trace"]


def _lane(out: Priced, which: int, lane: str) -> str:
    kind, _, number = lane.partition(" ")
    if kind == "stream":
        return out.job.classes[which].record.streams[int(number)]
    return f"communication of {out.job.families[int(number)].name}"


def _rows(spans: list[Span]) -> list[list[Span]]:
    """Each span of a lane is in the first row that is free."""
    rows: list[list[Span]] = []
    for span in sorted(spans, key=lambda s: (s.start, s.end)):
        row = next((row for row in rows if row[-1].end <= span.start), None)
        if row is None:
            rows.append([span])
        else:
            row.append(span)
    return rows


def _event(record: RankRecord, span: Span, which: int, row: int) -> dict[str, Any]:
    event = record.events[span.event]
    place = record.place(event)
    label = record.operations[event[2]].name if event[0] == "op" else \
        event[3] if event[0] == "collective" else event[0]  # fmt: skip
    told: dict[str, Any] = {"module": place.module, "line": place.line}
    if event[0] != "op":
        told["bytes"] = event[5]
    return {"ph": "X", "pid": which, "tid": row, "name": label, "ts": span.start * 1e6,
            "dur": (span.end - span.start) * 1e6, "args": told}  # fmt: skip


def trace(out: Priced) -> dict[str, Any]:
    events: list[dict[str, Any]] = []
    for which, (one, times) in enumerate(zip(out.job.classes, out.timed.classes, strict=True)):
        name = f"ranks like rank {one.recorded[0]} ({len(one.ranks)})"
        events.append({"ph": "M", "pid": which, "name": "process_name", "args": {"name": name}})
        lanes: dict[str, list[Span]] = {}
        for span in times.spans:
            lanes.setdefault(span.lane, []).append(span)
        rows = [(lane, i, row) for lane, spans in lanes.items() for i, row in enumerate(_rows(spans))]
        for number, (lane, i, row) in enumerate(rows):
            told = {"name": _lane(out, which, lane) + (f" ({i + 1})" if i else "")}
            events.append({"ph": "M", "pid": which, "tid": number, "name": "thread_name", "args": told})
            events += [_event(one.record, span, which, number) for span in row]
    return {"traceEvents": events, "displayTimeUnit": "ms"}
