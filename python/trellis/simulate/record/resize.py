"""A record at another size of one of its axes, by rules: what an axis shards gets smaller, groups along it larger.

Rules, of an axis of p ranks that is to have q:
  - ranks along it must do the same: where shards are uneven they do not, and the job has to be recorded at that size;
  - groups that contain the axis get q places where they had p, others are there q times;
  - tensors that fully_shard cut along it keep p/q of their rows, and so do the bytes that operations move of them;
  - a gather of shards, and a scatter of gradients, is of the same whole; other gathers are of what each rank has;
  - what a rank holds otherwise, its batch included, stays: the job gets more data.
"""

from dataclasses import replace
from typing import Any

from trellis.simulate.record.job import Family, JobRecord, RankClass
from trellis.simulate.record.steps import Event, Memory, Operation, RankRecord

__all__ = ["UNKNOWN", "data_axis", "resize"]

UNKNOWN = "FullyShardedDataParallel"  # a record's key of shards that the rules do not know

_DATA = ("dp", "data", "fsdp", "ddp", "dp_replicate", "dp_shard", "dp_shard_cp", "batch")
_FOLDED = ("chunk_cat", "split_with_sizes_copy")  # of fully_shard: one row for each rank


def data_axis(job: JobRecord) -> str:
    """The name of the axis of data parallelism."""
    names = [family.name for family in job.families]
    found = next((name for name in _DATA if name in names), "world")
    used = {e[4] for one in job.classes for e in one.record.events if e[0] == "collective"}
    if found == "world" and len({job.families[f].groups for f in used}) > 1:
        raise ValueError(f"--dp: no axis of the job has a name for data: expected one of {', '.join(_DATA)} among "
                         f"{', '.join(names)}; --resize NAME=N names another")  # fmt: skip
    return found


class _Axis:
    """Ranks are (high, along, low): along the axis, neighbours are `stride` apart."""

    def __init__(self, job: JobRecord, family: Family, size: int) -> None:
        self.name, self.old, self.new = family.name, family.size, size
        group = family.groups[0]
        self.stride = group[1] - group[0] if len(group) > 1 else 1
        if size < 1:
            raise ValueError(f"{self.name}={size}: expected a size of at least 1")
        for group in family.groups:
            if group != tuple(self.rank(self.split(group[0]), a, self.old) for a in range(self.old)):
                raise ValueError(f"{self.name}: its ranks {group} are not evenly apart: record the job at that size")
        if job.world % (self.stride * self.old):
            raise ValueError(f"{self.name}: {self.old} ranks, {self.stride} apart, do not tile {job.world}")
        self.world = job.world // self.old * size

    def split(self, rank: int) -> tuple[int, int, int]:
        high, rest = divmod(rank, self.stride * self.old)
        return high, rest // self.stride, rest % self.stride

    def rank(self, place: tuple[int, int, int], along: int, size: int) -> int:
        return place[0] * self.stride * size + along * self.stride + place[2]

    def moved(self, rank: int) -> int:
        """The rank at the same place; the last one along the axis stays the last one."""
        place = self.split(rank)
        along = self.new - 1 if place[1] == self.old - 1 else min(place[1], self.new - 1)
        return self.rank(place, along, self.new)

    def all_of(self, rank: int) -> list[int]:
        return [self.rank(self.split(rank), a, self.new) for a in range(self.new)]


def _family(axis: _Axis, family: Family) -> tuple[Family, bool]:
    """(the family at the new size, whether its groups contain the axis)"""
    groups: set[tuple[int, ...]] = set()
    spans = False
    for group in family.groups:
        places = [axis.split(r) for r in group]
        others = {(p[0], p[2]) for p in places}
        if len({p[1] for p in places}) == 1:
            groups |= {tuple(axis.rank(p, a, axis.new) for p in places) for a in range(axis.new)}
        elif len(places) == len(others) * axis.old and list(group) == sorted(group):
            spans = True
            first = [axis.rank((high, 0, low), 0, axis.old) for high, low in others]
            groups.add(tuple(sorted(r for rank in first for r in axis.all_of(rank))))
        else:
            raise ValueError(f"{axis.name}: groups of {family.name} contain a part of it, as ranks {group}: record the "
                             "job at that size")  # fmt: skip
    return Family(family.name, tuple(sorted(groups))), spans


