"""What a kernel's time is, and where it went."""

import html
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trellis import _native, origin
from trellis.nki.timing import model, words
from trellis.nki.timing.flatten import label
from trellis.nki.trace import Trace

__all__ = ["time_of", "Timing"]

MOST_SPANS = 2_000_000  # of a timeline that is kept
MOST_DRAWN = 20_000  # instructions of a timeline that a notebook shows
DRIFT = 1.05  # published times of one configuration differ by this, or more, between releases of the SDK


@dataclass(frozen=True)
class Line:
    """A line of the kernel's text."""

    text: str  # "rmsnorm.py:17 nl.store(out[i], y)"
    busy: float  # seconds of engines that its instructions occupied
    path: float  # seconds of the critical path that were its own, at work or waited for
    instructions: int


@dataclass(frozen=True)
class Timing:
    """A kernel's time on a chip, in seconds. `low` and `high`: the ends of what compiler and chip may do, for comparing
    versions, which share the model's own error; `least` and `most`: with that error, as published kernels tell it."""

    name: str
    chip: str
    seconds: float
    low: float
    high: float
    least: float
    most: float
    start: tuple[
        float, float, float
    ]  # a program's start and end, which nki.benchmark counts: as assumed, and its range
    instructions: int
    engines: dict[str, float]  # the part of the time that each is busy; "dma": that any DMA engine is
    waits: tuple[str, ...]  # the three things that it waited for most, in words
    hot_lines: tuple[Line, ...]  # the longest on the critical path first
    roofline: dict[str, Any]
    dma: dict[str, Any]
    memory: dict[str, int]  # bytes of a partition that live tiles take at most; spilled: bytes moved for want of room
    ends: tuple[tuple[str, float], ...]  # scenario, seconds
    hints: tuple[str, ...] = ()
    outcome: model.Outcome | None = field(default=None, repr=False, compare=False)

    @property
    def benchmark(self) -> tuple[float, float, float]:
        """What nki.benchmark would measure, alone on a core: a value, and its range."""
        value, low, high = self.start
        return self.seconds + value, self.least + low, self.most + high

    def json(self) -> dict[str, Any]:
        """The same as plain values, in microseconds."""
        return {
            "kernel": self.name,
            "chip": self.chip,
            "us": round(self.seconds * 1e6, 3),
            "low_us": round(self.low * 1e6, 3),
            "high_us": round(self.high * 1e6, 3),
            "least_us": round(self.least * 1e6, 3),
            "most_us": round(self.most * 1e6, 3),
            "benchmark_us": [round(each * 1e6, 3) for each in self.benchmark],
            "instructions": self.instructions,
            "engines": {name: round(share, 4) for name, share in self.engines.items()},
            "waits": list(self.waits),
            "hints": list(self.hints),
            "hot_lines": [{"line": each.text, "busy_us": round(each.busy * 1e6, 3),
                           "path_us": round(each.path * 1e6, 3), "instructions": each.instructions}
                          for each in self.hot_lines],
            "roofline": self.roofline,
            "dma": self.dma,
            "memory": self.memory,
            "scenarios": [{"name": name, "us": round(seconds * 1e6, 3)} for name, seconds in self.ends],
        }  # fmt: skip

    def page(self, path: str) -> None:
        """Writes the timeline: .html a page that needs no network, .pftrace for ui.perfetto.dev."""
        if self.outcome is None:
            raise ValueError(f"{path}: this timing kept no timeline: it has more than {MOST_SPANS} spans")
        if path.endswith(".html"):
            with open(path, "w") as file:
                file.write(self._html())
        elif path.endswith(".pftrace"):
            with open(path, "wb") as file:
                file.write(self.outcome.run.perfetto(self._made_by()))
        else:
            raise ValueError(f"{path}: expected a name that ends in .html or .pftrace")

    def _html(self) -> str:
        assert self.outcome is not None
        introduction = "".join(f"<p>{html.escape(line)}</p>" for line in str(self).splitlines())
        return self.outcome.run.html(f"{self.name} on {self.chip}", introduction, self._made_by())

    def _made_by(self) -> list[tuple[str, str]]:
        return list(origin.facts(chip=self.chip).items())

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(each.text)}</td><td>{words.time(each.path)}</td><td>{words.time(each.busy)}</td></tr>"
            for each in self.hot_lines[:8]
        )
        head = "".join(f"<p>{html.escape(line)}</p>" for line in str(self).splitlines()[:6])
        table = f"<table><tr><th>line</th><th>critical path</th><th>busy</th></tr>{rows}</table>"
        if self.outcome is None or self.instructions > MOST_DRAWN:
            return head + table
        return (
            f'{head}{table}<iframe srcdoc="{html.escape(self._html())}" '
            'style="width:100%;height:32em;border:0"></iframe>'
        )

    def __str__(self) -> str:
        return words.report(self)


