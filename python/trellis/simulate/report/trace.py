"""The timeline as a trace that Perfetto and chrome://tracing open: a process for each class, a row for each stream."""

from typing import Any

from trellis.simulate.price import Priced

__all__ = ["trace"]


def _lane(out: Priced, which: int, lane: str) -> str:
    kind, _, number = lane.partition(" ")
    if kind == "stream":
        return out.job.classes[which].record.streams[int(number)]
    return f"communication of {out.job.families[int(number)].name}"


def trace(out: Priced) -> dict[str, Any]:
    events: list[dict[str, Any]] = []
    for which, (one, times) in enumerate(zip(out.job.classes, out.timed.classes, strict=True)):
        name = f"ranks like rank {one.recorded[0]} ({len(one.ranks)})"
        events.append({"ph": "M", "pid": which, "name": "process_name", "args": {"name": name}})
        lanes: dict[str, int] = {}
        for span in times.spans:
            if span.lane not in lanes:
                lanes[span.lane] = len(lanes)
                row = {"name": _lane(out, which, span.lane)}
                events.append({"ph": "M", "pid": which, "tid": lanes[span.lane], "name": "thread_name", "args": row})
            event = one.record.events[span.event]
            place = one.record.place(event)
            label = one.record.operations[event[2]].name if event[0] == "op" else \
                event[3] if event[0] == "collective" else event[0]  # fmt: skip
            told: dict[str, Any] = {"module": place.module, "line": place.line}
            if event[0] != "op":
                told["bytes"] = event[5]
            events.append({"ph": "X", "pid": which, "tid": lanes[span.lane], "name": label, "ts": span.start * 1e6,
                           "dur": (span.end - span.start) * 1e6, "args": told})  # fmt: skip
    return {"traceEvents": events, "displayTimeUnit": "ms"}
