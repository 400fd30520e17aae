"""A rank's step as tasks, each after others: streams, events and waits are put into what a task is after."""

from dataclasses import dataclass

from trellis.simulate.record import JobRecord, RankRecord
from trellis.simulate.record.steps import Event

__all__ = ["Task", "tasks"]


@dataclass(frozen=True)
class Task:
    number: int  # the index of its event
    event: Event
    lane: str  # "s0": a stream; "g2": a family of groups, whose communications are in their order
    after: tuple[int, ...]  # numbers of tasks, beside the one before it in its lane


class _Walk:
    def __init__(self, job: JobRecord, record: RankRecord) -> None:
        self.job, self.record = job, record
        self.told: list[Task] = []
        self.after: dict[int, list[int]] = {}  # by stream: what its next task waits for
        self.last: dict[int, int] = {}
        self.marks: dict[int, list[int]] = {}
        self.number_of: dict[int, int] = {}  # communications
        self.open: list[int] = []  # those since the host last waited for all
        self.lanes: dict[int, str] = {}  # of tasks
        self.host: dict[str, int] = {}  # by lane: the last task that the host waited for

    def waits(self, stream: int) -> list[int]:
        """What the stream's next task waits for; a stream's first one is issued after all that the host waited for."""
        return self.after.setdefault(stream, list(self.host.values()))

    def before(self, stream: int) -> list[int]:
        return [*([self.last[stream]] if stream in self.last else []), *self.waits(stream)]

    def host_waits(self, numbers: list[int]) -> None:
        """Whatever is issued from here on, on any stream, is after these."""
        last = {self.lanes[n]: n for n in sorted(numbers)}
        told = {lane: n for lane, n in last.items() if n > self.host.get(lane, -1)}
        self.host |= told
        for waits in self.after.values():
            waits.extend(told.values())

    def run(self) -> list[Task]:
        for index, event in enumerate(self.record.events):
            kind, stream = event[0], event[1]
            if kind == "op":
                self.task(index, event, f"s{stream}", [n for n in self.waits(stream) if n != self.last.get(stream)])
                self.last[stream], self.after[stream] = index, []
            elif kind in ("collective", "send", "receive"):
                self.communication(index, event)
            elif kind == "wait" and event[2] in self.number_of:
                self.waits(stream).append(self.number_of[event[2]])
            elif kind == "mark":
                self.marks[event[2]] = self.before(stream)
            elif kind == "await":
                self.waits(stream).extend(self.marks.get(event[2], []))
            elif kind == "host":
                waited = [n for s in ([stream] if stream >= 0 else list(self.after)) for n in self.before(s)]
                self.host_waits(waited + self.open if stream < 0 else waited)
                self.open = [] if stream < 0 else self.open
            elif kind == "reached":
                self.host_waits(self.marks.get(event[1], []))
        return self.told

    def communication(self, index: int, event: Event) -> None:
        family = event[4] if event[0] == "collective" else event[3]
        if self.job.families[family].size > 1:
            lane = f"g{family}" if event[0] == "collective" else f"m{event[0]}{family}.{event[4]}"
            self.task(index, event, lane, self.before(event[1]))
            self.number_of[event[2]] = index
            self.open.append(index)

    def task(self, index: int, event: Event, lane: str, after: list[int]) -> None:
        self.told.append(Task(index, event, lane, tuple(dict.fromkeys(after))))
        self.lanes[index] = lane


def tasks(job: JobRecord, record: RankRecord) -> list[Task]:
    return _Walk(job, record).run()
