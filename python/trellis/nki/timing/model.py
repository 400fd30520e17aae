"""How a trace becomes a time with an interval.

What a compiler does with a kernel is not published in full, so a trace is given to the back end more than once. That
it schedules instructions across engines is: so both ends are list schedules, one whose tiles rotate as deep as memory
allows, and one with two of each declaration in flight. A kernel that forbids reordering has ends in its own order.
Figures of the chip that are assumed are at their slow and fast ends there.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trellis import _native
from trellis.nki.timing.flatten import draft_of, split_tiles
from trellis.nki.timing.folds import Unfolded, unfolded
from trellis.nki.timing.reuse import without_repetition
from trellis.nki.timing.rotate import rotated
from trellis.nki.trace import Trace

__all__ = ["Outcome"]


# A queue is tied to the engine that triggers and to how descriptors are made (nki-dma-overview.rst), so that an engine
# has several; where the hardware generates them, as it does by default on Trainium 2 (release notes of compiler 2.19),
# a core has two generators (nki-dge.rst). With --disable-dge none are generated: the figures dma.generate and
# dma.descriptor.write are 0. On Trainium 1 a kernel's loads pass one after another, as narrow ones show (dma.interval).
RINGS = 2


@dataclass(frozen=True)
class Scenario:
    """One way in which a compiler and a chip may behave."""

    name: str
    window: int = 1  # of the list scheduler, in instructions; 1: the order of the text
    critical_path: bool = False
    copies: int = 2  # tiles of one declaration in flight
    figures: int = 0  # -1: assumed figures at their fast ends, 1: at their slow ends
    regions: bool = True  # Tensor goes through the iterations of loops around loops one after another
    repeats: bool = False  # neuronxcc's compiler leaves repeated loads and computations as they are written
    rings: int = RINGS  # of each engine that triggers transfers, where neuronxcc's compiler chooses


WINDOW = 256
NARROWER = (256, 64, 16, 1)  # windows to try where tiles would be spilled
SEARCHED, MOST_SEARCHED = 20_000, 100_000  # instructions of a kernel of which five orders are tried, or two
CENTRE = Scenario("scheduled by critical path", window=WINDOW, critical_path=True, copies=4)
FAST = Scenario("scheduled, the oldest first, deep rotation, fast figures", window=WINDOW, copies=8, figures=-1)
SLOW = Scenario("scheduled, the oldest first, two tiles in flight, slow figures", window=WINDOW, copies=2, figures=1,
                repeats=True, rings=1)  # fmt: skip
AS_WRITTEN = Scenario("order of the text, deep rotation", window=1, copies=8)
AS_WRITTEN_SLOW = Scenario(
    "order of the text, two tiles in flight, slow figures", window=1, copies=2, figures=1, rings=1
)
AS_WRITTEN_FAST = Scenario("order of the text, deep rotation, fast figures", window=1, copies=8, figures=-1)


def keeps_order(trace: Trace) -> bool:
    """Whether the kernel's text forbids its compiler to reorder."""
    return bool(trace.no_reorder) and sum(last - first for first, last in trace.no_reorder) >= len(trace)


def scenarios(trace: Trace) -> list[Scenario]:
    """The central one first, then the ends."""
    if trace.skip_middle_end or keeps_order(trace):
        return [AS_WRITTEN, AS_WRITTEN_FAST, AS_WRITTEN_SLOW]
    return [CENTRE, FAST, SLOW]


@dataclass
class Outcome:
    """A scenario's run."""

    scenario: Scenario
    assembled: _native.CoreAssembled
    run: _native.CoreTimedRun
    totals: dict[str, Any]

    rest: Unfolded  # what the trace leaves out of its loops
    trace: Trace  # as it was scheduled

    @property
    def seconds(self) -> float:
        return float(self.totals["time_ps"]) * 1e-12 + self.rest.seconds


Changes = tuple[tuple[str, str], ...]  # figure, value


def outcome(draft: _native.CoreDraft, trace: Trace, chip: str, scenario: Scenario, changes: Changes = (),
            keep_timeline: bool = False, fuse: bool = False) -> Outcome:
    spec = _native.CoreChip(chip, list(changes), scenario.figures)
    assembled = draft.assemble(spec, scenario.window, scenario.critical_path, scenario.copies, fuse, scenario.regions,
                               spill=True)
    run = assembled.time(spec, keep_timeline)
    rest = unfolded(trace, run.end)
    return Outcome(scenario, assembled, run, grown(trace, run.totals, rest), rest, trace)


_OF_DMA = ("dma_bytes", "hbm_read_bytes", "hbm_written_bytes", "descriptors")


