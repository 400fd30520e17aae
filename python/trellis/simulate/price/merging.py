"""What a compiler would save by merging elementwise operations: a statement beside the price, not a part of it.

Neighbours on a stream, all in regions of torch.compile, that go over tensors of the same extents are one operation:
the first operand of each is what the one before it made, so that it is neither written nor read again. Functions of one
tensor (gelu, silu, exp) merge as well. What a backward pass needs has to be written all the same, so this is the most
that merging saves.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from trellis.simulate.price.rates import Rates
from trellis.simulate.price.rules import Rule
from trellis.simulate.record import RankRecord

__all__ = ["Merged", "merged"]

_PASSES: dict[str, dict[str, float]] = {
    "elementwise": {},
    "gelu": {"inputs": 1, "outputs": 1, "vector": 0, "scalar": 1},
}


@dataclass
class Merged:
    before: int = 0  # operations that have a neighbour to merge with
    after: int = 0
    saved: float = 0.0  # seconds


def _extents(rule: Rule) -> tuple[Any, ...] | None:
    if rule.kind not in _PASSES or rule.default:
        return None
    return rule.shape["rows"] * rule.shape["columns"], rule.shape["type"]


def _chains(record: RankRecord, rates: Rates) -> Iterator[list[Rule]]:
    compiled = set(record.compiled)
    chain: list[Rule] = []
    stream = -1
    for event in record.events:
        rule = None
        if event[0] == "op" and event[3] in compiled:
            rates.operation(record.operations[event[2]])
            rule = rates.rules[record.operations[event[2]]]
            if _extents(rule) is None:
                rule = None
        if chain and (rule is None or event[1] != stream or _extents(rule) != _extents(chain[0])):
            yield chain
            chain = []
        if rule is not None:
            chain.append(rule)
            stream = event[1]
    if chain:
        yield chain


def _one(chain: list[Rule]) -> Rule:
    shapes = [{**rule.shape, **_PASSES[rule.kind]} for rule in chain]
    shape = {
        **shapes[0],
        "inputs": max(sum(s["inputs"] for s in shapes) - (len(chain) - 1), 0),
        "outputs": shapes[-1]["outputs"],
        "vector": sum(s["vector"] for s in shapes),
        "scalar": sum(s["scalar"] for s in shapes),
    }
    return replace(chain[0], kind="elementwise", shape=shape)


def merged(record: RankRecord, rates: Rates) -> Merged:
    out = Merged()
    known: dict[tuple[str, ...], float] = {}
    for chain in _chains(record, rates):
        if len(chain) < 2:
            continue
        key = tuple(repr(rule) for rule in chain)
        if key not in known:
            apart = sum(rates.time(rule) for rule in chain)
            known[key] = max(apart - rates.time(_one(chain)), 0.0)
        out.before += len(chain)
        out.after += 1
        out.saved += known[key]
    return out
