"""When everything happens: streams, events and communications of all classes, each with its duration.

A rank issues all at once; streams do things in their order. A collective begins when all classes that meet in it have
reached it and the one before it in its group is over; a message when both ends have.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from trellis.simulate.match import Mismatch
from trellis.simulate.record import JobRecord
from trellis.simulate.record.steps import Event

__all__ = ["ClassTimes", "Span", "Timed", "timed"]

Key = tuple[int, ...]  # of a communication


@dataclass
class Span:
    """What ran on a stream, or a communication: the index of its event, and what it waited for."""

    event: int
    lane: str
    start: float
    end: float
    cause: int = -1  # the span that it waited for; -1: none


@dataclass
class ClassTimes:
    end: float = 0.0
    spans: list[Span] = field(default_factory=list)
    exposed: dict[int, float] = field(default_factory=lambda: defaultdict(float))  # by the event that is waited for
    busy: float = 0.0  # of the first stream
    last: int = -1  # the span that ends last


@dataclass
class Timed:
    time: float
    classes: list[ClassTimes]


@dataclass
class _Meeting:
    """A communication of several classes."""

    ready: dict[int, float] = field(default_factory=dict)
    end: float | None = None
    start: float = 0.0


class _Class:
    def __init__(self, events: list[Event]) -> None:
        self.events = events
        self.at = 0
        self.tail: dict[int, tuple[float, int]] = defaultdict(lambda: (0.0, -1))  # of streams: when, which span
        self.marks: dict[int, tuple[float, int]] = {}
        self.begun: dict[int, tuple[Key, int]] = {}  # communications: the meeting, the event
        self.open: list[int] = []  # those since the host last waited for all
        self.spans_of: dict[int, int] = {}
        self.host: tuple[float, int] = (0.0, -1)  # when it goes on, the span that it waited for
        self.counts: dict[Key, int] = defaultdict(int)
        self.times = ClassTimes()
        self.free = 0.0  # when the first stream has done its last operation


Ends = tuple[int, int]  # of a message: its source's and its target's place in the group
Duration = Callable[[Event, Ends], float]


def _end(which: int, kind: str) -> int:
    """A class as an end of messages: it may be both, of different ones."""
    return 2 * which + (kind == "send")


def _grown(found: set[int], tied: list[set[int]]) -> set[int]:
    """With all that is tied to it, to that, and so on."""
    grows = True
    while grows:
        grows = False
        for one in tied:
            if one & found and not one <= found:
                found |= one
                grows = True
    return found


class _Timeline:
    def __init__(self, job: JobRecord, duration: Duration) -> None:
        self.job, self.duration = job, duration
        self.classes = [_Class(one.record.events) for one in job.classes]
        self.class_of = {rank: i for i, one in enumerate(job.classes) for rank in one.ranks}
        self.meetings: dict[Key, _Meeting] = defaultdict(_Meeting)
        self.queues: dict[Key, float] = defaultdict(float)
        self._meets: dict[tuple[int, int], tuple[int, ...]] = {}
        self._ends_met: dict[tuple[int, int, int, int], tuple[int, ...]] = {}
        self._self_peers: dict[tuple[int, int, int], tuple[int, int]] = {}

    def run(self) -> Timed:
        while True:
            moved = [self._go_on(i) for i in range(len(self.classes))]
            if all(c.at == len(c.events) for c in self.classes):
                break
            if not any(moved):
                raise Mismatch(f"nobody can go on: {'; '.join(self._stuck())}")
        for which, c in enumerate(self.classes):
            self._close(which, c)
        return Timed(max((c.times.end for c in self.classes), default=0.0), [c.times for c in self.classes])

    def _stuck(self) -> list[str]:
        told = []
        for one, c in zip(self.job.classes, self.classes, strict=True):
            if c.at < len(c.events):
                event = c.events[c.at]
                waited = [event[2]] if event[0] == "wait" else c.open
                index = next(c.begun[n][1] for n in waited if self.meetings[c.begun[n][0]].end is None)
                told.append(
                    f"rank {one.recorded[0]} waits for {c.events[index][0]} of {one.record.place(c.events[index])}"
                )
        return told

    def _go_on(self, which: int) -> bool:
        c = self.classes[which]
        before = c.at
        while c.at < len(c.events) and self._do(which, c, c.events[c.at]):
            c.at += 1
        return c.at > before

    def _do(self, which: int, c: _Class, event: Event) -> bool:
        kind = event[0]
        if kind == "op":
            self._operation(c, event)
        elif kind in ("collective", "send", "receive"):
            self._reach(which, c, event)
        elif kind == "wait":
            return self._wait(which, c, event[1], event[2])
        elif kind == "mark":
            c.marks[event[2]] = c.tail[event[1]]
        elif kind == "await" and event[2] in c.marks:  # else of an earlier step
            c.tail[event[1]] = max(c.tail[event[1]], c.marks[event[2]])
        elif kind == "host":
            return self._host_waits(c, event[1])
        elif kind == "reached" and event[1] in c.marks:  # else of an earlier step
            c.host = max(c.host, c.marks[event[1]])
        return True

    def _host_waits(self, c: _Class, stream: int) -> bool:
        """-1: for all streams, and for all that is communicated, which may not be over yet."""
        ends = [c.tail[stream]] if stream >= 0 else list(c.tail.values())
        for number in c.open if stream < 0 else ():
            meeting = self.meetings[c.begun[number][0]]
            if meeting.end is None:
                return False
            self._ended(c, number, meeting)
            ends.append((meeting.end, c.spans_of[number]))
        if stream < 0:
            c.open.clear()
        c.host = max([c.host, *ends])
        return True

    def _operation(self, c: _Class, event: Event) -> None:
        stream = event[1]
        ready, cause = max(c.tail[stream], c.host)
        end = ready + self.duration(event, (-1, -1))
        span = len(c.times.spans)
        c.times.spans.append(Span(c.at, f"stream {stream}", ready, end, cause))
        if stream == 0:
            if ready > c.free and cause >= 0:
                c.times.exposed[self._blamed(c, cause)] += ready - c.free
            c.free = end
            c.times.busy += end - ready
        c.tail[stream] = (end, span)

    def _blamed(self, c: _Class, cause: int) -> int:
        """The event of the communication, or of the operation of another stream, that kept the first stream."""
        return c.times.spans[cause].event

    def _key(self, which: int, c: _Class, event: Event) -> Key:
        family = event[4] if event[0] == "collective" else event[3]
        if event[0] == "collective":
            base: Key = (0, family, self._component(which, family)[0])
        else:
            mine, other = self._ends(which, family, event[4])
            source, target = (mine, other) if event[0] == "send" else (other, mine)
            base = (1, family, source, target, self._message_ends(_end(which, event[0]), family, source, target)[0])
        c.counts[base] += 1
        return (*base, c.counts[base])

    def _ends(self, which: int, family: int, peer: int) -> tuple[int, int]:
        key = (which, family, peer)
        if key not in self._self_peers:
            rank = self.job.classes[which].recorded[0]
            group = self.job.families[family].of(rank) or ()
            self._self_peers[key] = (group.index(rank), peer)
        return self._self_peers[key]

    def _component(self, which: int, family: int) -> tuple[int, ...]:
        """All classes that are tied to this one by groups of the family."""
        if (which, family) not in self._meets:
            tied = [{self.class_of[rank] for rank in group} for group in self.job.families[family].groups]
            found = _grown({which}, tied)
            for one_class in found:
                self._meets[one_class, family] = tuple(sorted(found))
        return self._meets[which, family]

    def _message_ends(self, end: int, family: int, source: int, target: int) -> tuple[int, ...]:
        """All ends of a message that are tied to this one: classes at the source's place and at the target's."""
        key = (end, family, source, target)
        if key not in self._ends_met:
            tied = [{_end(self.class_of[group[source]], "send"), _end(self.class_of[group[target]], "receive")}
                    for group in self.job.families[family].groups if max(source, target) < len(group)]  # fmt: skip
            self._ends_met[key] = tuple(sorted(_grown({end}, tied)))
        return self._ends_met[key]

    def _reach(self, which: int, c: _Class, event: Event) -> None:
        key = self._key(which, c, event)
        c.begun[event[2]] = (key, c.at)
        c.open.append(event[2])
        ready, cause = max(c.tail[event[1]], c.host)
        c.spans_of[event[2]] = len(c.times.spans)
        c.times.spans.append(Span(c.at, f"group {key[1]}", ready, 0.0, cause))
        meeting = self.meetings[key]
        one = which if event[0] == "collective" else _end(which, event[0])
        meeting.ready[one] = ready
        all_of = self._component(one, key[1]) if event[0] == "collective" else self._message_ends(one, *key[1:4])
        if len(meeting.ready) == len(all_of):
            ends = (-1, -1) if event[0] == "collective" else (key[2], key[3])
            meeting.start = max([*meeting.ready.values(), self.queues[key[:-1]]])
            meeting.end = meeting.start + self.duration(event, ends)
            self.queues[key[:-1]] = meeting.end

    def _wait(self, which: int, c: _Class, stream: int, number: int) -> bool:
        if number not in c.begun:
            return True  # of an earlier step
        meeting = self.meetings[c.begun[number][0]]
        if meeting.end is None:
            return False
        self._ended(c, number, meeting)
        c.tail[stream] = max(c.tail[stream], (meeting.end, c.spans_of[number]))
        return True

    def _ended(self, c: _Class, number: int, meeting: _Meeting) -> None:
        span = c.times.spans[c.spans_of[number]]
        assert meeting.end is not None
        span.start, span.end = meeting.start, meeting.end

    def _close(self, which: int, c: _Class) -> None:
        """Communications that nobody waited for end, too."""
        for number, (key, _) in c.begun.items():
            meeting = self.meetings[key]
            if meeting.end is None:
                one = self.job.classes[which]
                place = one.record.place(c.events[c.begun[number][1]])
                raise Mismatch(f"rank {one.recorded[0]} begins a communication in {place} to which others do not come")
            self._ended(c, number, meeting)
        c.times.last = max(range(len(c.times.spans)), key=lambda i: c.times.spans[i].end, default=-1)
        c.times.end = c.times.spans[c.times.last].end if c.times.spans else 0.0
        if c.times.end > c.free and c.times.last >= 0:
            c.times.exposed[c.times.spans[c.times.last].event] += c.times.end - c.free


def timed(job: JobRecord, duration: Duration) -> Timed:
    """`duration` is in seconds. Raises Mismatch where ranks wait in a circle."""
    return _Timeline(job, duration).run()
