"""The time of a kernel on several ranks, whose collectives wait for the last of a group."""

from typing import Any

from trellis.nki.timing.timing import Timing, time_of
from trellis.nki.trace import Trace

__all__ = ["time_of_ranks"]

MOST_ROUNDS = 6  # of looking who waits for whom
SETTLED = 0.01  # of the time: changes of waits that are too small for another round


def _likeness(t: Trace) -> Any:
    """Equal for ranks whose programs take the same time: they differ at most in which addresses they touch."""
    views = tuple((t.buffers[v.buffer].space, v.rows, v.pattern, v.dtype) for v in t.views)
    return (tuple(t.kind), tuple(t.line), tuple(t.outputs), tuple(t.inputs), tuple(t.core), views,
            tuple((at, call.kind, call.bytes, tuple(map(len, call.groups)))
                  for at, call in t.collectives.items()))  # fmt: skip


def _meetings(t: Trace, rank: int) -> list[tuple[Any, int]]:
    """Of each of the rank's collectives: what the other ranks of its group call the same one, and its instruction."""
    count: dict[Any, int] = {}
    found = []
    for at, call in t.collectives.items():
        group = next((g for g in call.groups if rank in g), (rank,))
        key = (t.core[at], group)
        count[key] = count.get(key, 0) + 1
        found.append(((*key, count[key]), at))
    return found


def time_of_ranks(traces: list[Trace], chip: str = "", machine: str = "") -> Timing:
    """Of the rank that ends last. Ranks that do alike are timed once; they wait as long as the one of them that waits
    longest."""
    kinds: dict[Any, int] = {}
    kind_of = [kinds.setdefault(_likeness(t), len(kinds)) for t in traces]
    of_kind = [traces[kind_of.index(k)] for k in range(len(kinds))]
    late: list[dict[int, float]] = [{} for _ in of_kind]
    for _ in range(MOST_ROUNDS if len(of_kind) > 1 else 1):
        timings = [time_of(t, chip, machine=machine, late=w) for t, w in zip(of_kind, late, strict=True)]
        if len(of_kind) == 1:
            break
        before, late = late, _waits(traces, kind_of, timings)
        changes = [abs(w.get(at, 0.0) - b.get(at, 0.0)) for w, b in zip(late, before, strict=True) for at in {*w, *b}]
        if max(changes, default=0.0) < SETTLED * max(t.seconds for t in timings):
            break
    return max(timings, key=lambda t: t.seconds)


def _waits(traces: list[Trace], kind_of: list[int], timings: list[Timing]) -> list[dict[int, float]]:
    """How long each kind's collectives wait for the last rank of their group."""
    starts = []
    for t in timings:
        if t.outcome is None:
            raise ValueError(f"{t.name} on ranks that differ: too many instructions to say which one waits")
        starts.append((t.outcome.run.start * 1e-12).tolist())
    arrival: dict[Any, float] = {}
    for rank, trace in enumerate(traces):
        for key, at in _meetings(trace, rank):
            arrival[key] = max(arrival.get(key, 0.0), starts[kind_of[rank]][at])
    late: list[dict[int, float]] = [{} for _ in timings]
    for rank, trace in enumerate(traces):
        k = kind_of[rank]
        for key, at in _meetings(trace, rank):
            late[k][at] = max(late[k].get(at, 0.0), arrival[key] - starts[k][at])
    return late
