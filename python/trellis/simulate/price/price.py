"""A job's step priced on a machine."""

from collections import defaultdict
from dataclasses import dataclass, field

from trellis import sim
from trellis.simulate.match import Proof, prove
from trellis.simulate.price.merging import Merged, merged_times
from trellis.simulate.price.rates import Rates
from trellis.simulate.price.timeline import Ends, Timed, timed
from trellis.simulate.record import JobRecord, Operation, RankClass, RankRecord
from trellis.simulate.record.steps import Event

__all__ = ["Priced", "price"]

# The runtime's code on each physical core, by Neuron's documentation of device memory. It names `collectives` as well,
# but documents no size of them.
_RUNTIME = 96 << 20


@dataclass
class OperatorClass:
    """Operations that one rule prices, of the slowest class."""

    name: str
    kind: str
    time: float = 0.0
    count: int = 0
    default: bool = False


@dataclass
class Priced:
    """Seconds and bytes. `exposed`: what the compute stream of the slowest class waited for, by family or stream."""

    job: JobRecord
    machine: sim.Machine
    proof: Proof
    timed: Timed
    rates: Rates
    time: float
    low: float
    high: float
    slowest: int  # the class that decides
    exposed: dict[str, float] = field(default_factory=dict)
    bubble: float = 0.0  # of the slowest class: waits for messages, and its rest of the step
    operators: list[OperatorClass] = field(default_factory=list)
    flops: float = 0.0  # of products, of all ranks
    tokens: int = 0  # of all ranks that read data of their own
    merged: Merged = field(default_factory=Merged)  # what merging compiled regions would save, of the slowest class
    capacity: float = 0.0  # bytes of a rank's memory
    runtime: int = 0  # of those, what the runtime takes

    @property
    def mfu(self) -> float:
        return self.flops / (self.time * self.machine.rank_flops * self.job.world) if self.time else 0.0

    @property
    def fits(self) -> bool:
        return max(c.record.memory.peak for c in self.job.classes) + self.runtime <= self.capacity

    @property
    def most_reserved(self) -> RankClass:
        return max(self.job.classes, key=lambda c: c.record.memory.reserved)

    @property
    def cuda_reserved_fits(self) -> bool | None:
        """Whether what torch.cuda's caching allocator would have reserved does; None: not known."""
        reserved = self.most_reserved.record.memory.reserved
        return reserved + self.runtime <= self.capacity if reserved else None

    @property
    def on_defaults(self) -> float:
        """The part of computation's time that no rule of its own prices."""
        whole = sum(o.time for o in self.operators)
        return sum(o.time for o in self.operators if o.default) / whole if whole else 0.0

    @property
    def record(self) -> RankRecord:
        return self.job.classes[self.slowest].record


class _Durations:
    def __init__(self, job: JobRecord, rates: Rates) -> None:
        self.job, self.rates = job, rates
        self.side = 0  # -1: the low end of what is not known, 1: the high one
        self.merged: dict[int, float] = {}  # of operations that take less, by the event's identity
        self.slowness = _slowest(job, rates.machine.at_defects)
        self.memory = _slowest(job, rates.machine.memory_at_defects)

    def of(self, record: RankRecord, event: Event, ends: Ends) -> float:
        if event[0] == "op":
            return self._computed(record, event) * self.slowness[id(record)]
        if event[0] == "collective":
            time = self.rates.collective(event[3], event[4], event[5], event[8])
            if self.side:
                time *= self.rates.spread(event[3], event[4])[self.side > 0]
            return time
        return self.rates.message(event[3], *ends, event[5])

    def _computed(self, record: RankRecord, event: Event) -> float:
        if id(event) in self.merged:
            return self.merged[id(event)]
        operation = record.operations[event[2]]
        memory = self.memory[id(record)]
        if not self.side:
            return self.rates.operation(operation, memory)
        return self.rates.operation_end(operation, self.side > 0, memory)


def _slowest(job: JobRecord, slowness: dict[int, float]) -> dict[int, float]:
    """Of each class's ranks, by the record's identity."""
    return {id(one.record): max(slowness.get(r, 1.0) for r in one.ranks) for one in job.classes}


def _timed(job: JobRecord, durations: _Durations) -> Timed:
    """Operations' numbers are each record's own, so a class's events are told apart by the class."""
    record_of = {id(event): one.record for one in job.classes for event in one.record.events}

    def duration(event: Event, ends: Ends) -> float:
        return durations.of(record_of[id(event)], event, ends)

    return timed(job, duration)


