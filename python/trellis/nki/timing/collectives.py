"""What the collectives of a kernel take: the network's time, by `trellis sim`, for all groups of a collective at
once."""

from dataclasses import replace
from functools import cache

from trellis import sim
from trellis.nki.trace import CollectiveCall, Trace

__all__ = ["machine_for", "priced"]

# The largest instance of a chip, whose logical cores are the ranks.
MACHINES = {"trn1": "trn1.32xlarge", "inf2": "inf2.48xlarge", "trn2": "trn2.48xlarge", "trn3": "trn3.gen1"}
Price = tuple[float, float, float]  # seconds, and the ends of the machine's interval


@cache
def _machine(name: str) -> sim.Machine:
    return sim.Machine(name)


def machine_for(trace: Trace, chip: str) -> str:
    """As many of the chip's largest instances as the ranks need."""
    name = MACHINES.get(chip, MACHINES["trn2"])
    ranks = 1 + max(rank for call in trace.collectives.values() for g in call.groups for rank in g)
    instances = -(-ranks // _machine(name).ranks)
    return name if instances == 1 else f"{name} x {instances}"


def _rounds(pairs: tuple[tuple[int, int], ...]) -> list[list[tuple[int, int]]]:
    """Messages that begin at once, in sets in which each rank stands once."""
    rounds: list[list[tuple[int, int]]] = []
    for pair in pairs:
        for each in rounds:
            if not any(rank in other for other in each for rank in pair):
                each.append(pair)
                break
        else:
            rounds.append([pair])
    return rounds


def _question(call: CollectiveCall, ranks: int) -> str:
    """The workload's text."""
    size, lines = f"{max(call.bytes, 1)}B", [f"ranks {ranks}"]
    if call.pairs:
        for n, messages in enumerate(_rounds(tuple(pair for pair in call.pairs if pair[0] != pair[1]))):
            ends = [",".join(str(pair[side]) for pair in messages) for side in (0, 1)]
            lines.append(f"send_recv m{n} {size} from {ends[0]} to {ends[1]} stream s{n}")
    else:
        lines.append("group g " + " ".join(",".join(map(str, g)) for g in call.groups))
        lines.append(f"{call.kind.removesuffix('_v')} c {size} on g")
    return "\n".join(lines) + "\n"


@cache
def _price(call: CollectiveCall, machine: str) -> Price:
    at = _machine(machine)
    text = _question(call, at.ranks)
    if text.count("\n") == 1 or (not call.pairs and all(len(g) == 1 for g in call.groups)):
        return 0.0, 0.0, 0.0  # nothing moves
    seconds = sim.play(text, at).time
    kind = "send_recv" if call.pairs else call.kind.removesuffix("_v")
    one = sim.price(kind, at, max(call.bytes, 1), ranks=max(map(len, call.groups)), explain=False)
    assert one.interval is not None
    return seconds, seconds * min(one.interval.low / one.time, 1.0), seconds * max(one.interval.high / one.time, 1.0)


def priced(trace: Trace, machine: str, end: int, late: dict[int, float] | None = None) -> Trace:
    """The same trace, whose collectives take their time: at the fast end of the interval (-1), in the middle (0) or at
    the slow one (1). `late`: seconds that a collective waits for its other ranks besides."""
    if not trace.collectives:
        return trace
    attributes = list(trace.attributes)
    for at, call in trace.collectives.items():
        seconds = _price(call, machine)[(0, 2, 1)[end]] + (late or {}).get(at, 0.0)
        attributes[at] = attributes[at] | {"ns": seconds * 1e9}
    return replace(trace, attributes=attributes)
