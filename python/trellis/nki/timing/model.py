"""How a trace becomes a time with an interval.

What a compiler does with a kernel is not published in full, so a trace is given to the back end more than once. That
it schedules instructions across engines is: so both ends are list schedules, one whose tiles rotate as deep as memory
allows, and one with two of each declaration in flight. A kernel that forbids reordering has ends in its own order.
Figures of the chip that are assumed are at their slow and fast ends there.
"""

from dataclasses import dataclass, replace
from typing import Any

from trellis import _native
from trellis.nki.timing.flatten import draft_of, split_tiles
from trellis.nki.trace import Trace

__all__ = ["Outcome"]


@dataclass(frozen=True)
class Scenario:
    """One way in which a compiler and a chip may behave."""

    name: str
    window: int = 1  # of the list scheduler, in instructions; 1: the order of the text
    critical_path: bool = False
    copies: int = 2  # tiles of one declaration in flight
    figures: int = 0  # -1: assumed figures at their fast ends, 1: at their slow ends


WINDOW = 256
NARROWER = (256, 64, 16, 1)  # windows to try where tiles would be spilled
CENTRE = Scenario("scheduled by critical path", window=WINDOW, critical_path=True, copies=4)
FAST = Scenario("scheduled, the oldest first, deep rotation, fast figures", window=WINDOW, copies=8, figures=-1)
SLOW = Scenario("scheduled, the oldest first, two tiles in flight, slow figures", window=WINDOW, copies=2, figures=1)
AS_WRITTEN = Scenario("order of the text", window=1, copies=4)
AS_WRITTEN_SLOW = Scenario("order of the text, two tiles in flight, slow figures", window=1, copies=2, figures=1)
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

    @property
    def seconds(self) -> float:
        return float(self.totals["time_ps"]) * 1e-12


Changes = tuple[tuple[str, str], ...]  # figure, value

# Descriptors of beta 1's compiler lie ready in rings (nki/deep-dives/nki-dge.rst), so none are generated on the way.
STATIC_DESCRIPTORS: Changes = (("dma.generate", "0 ns"),)


def changes_of(trace: Trace) -> Changes:
    return STATIC_DESCRIPTORS if trace.dialect == "beta1" else ()


def outcome(draft: _native.CoreDraft, chip: str, scenario: Scenario, changes: Changes = (),
            keep_timeline: bool = False, fuse: bool = False) -> Outcome:
    spec = _native.CoreChip(chip, list(changes), scenario.figures)
    assembled = draft.assemble(spec, scenario.window, scenario.critical_path, scenario.copies, fuse, spill=True)
    run = assembled.time(spec, keep_timeline)
    return Outcome(scenario, assembled, run, run.totals)


def outcomes(trace: Trace, chip: str, cases: list[Scenario], changes: Changes, keep_timeline: bool) -> list[Outcome]:
    """Of each scenario, with the first one's timeline."""

    def all_of(draft: _native.CoreDraft) -> list[Outcome]:
        fuse = trace.dialect == "beta1" and not trace.skip_middle_end

        def least_spilled(case: Scenario, keep: bool) -> Outcome:
            """A scheduler that would spill looks less far ahead."""
            found = outcome(draft, chip, case, changes, keep, fuse)
            for window in NARROWER if case.window > 1 else ():
                if not found.assembled.spilled_bytes:
                    break
                other = outcome(draft, chip, replace(case, window=window, critical_path=False), changes, keep, fuse)
                found = min(found, other, key=lambda each: each.assembled.spilled_bytes)
            return found

        return [least_spilled(case, keep_timeline and n == 0) for n, case in enumerate(cases)]

    try:
        return all_of(draft_of(trace))
    except ValueError as e:
        if " is full: " not in str(e) or trace.dialect != "beta1":
            raise
        return all_of(draft_of(split_tiles(trace)))  # its compiler fuses loops