def price(job: JobRecord, machine: sim.Machine | str, era: str = "") -> Priced:
    """Raises Mismatch where the communication does not fit, ValueError where the job does not fit the machine."""
    machine = sim.Machine(machine) if isinstance(machine, str) else machine
    if job.world > machine.ranks:
        raise ValueError(f"the job has {job.world} ranks, {machine.base} has {machine.ranks}")
    capacity = machine.rank_memory  # raises where the machine has no chip
    proof = prove(job)
    rates = Rates(machine, job.families, era)
    durations = _Durations(job, rates)
    middle = _timed(job, durations)
    ends = []
    for durations.side in (-1, 1):
        ends.append(_timed(job, durations).time)
    durations.side = 0
    slowest = max(range(len(job.classes)), key=lambda i: middle.classes[i].busy)
    out = Priced(job, machine, proof, middle, rates, middle.time, ends[0], ends[1], slowest, capacity=capacity)
    out.runtime = int(_RUNTIME * machine.figures["cores"].value * machine.chips / machine.ranks)
    _waits(out)
    _operators(out, durations)
    out.merged = _merged(out, durations)
    out.flops = sum(_flops(one.record) * len(one.ranks) for one in job.classes)
    out.tokens = sum(one.record.tokens * len(one.ranks) for one in job.classes) // _same_data(job)
    return out


def _merged(out: Priced, durations: _Durations) -> Merged:
    times = [merged_times(one.record, out.rates, durations.memory[id(one.record)]) for one in out.job.classes]
    if not any(times):
        return Merged()
    for one, seconds in zip(out.job.classes, times, strict=True):
        durations.merged.update({id(one.record.events[index]): each for index, each in seconds.items()})
    record, mine = out.record, times[out.slowest]
    memory = durations.memory[id(record)]
    apart = sum(out.rates.operation(record.operations[record.events[index][2]], memory) for index in mine)
    saved = (apart - sum(mine.values())) * durations.slowness[id(record)]
    return Merged(len(mine), saved, _timed(out.job, durations).time)


def _flops(record: RankRecord) -> int:
    """Of what is computed once: activations that are computed again do not count as useful."""
    useful = [_useful(o) for o in record.operations]
    return sum(useful[e[2]] for e in record.events if e[0] == "op" and e[4] != "recompute")


def _useful(o: Operation) -> int:
    """The gradient of attention computes the scores again: one of three products as wide as a query."""
    if not (o.flops and "_scaled_dot_product_" in o.name and "_backward" in o.name):
        return o.flops
    width, values = o.inputs[1][3], o.inputs[3][3]
    return o.flops - o.flops * width // (3 * width + 2 * values)


def _same_data(job: JobRecord) -> int:
    """Ranks that read the same tokens: members of groups of tensor, sequence and context parallelism."""
    times = 1
    for family in job.families:
        base = family.name.partition(".")[0].lower()
        if base in ("tp", "tensor", "sp", "cp", "context", "ep_tp", "mp", "model") and family.name == base:
            times *= family.size
    return times


def _waits(out: Priced) -> None:
    times, record = out.timed.classes[out.slowest], out.record
    told: dict[str, float] = defaultdict(float)
    for index, seconds in times.exposed.items():
        event = record.events[index]
        if event[0] == "collective":
            told[out.job.families[event[4]].name] += seconds
        elif event[0] in ("send", "receive"):
            told[f"{out.job.families[event[3]].name} (messages)"] += seconds
            out.bubble += seconds
        else:
            told[f"stream {record.streams[event[1]]}"] += seconds
    out.bubble += out.time - times.end
    out.exposed = dict(sorted(told.items(), key=lambda item: -item[1]))


def _operators(out: Priced, durations: _Durations) -> None:
    told: dict[str, OperatorClass] = {}
    record = out.record
    for event in record.events:
        if event[0] != "op":
            continue
        operation = record.operations[event[2]]
        time = durations.of(record, event, (0, 0))
        rule = out.rates.rules[operation]
        one = told.setdefault(rule.name, OperatorClass(rule.name, rule.kind, default=rule.default))
        one.time += time
        one.count += 1
    out.operators = sorted(told.values(), key=lambda o: -o.time)
