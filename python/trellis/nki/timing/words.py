"""A timing in words: what it waited for, what to try, and the report."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trellis.nki.timing.model import Outcome
    from trellis.nki.timing.timing import Timing

__all__ = ["MOST", "report", "time", "waits", "with_hints"]

_UNITS = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))
_PLATEAU = 2048  # bytes of a partition from which DMA is efficient (nki/deep-dives/nki-dma-bandwidth-guide.rst)
_SHORT = 512  # bytes of a descriptor below which it is slow (the same)
MOST = 3


def time(seconds: float) -> str:
    """Three digits and a unit."""
    for name, size in _UNITS:
        if seconds >= size:
            return f"{seconds / size:.4g} {name}"
    return f"{seconds / 1e-9:.3g} ns"


def _bytes(amount: float) -> str:
    for name, size in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if amount >= size:
            return f"{amount / size:.4g} {name}"
    return f"{amount:.0f} B"


_REASONS = {"semaphore": "waits for another engine's result", "data": "waits for a transfer's data",
            "port": "waits for a port that engines share", "order": "waits for its turn",
            "peer": "waits for the other core"}  # fmt: skip


def waits(outcome: Outcome) -> tuple[str, ...]:
    """What the critical path consists of, the three longest parts."""
    whole = max(outcome.totals["time_ps"], 1)
    said = []
    for track, label, reason, ps, pieces in outcome.run.path()[:MOST]:
        kind, _, line = label.partition(": ")
        what = (
            f"{track} at work: {kind}" if reason == "none" else f"{track} {_REASONS.get(reason, 'waits')} before {kind}"
        )
        said.append(f"{100 * ps / whole:.0f}% {what} ({pieces} times), {line}")
    return tuple(said)


def _hints(t: Timing) -> list[str]:
    hints = []
    if t.memory["spilled"]:
        hints.append(f"SBUF is full: {_bytes(t.memory['spilled'])} go to HBM and back for want of room; keep fewer or "
                     "smaller tiles at once")  # fmt: skip
    if t.dma["bytes"] and t.engines["dma"] > 0.5 and 0 < t.dma["bytes_per_descriptor"] < _PLATEAU:
        size = t.dma["bytes_per_descriptor"]
        slow = ", which is slow" if size < _SHORT else ""
        hints.append(f"a DMA descriptor moves {size:.0f} bytes on average{slow}: {_PLATEAU} of a partition or more, "
                     "contiguous in HBM, reach the full rate; load wider tiles")  # fmt: skip
    least = t.roofline["least_us"] * 1e-6
    if t.engines["dma"] > 0.8 and t.roofline["bound"] == "products":
        hints.append(f"DMA is busy {100 * t.engines['dma']:.0f}% of the time, but products alone would take "
                     f"{time(least)}: it moves {_bytes(t.dma['bytes'])}; keep tiles that are loaded again on chip, or "
                     "use larger blocks")  # fmt: skip
    busiest = max((e for e in t.engines if e != "dma"), key=lambda e: t.engines[e])
    if t.engines[busiest] > 0.6 and busiest in ("vector", "scalar", "gpsimd"):
        other = min(("vector", "scalar", "gpsimd"), key=lambda e: t.engines.get(e, 0.0))
        hints.append(f"the {busiest} engine is busy {100 * t.engines[busiest]:.0f}% of the time, {other} "
                     f"{100 * t.engines.get(other, 0.0):.0f}%: move work there, or fuse operations")  # fmt: skip
    if max(t.engines.values()) < 0.6:
        hints.append("no engine is busy for long: the parts wait for each other; declare tiles inside the loop so that "
                     "they rotate, or make independent pieces of work larger")  # fmt: skip
    if t.engines.get("tensor", 0) > 0.6 and t.roofline["mfu"] < 0.5:
        hints.append(f"the tensor engine is busy {100 * t.engines['tensor']:.0f}% of the time at "
                     f"{100 * t.roofline['mfu']:.0f}% of its bf16 peak: use 16-bit factors, 128 rows of K and "
                     "512 columns of N")  # fmt: skip
    if t.high > 1.5 * t.low:
        hints.append(f"the order and the rotation that a compiler chooses decide between {time(t.low)} and "
                     f"{time(t.high)}: fix them (nl.no_reorder, tiles declared where they rotate) to be "
                     "sure")  # fmt: skip
    if not hints and t.hot_lines:
        hints.append(f"most of the critical path is {t.hot_lines[0].text}")
    return hints


def with_hints(t: Timing) -> Timing:
    return dataclasses.replace(t, hints=tuple(_hints(t)[:MOST]))


def report(t: Timing) -> str:
    lines = [f"{t.name} on {t.chip}: {time(t.seconds)}, between {time(t.least)} and {time(t.most)}; "
             f"{t.instructions} instructions",
             f"  of its own    between {time(t.low)} and {time(t.high)} by order and figures; the rest is the model's "
             f"own error. nki.benchmark would print {time(t.benchmark[0])}"]  # fmt: skip
    lines.append(
        "  busy          " + ", ".join(f"{name} {100 * share:.0f}%" for name, share in t.engines.items() if share)
    )
    roof = t.roofline
    lines.append(f"  roofline      at least {time(roof['least_us'] * 1e-6)}, bound by {roof['bound']}; "
                 f"{100 * roof['mfu']:.1f}% of the peak, {roof['flops_per_byte']:.3g} FLOP a byte")  # fmt: skip
    lines.append(f"  DMA           {_bytes(t.dma['bytes'])} in descriptors of {t.dma['bytes_per_descriptor']:.0f} "
                 f"bytes, at {100 * t.dma['efficiency']:.0f}% of the engines' rate")  # fmt: skip
    lines.append(f"  on chip       {t.memory['sbuf']} bytes of a partition of SBUF, {t.memory['psum']} of PSUM"
                 + (f"; {_bytes(t.memory['spilled'])} spilled" if t.memory["spilled"] else ""))  # fmt: skip
    lines += [f"  waited for    {each}" for each in t.waits]
    lines += [f"  hot line      {time(each.path)} of the critical path: {each.text}" for each in t.hot_lines[:MOST]]
    lines += [f"  hint          {each}" for each in t.hints]
    return "\n".join(lines)