def grown(trace: Trace, totals: dict[str, Any], rest: Unfolded) -> dict[str, Any]:
    """Totals of the whole kernel, by how often the instructions of each engine, products and transfers run; a share of
    the time stays what it is in the recorded part."""
    if not trace.folds:
        return totals
    dma = np.array([k.startswith("dma_") or k == "sendrecv" for k in trace.kind])
    products = np.array([k.startswith("nc_matmul") for k in trace.kind])

    def more(which: Any) -> float:
        return float(rest.times[which].sum() / max(which.sum(), 1)) if which.any() else 1.0

    out = dict(totals) | {key: totals[key] * more(dma) for key in _OF_DMA} | {"flops": totals["flops"] * more(products)}
    out["whole_ps"] = totals["time_ps"] + rest.seconds * 1e12
    longer = out["whole_ps"] / max(totals["time_ps"], 1)
    out["dma_any_ps"], out["dma_busy_ps"] = totals["dma_any_ps"] * longer, [ps * longer for ps in totals["dma_busy_ps"]]
    out["engines"] = [(core, name, n, ps * longer, waits) for core, name, n, ps, waits in totals["engines"]]
    return out


@dataclass(frozen=True)
class Network:
    """Where collectives run, and how long some wait for other ranks besides."""

    machine: str
    late: dict[int, float]

    def draft(self, trace: Trace, chip: str, case: Scenario) -> _native.CoreDraft:
        generates = _native.chip_figures(chip)["dma.generate"][0] > 0
        rings = case.rings if trace.dialect == "beta1" and generates else 1
        if not trace.collectives:
            return draft_of(trace, rings)
        from trellis.nki.timing.collectives import machine_for, priced

        return draft_of(priced(trace, self.machine or machine_for(trace, chip), case.figures, self.late), rings)


def _worth(o: Outcome) -> tuple[int, float]:
    """The least first."""
    return o.assembled.spilled_bytes, o.seconds


def _attempts(case: Scenario, instructions: int) -> tuple[list[Scenario], list[Scenario]]:
    """Orders of which the shortest is taken; and those that look less far ahead, for want of room."""
    tries = [case]
    if case.window > 1 and instructions <= SEARCHED:
        tries += [replace(case, window=window) for window in NARROWER[1:3]]
    if case.critical_path and instructions <= MOST_SEARCHED:  # deep rotation may leave others no room in PSUM
        shallow = replace(case, critical_path=False, copies=2)
        tries += [shallow, replace(shallow, window=NARROWER[1])] if instructions <= SEARCHED else [shallow]
    further = [replace(case, window=window, critical_path=False) for window in NARROWER if case.window > 1]
    return tries, [each for each in further if each not in tries]


def outcomes(trace: Trace, chip: str, cases: list[Scenario], changes: Changes, keep_timeline: bool,
             network: Network) -> list[Outcome]:  # fmt: skip
    """Of each scenario, with the first one's timeline."""
    frees = trace.dialect == "beta1" and not trace.skip_middle_end  # its compiler fuses loops, and does nothing twice

    def all_of(written: Trace) -> list[Outcome]:
        bare = written
        if frees and not written.folds:
            bare = without_repetition(written, round(_native.CoreChip(chip, list(changes), 0).sbuf_bytes))
        turning = {False: rotated(bare), True: rotated(written)}  # by whether what repeats is done as written
        drafts: dict[tuple[int, int, int], _native.CoreDraft] = {}

        def draft(t: Trace, case: Scenario) -> _native.CoreDraft:
            key = (case.figures if t.collectives else 0, case.rings, id(t))
            if key not in drafts:
                drafts[key] = network.draft(t, chip, case)
            return drafts[key]

        def best(case: Scenario, keep: bool) -> Outcome:
            """A scheduler that would spill, or has no room in PSUM, looks less far ahead, and then keeps tiles where
            they are; so does one whose order would take longer, as far as it is tried."""
            turned, kept = turning[case.repeats], written if case.repeats else bare
            found: Outcome | None = None
            full: ValueError | None = None
            for t in (turned,) if kept is turned else (turned, kept):
                tries, further = _attempts(case, len(t))
                for each in (*tries, *further):
                    if found is not None and not found.assembled.spilled_bytes and (each in further or t is not turned):
                        break
                    try:
                        other = outcome(draft(t, each), t, chip, each, changes, keep, frees)
                    except ValueError as e:
                        if " is full: " not in str(e):
                            raise
                        full = full or e
                        continue
                    if found is None or _worth(other) < _worth(found):
                        found = other
            if found is None:
                raise full or ValueError("no scenario")
            return found

        return [best(case, keep_timeline and n == 0) for n, case in enumerate(cases)]

    try:
        return all_of(trace)
    except ValueError as e:
        if " is full: " not in str(e) or trace.dialect != "beta1":
            raise
        return all_of(split_tiles(trace))  # its compiler fuses loops