class _Records:
    """`numbers` are those of the families that are the axis: it may have several names."""

    def __init__(self, job: JobRecord, axis: _Axis, numbers: set[int], spanning: set[int]) -> None:
        self.job, self.axis, self.numbers, self.spanning = job, axis, numbers, spanning

    def whole(self, value: float, what: str) -> int:
        if value != int(value):
            raise ValueError(f"{self.axis.name}={self.axis.new}: {what} is not divided evenly: record the job at that "
                             "size")  # fmt: skip
        return int(value)

    def less(self, value: int, what: str) -> int:
        return self.whole(value * self.axis.old / self.axis.new, what)

    def operation(self, o: Operation, where: str) -> Operation:
        mine = [one for one in o.sharded if one[0] in self.numbers]
        what = f"{o.name} in {where}"
        if mine and o.times:
            raise ValueError(f"{self.axis.name}: {what} is a kernel that works on shards: record the job at that size")
        inputs, outputs = list(o.inputs), list(o.outputs)
        read, written = o.read, o.written
        for _, of_inputs, of_outputs, bytes_read, bytes_written in mine:
            for shapes, chosen in ((inputs, of_inputs), (outputs, of_outputs)):
                for i in chosen:
                    shapes[i] = (self.less(shapes[i][0], f"{shapes[i]} of {what}"), *shapes[i][1:])
            read += self.less(bytes_read, what) - bytes_read
            written += self.less(bytes_written, what) - bytes_written
        base = o.name.split(".")[1]
        if base in _FOLDED and any(len(s) == 2 and s[0] == self.axis.old for s in [*inputs, *outputs]):
            inputs, outputs = ([self.folded(s, what) for s in shapes] for shapes in (inputs, outputs))
        sharded = tuple((f, i, out, self.less(r, what) if f in self.numbers else r,
                         self.less(w, what) if f in self.numbers else w) for f, i, out, r, w in o.sharded)  # fmt: skip
        return o._replace(inputs=tuple(inputs), outputs=tuple(outputs), read=read, written=written, sharded=sharded)

    def folded(self, shape: tuple[int, ...], what: str) -> tuple[int, ...]:
        if len(shape) == 2 and shape[0] == self.axis.old:
            return self.axis.new, self.less(shape[1], f"{shape} of {what}")
        return shape

    def place_in(self, family: int, place: int) -> int:
        if family not in self.spanning or place <= 0:
            return place
        group = self.job.families[family].groups[0]
        new, _ = _family(self.axis, self.job.families[family])
        return (new.of(self.axis.moved(group[place])) or ()).index(self.axis.moved(group[place]))

    def event(self, event: Event, gathers_shards: bool) -> Event:
        if event[0] in ("send", "receive"):
            return (*event[:4], self.place_in(event[3], event[4]), *event[5:])
        if event[0] != "collective" or event[4] not in self.spanning:
            return event
        kind, size = event[3], event[5]
        if kind == "shift":
            raise ValueError(f"{self.axis.name}: ranks pass data along it: record the job at that size")
        if (kind == "all_gather" and not gathers_shards) or kind in ("gather", "scatter"):
            size = self.whole(size * self.axis.new / self.axis.old, f"{kind} of {size} B")
        return (*event[:5], size, *event[6:8], self.place_in(event[4], event[8]), *event[9:])

    def record(self, r: RankRecord) -> RankRecord:
        where = {e[2]: str(r.place(e)) for e in reversed(r.events) if e[0] == "op"}
        operations = [self.operation(o, where.get(i, "the step")) for i, o in enumerate(r.operations)]
        events: list[Event] = []
        last = ""
        for event in r.events:
            if event[0] == "op":
                last = r.operations[event[2]].name
            events.append(self.event(event, "all_gather_copy_in" in last))
        key = next((str(n) for n in sorted(self.numbers) if str(n) in r.sharded), "")
        mine: dict[str, int] = r.sharded.get(key, {})
        told = {name: self.less(n, name) for name, n in mine.items()}
        sharded: dict[str, Any] = {**r.sharded, **({key: told} if mine else {})}
        change = {name: told[name] - n for name, n in mine.items()}
        categories = {name: n + change.get(name, 0) for name, n in r.memory.categories.items()}
        memory = Memory(r.memory.peak + sum(n for c, n in change.items() if c in categories), r.memory.at, categories)
        return replace(r, rank=self.axis.moved(r.rank), events=events, operations=operations, memory=memory,
                       parameters=r.parameters + change.get("weights", 0), sharded=sharded)  # fmt: skip


def resize(job: JobRecord, name: str, size: int) -> JobRecord:
    """Raises ValueError where the rules do not tell what the job would do."""
    number = next((i for i, family in enumerate(job.families) if family.name == name), -1)
    if number < 0:
        raise ValueError(f"the job has no axis {name}: expected one of {', '.join(f.name for f in job.families)}")
    axis = _Axis(job, job.families[number], size)
    for group in job.families[number].groups:
        first, *others = {job.class_of(r): r for r in group}.values()
        if others:
            raise ValueError(f"{name}: ranks {first} and {others[0]} along it do different things, as with uneven "
                             "shards: record the job at that size")  # fmt: skip
    if any(UNKNOWN in one.record.sharded for one in job.classes):
        raise ValueError(f"{name}: parameters of {UNKNOWN} are cut without regard to their rows: record the job at "
                         "that size, or shard it by fully_shard")  # fmt: skip
    numbers = {i for i, family in enumerate(job.families) if family.groups == job.families[number].groups}
    moved = [_family(axis, family) for family in job.families]
    spanning = {i for i, (_, spans) in enumerate(moved) if spans}
    records = _Records(job, axis, numbers, spanning)
    classes = [
        RankClass(sorted({r for rank in one.ranks for r in axis.all_of(rank)}),
                  sorted({axis.moved(r) for r in one.recorded}), records.record(one.record))
        for one in job.classes
    ]  # fmt: skip
    told = [*job.assumptions,
            f"resized by rules: {name} from {axis.old} to {size} ranks; memory is that of the same moment"]  # fmt: skip
    return replace(job, world=axis.world, families=[f for f, _ in moved], classes=classes, assumptions=told)
