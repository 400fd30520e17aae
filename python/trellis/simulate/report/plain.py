"""The report as plain values, for programs."""

from dataclasses import asdict
from typing import Any

from trellis.simulate.price import Priced
from trellis.simulate.report.text import assumptions, checkpoints
from trellis.simulate.report.waits import waits

__all__ = ["plain"]


def plain(out: Priced) -> dict[str, Any]:
    """Seconds and bytes."""
    return {
        "command": out.job.command,
        "machine": out.machine.base,
        "world": out.job.world,
        "torch": out.job.torch,
        "time": out.time,
        "interval": [out.low, out.high],
        "tokens": out.tokens,
        "tokens_per_second": out.tokens / out.time if out.tokens and out.time else None,
        "mfu": out.mfu,
        "fits": out.fits,  # what tensors hold, and the runtime
        "cuda_reserved_fits": out.cuda_reserved_fits,
        "exposed": out.exposed,
        "bubble": out.bubble,
        "operators": [asdict(o) for o in out.operators],
        "on_defaults": out.on_defaults,
        "compiled": asdict(out.merged),
        "checkpoints": [{"place": p, "bytes": own, "whole": whole} for p, own, whole in checkpoints(out)],
        "waits": [asdict(w) for w in waits(out, 1000)],
        "classes": [
            {
                "ranks": one.ranks,
                "recorded": one.recorded,
                "hash": one.record.hash(),
                "compute": times.busy,
                "end": times.end,
                "memory": {"peak": one.record.memory.peak, "capacity": out.capacity, **one.record.memory.categories,
                           "reserved": one.record.memory.reserved, "runtime": out.runtime, "communicators": 0},
            }
            for one, times in zip(out.job.classes, out.timed.classes, strict=True)
        ],
        "communication": _communication(out),
        "proof": asdict(out.proof),
        "assumptions": assumptions(out),
    }


def _communication(out: Priced) -> list[dict[str, Any]]:
    """Of the slowest class: how often and how many bytes (of the larger buffer), by kind, group and type."""
    told: dict[tuple[str, str, str], list[int]] = {}
    for event in out.record.events:
        if event[0] in ("collective", "send", "receive"):
            collective = event[0] == "collective"
            kind = event[3] if collective else event[0]
            family = out.job.families[event[4] if collective else event[3]]
            count = told.setdefault((kind, family.name, event[6]), [0, 0])
            count[0] += 1
            count[1] += event[5]
    return [{"kind": k, "group": g, "type": t, "count": n, "bytes": b} for (k, g, t), (n, b) in told.items()]
