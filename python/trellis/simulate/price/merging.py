"""What a compiler would save by merging operations: a statement beside the price, not a part of it.

In regions of torch.compile, elementwise operations and norms are taken as `trellis train price` takes what a compiler
fuses: they find in SBUF what their neighbours left there, so that what Vector and Scalar do counts, and of their arrays
only the part that the figure `operation.spill` says passes through memory. At a region's ends, what an elementwise
operation reads or writes counts whole. What a backward pass needs has to be written all the same, so this is the most
that merging saves.
"""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from trellis.simulate.price.rates import Rates
from trellis.simulate.price.rules import Rule
from trellis.simulate.record import RankRecord
from trellis.simulate.record.steps import Event

__all__ = ["Merged", "merged_times"]

_PASSES: dict[str, dict[str, float]] = {  # as an elementwise operation
    "elementwise": {},
    "gelu": {"inputs": 1, "outputs": 1, "vector": 0, "scalar": 1},
}
_APART = {"embedding_dense_backward"}  # elementwise passes, but over rows by index, and over a whole table
_MERGE = {*_PASSES, "gelu_gradient", "layer_norm", "layer_norm_gradient", "rms_norm", "rms_norm_gradient"}


@dataclass
class Merged:
    operations: int = 0  # that merge with their neighbours
    saved: float = 0.0  # seconds of computation
    time: float = 0.0  # of a step


def _regions(record: RankRecord) -> list[list[int]]:
    """Operations that follow each other on a stream, and are compiled. What is written to an `out` is done beside them,
    by DistributedDataParallel."""
    compiled = set(record.compiled)
    regions: list[list[int]] = []
    begun: dict[int, list[int]] = defaultdict(list)
    for index, event in enumerate(record.events):
        if event[0] != "op" or record.operations[event[2]].name.endswith(".out"):
            continue
        if event[3] in compiled:
            begun[event[1]].append(index)
        elif event[1] in begun:
            regions.append(begun.pop(event[1]))
    return [*regions, *begun.values()]


def _rule(record: RankRecord, rates: Rates, event: Event) -> Rule:
    operation = record.operations[event[2]]
    rates.operation(operation)
    return rates.rules[operation]


def _within(rule: Rule, first: bool, last: bool) -> tuple[str, dict[str, Any]] | None:
    """The kind and the shape of what is left of an operation; None: all of it."""
    if rule.kind not in _MERGE or rule.default or rule.name in _APART:
        return None
    if not first and not last:
        return rule.kind, {**rule.shape, "fused": True}
    if rule.kind not in _PASSES or (first and last):
        return None
    shape = {**rule.shape, **_PASSES[rule.kind]}
    return "elementwise", {**shape, "outputs" if first else "inputs": 0}


def merged_times(record: RankRecord, rates: Rates, memory: float = 1.0) -> dict[int, float]:
    """Seconds of each operation that merges, by the index of its event. `memory`: as of Rates.operation."""
    known: dict[str, float] = {}
    times: dict[int, float] = {}
    for region in _regions(record):
        for index in region:
            rule = _rule(record, rates, record.events[index])
            left = _within(rule, index == region[0], index == region[-1])
            if left is not None:
                key = repr(left)
                if key not in known:
                    known[key] = min(rates.time(Rule(rule.name, *left), memory), rates.time(rule, memory))
                times[index] = known[key]
    return times
