"""Streams and events of the fake device. They order what is recorded, as the real ones order what is done."""

import linecache
import re
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trellis.simulate.world.recorder import Recorder

__all__ = ["Event", "Stream", "Streams"]


class Streams:
    """All streams of the device, the current one, and the number of the next event."""

    def __init__(self, recorder: "Recorder") -> None:
        self.recorder = recorder
        self.names: list[str] = []
        self.events = 0
        self.default = Stream(name="compute", streams=self)
        self.current = self.default

    def made(self, name: str) -> int:
        same = sum(other == name or other.startswith(f"{name}.") for other in self.names)
        self.names.append(f"{name}.{same}" if same else name)
        return len(self.names) - 1


_streams: Streams | None = None


def use(streams: Streams) -> None:
    global _streams
    _streams = streams


def _assigned_name() -> str:
    """The name that the program gives to what it makes now: `self.copy_stream = Stream()` makes "copy_stream"."""
    frame: Any = sys._getframe(2)
    for _ in range(4):
        if frame is None:
            break
        found = re.match(r"\s*(?:\w+\.)*_?(\w+)(?:\s*:[^=]+)?\s*=[^=]",
                         linecache.getline(frame.f_code.co_filename, frame.f_lineno))  # fmt: skip
        if found and __file__ != frame.f_code.co_filename:
            return found[1].removesuffix("_stream")
        frame = frame.f_back
    return "stream"


class Stream:
    def __init__(self, device: Any = None, priority: int = 0, *, name: str = "", streams: Streams | None = None,
                 **_: Any) -> None:  # fmt: skip
        owner = streams or _streams
        assert owner is not None
        self._owner = owner
        self.number = owner.made(name or _assigned_name())
        self.priority = priority
        self._before: list[Stream] = []  # the current ones at its entries, of which one may be within another

    @property
    def device(self) -> Any:
        return self._owner.recorder.device

    @property
    def stream_id(self) -> int:
        return self.number

    @property
    def cuda_stream(self) -> int:
        return self.number

    def wait_event(self, event: "Event") -> None:
        if event.number >= 0:
            self._owner.recorder.add(("await", self.number, event.number))

    def wait_stream(self, other: "Stream") -> None:
        if other.number != self.number:
            self.wait_event(other.record_event())

    def record_event(self, event: "Event | None" = None) -> "Event":
        event = event or Event()
        event.record(self)
        return event

    def synchronize(self) -> None:
        self._owner.recorder.host_waits(self.number)

    def query(self) -> bool:
        return True

    def __enter__(self) -> "Stream":
        self._before.append(self._owner.current)
        self._owner.current = self
        return self

    def __exit__(self, *_: object) -> None:
        self._owner.current = self._before.pop()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other.number == self.number

    def __hash__(self) -> int:
        return hash(("stream", self.number))


class Event:
    def __init__(self, *_: Any, **__: Any) -> None:
        assert _streams is not None
        self._owner = _streams
        self.number = -1

    def record(self, stream: Stream | None = None) -> None:
        stream = stream or self._owner.current
        self.number = self._owner.events
        self._owner.events += 1
        self._owner.recorder.add(("mark", stream.number, self.number))

    def wait(self, stream: Stream | None = None) -> None:
        (stream or self._owner.current).wait_event(self)

    def synchronize(self) -> None:
        if self.number >= 0:
            self._owner.recorder.host_waits_for(self.number)

    def query(self) -> bool:
        return True

    def elapsed_time(self, other: "Event") -> float:
        self._owner.recorder.assume("the job measures times with events: each is told to it as 1 ms")
        return 1.0
