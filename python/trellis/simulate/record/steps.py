"""What one rank does in a step, in its order.

An event is a tuple that begins with its kind:

    ("op", stream, operation, place, phase)
    ("collective", stream, id, kind, family, bytes, type, reduction, root, place, phase)
    ("send" or "receive", stream, id, family, peer, bytes, type, tag, place, phase)
    ("wait", stream, id)               the stream waits for a communication
    ("mark", stream, event)            the event is reached when all that the stream has is done
    ("await", stream, event)           the stream waits for the event
    ("host", stream, place)            the host waits for the stream; -1: for all of them, and for all communications
    ("reached", event, place)          the host waits for the event

`operation` and `place` are indices into tables of the record, `family` into the job's families of groups; a
collective's `bytes` are of its larger buffer; `peer` and `root` are places in the group.
"""

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any, NamedTuple

__all__ = ["Event", "KernelTime", "Memory", "Operation", "PHASES", "Place", "RankRecord", "as_json", "of_json"]

Event = tuple[Any, ...]

PHASES = ("forward", "backward", "recompute", "optimizer", "other")


class Place(NamedTuple):
    """Where in the job: the module's name, and the line of the job's own source."""

    module: str
    line: str

    def __str__(self) -> str:
        return f"{self.module} at {self.line}" if self.module else self.line


class KernelTime(NamedTuple):
    """How long a kernel of NKI takes on a chip, and the interval."""

    chip: str
    seconds: float
    low: float
    high: float


class Operation(NamedTuple):
    """An operator on tensors of certain shapes."""

    name: str  # "aten.mm"
    inputs: tuple[tuple[int, ...], ...]
    outputs: tuple[tuple[int, ...], ...]
    type: str  # "bfloat16"
    flops: int  # of products; 0: none
    read: int  # bytes
    written: int
    # For each family of groups along which fully_shard cuts: its number, which inputs and outputs are shards, and how
    # many of the bytes read and written are theirs.
    sharded: tuple[tuple[int, tuple[int, ...], tuple[int, ...], int, int], ...] = ()
    times: tuple[KernelTime, ...] = ()  # of a kernel, "nki.rmsnorm": on each chip that it fits


@dataclass
class Memory:
    """Bytes at the peak of the step, by category."""

    peak: int = 0
    at: int = 0  # the event before which it is reached
    categories: dict[str, int] = field(default_factory=dict)
    # What torch.cuda's caching allocator would have reserved by then, since the job's begin; 0: not known.
    reserved: int = field(default=0, compare=False)


@dataclass
class RankRecord:
    rank: int
    events: list[Event] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    streams: list[str] = field(default_factory=list)
    memory: Memory = field(default_factory=Memory)
    assumptions: list[str] = field(default_factory=list)
    tokens: int = 0  # of this rank's input, in the step
    parameters: int = 0  # of this rank's part of the model
    compiled: list[int] = field(default_factory=list)  # places in regions of torch.compile
    # Of what fully_shard cut, by family: "weights", how many; and bytes at the peak, by category.
    sharded: dict[str, dict[str, int]] = field(default_factory=dict)
    saves: list[tuple[int, int, int]] = field(default_factory=list)  # checkpoints: place, own bytes, bytes of all

    def place(self, event: Event) -> Place:
        index = {"op": 3, "collective": 9, "send": 8, "receive": 8, "host": 2, "reached": 2}.get(event[0])
        return self.places[event[index]] if index is not None else Place("", "")

    def hash(self) -> str:
        """Of what is done, not of where: classmates have the same."""
        digest = hashlib.sha256()
        for event in self.events:
            told = event
            if event[0] == "op":
                told = ("op", event[1], *self.operations[event[2]], event[4])
            elif event[0] == "collective":
                told = (*event[:9], event[10])
            elif event[0] in ("send", "receive"):
                told = (*event[:8], event[9])
            elif event[0] in ("host", "reached"):
                told = event[:2]
            digest.update(json.dumps(told).encode())
        return digest.hexdigest()


def as_json(record: RankRecord) -> dict[str, Any]:
    return vars(record) | {"memory": vars(record.memory)}


def of_json(told: dict[str, Any]) -> RankRecord:
    def shapes(lists: list[list[int]]) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(shape) for shape in lists)

    return RankRecord(
        rank=told["rank"],
        events=[tuple(event) for event in told["events"]],
        operations=[
            Operation(o[0], shapes(o[1]), shapes(o[2]), o[3], o[4], o[5], o[6],
                      tuple((s[0], tuple(s[1]), tuple(s[2]), s[3], s[4]) for s in (o[7] if len(o) > 7 else ())),
                      tuple(KernelTime(*t) for t in (o[8] if len(o) > 8 else ())))
            for o in told["operations"]
        ],  # fmt: skip
        places=[Place(*place) for place in told["places"]],
        streams=told["streams"],
        memory=Memory(**told["memory"]),
        assumptions=told["assumptions"],
        tokens=told["tokens"],
        parameters=told["parameters"],
        compiled=told.get("compiled", []),
        sharded=told.get("sharded", {}),
        saves=[tuple(one) for one in told.get("saves", [])],
    )