def _whole(totals: dict[str, Any]) -> float:
    """Picoseconds, with those of iterations that are not recorded."""
    return float(max(totals.get("whole_ps", totals["time_ps"]), 1))


def _engines(totals: dict[str, Any]) -> dict[str, float]:
    whole = _whole(totals)
    busy: dict[str, float] = {}
    for _, engine, _, ps, _ in totals["engines"]:
        busy[engine] = max(busy.get(engine, 0), ps / whole)
    busy["dma"] = totals["dma_any_ps"] / whole
    return busy


def _dma(totals: dict[str, Any]) -> dict[str, Any]:
    descriptors, moved = totals["descriptors"], totals["dma_bytes"]
    at_work = sum(totals["dma_busy_ps"]) * 1e-12 / max(len(totals["dma_busy_ps"]), 1)
    return {
        "bytes": moved,
        "hbm_read": totals["hbm_read_bytes"],
        "hbm_written": totals["hbm_written_bytes"],
        "descriptors": descriptors,
        "bytes_per_descriptor": moved / descriptors if descriptors else 0.0,
        "efficiency": moved / at_work / totals["dma_rate"] if at_work else 0.0,  # of the rate while engines are at work
    }


def _roofline(totals: dict[str, Any]) -> dict[str, Any]:
    seconds = _whole(totals) * 1e-12
    through_hbm = totals["hbm_read_bytes"] + totals["hbm_written_bytes"]
    flops = totals["flops"]
    compute, memory = flops / totals["peak_flops"], through_hbm / min(totals["hbm_rate"], totals["dma_rate"])
    return {
        "flops": flops,
        "flops_per_second": flops / seconds,
        "mfu": compute / seconds,
        "hbm_bytes": through_hbm,
        "hbm_bytes_per_second": through_hbm / seconds,
        "flops_per_byte": flops / through_hbm if through_hbm else 0.0,
        "least_us": max(compute, memory) * 1e6,
        "bound": "memory" if memory >= compute else "products",
    }


def _lines(trace: Trace, result: model.Outcome) -> tuple[Line, ...]:
    """By line of the text. The timeline's labels are "kind: line"."""
    busy: dict[int, float] = {}
    count: dict[int, int] = {}
    spans = ((result.run.end - result.run.start).clip(0) * result.rest.times).tolist()
    times = result.rest.times.astype(np.int64).tolist()
    for at, line in enumerate(trace.line):
        busy[line] = busy.get(line, 0) + spans[at] * 1e-12
        count[line] = count.get(line, 0) + times[at]
    path: dict[str, float] = {}
    for _, text, _, ps, _ in result.run.path():
        key = text.partition(": ")[2]
        path[key] = path.get(key, 0) + ps * 1e-12
    lines = [Line(label(trace, n), busy[n], path.get(label(trace, n), 0.0), count[n]) for n in busy]
    return tuple(sorted(lines, key=lambda each: (-each.path, -each.busy)))


def _start(chip: str) -> tuple[float, float, float]:
    value, _, _, low, high, _ = _native.chip_figures(chip)["kernel.start"]
    return value, low, high


def time_of(trace: Trace, chip: str = "", changes: model.Changes = (), machine: str = "",
            late: dict[int, float] | None = None) -> Timing:
    """Times a kernel's trace; on the chip that it was traced for, if none is named. Its collectives run on `machine`,
    else on the chip's largest instances; `late`: seconds that some of them wait for other ranks."""
    chip = chip or trace.chip
    cases = model.scenarios(trace)
    keep = 3 * len(trace) < MOST_SPANS
    runs = model.outcomes(trace, chip, cases, tuple(changes), keep, model.Network(machine, late or {}))
    first, totals = runs[0], runs[0].totals
    seconds = [each.seconds for each in runs]
    low, high = min(seconds) / DRIFT, max(seconds) * DRIFT
    least, most = _native.widened(first.seconds, low, high, "kernel")
    timing = Timing(
        name=trace.name,
        chip=chip,
        seconds=first.seconds,
        low=low,
        high=high,
        least=least,
        most=most,
        start=_start(chip),
        instructions=int(first.rest.times.sum()),
        engines=_engines(totals),
        waits=words.waits(first) if keep else (),
        hot_lines=_lines(first.trace, first) if keep else (),
        roofline=_roofline(totals),
        dma=_dma(totals),
        memory={"sbuf": first.assembled.most_sbuf, "psum": first.assembled.most_psum,
                "spilled": first.assembled.spilled_bytes},
        ends=tuple((case.name, each.seconds) for case, each in zip(cases, runs, strict=True)),
        outcome=first if keep else None,
    )
    return words.with_hints(timing)
