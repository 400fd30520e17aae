"""A job as a workload of `trellis sim`: its operations with their prices, its collectives to be priced together."""

from trellis.simulate.price import Priced
from trellis.simulate.price.rates import ranks_words

__all__ = ["workload"]


class _Writer:
    """One class for all ranks: streams become the text's, and events and waits what a task is after."""

    def __init__(self, out: Priced) -> None:
        self.out = out
        self.lines: list[str] = []
        self.after: dict[str, list[str]] = {}  # by stream: what its next task waits for
        self.last: dict[str, str] = {}
        self.marks: dict[int, list[str]] = {}
        self.name_of: dict[int, str] = {}

    def stream(self, number: int) -> str:
        return f"s{number}"

    def task(self, words: str, name: str, stream: str, more: list[str]) -> None:
        waits = list(dict.fromkeys([*self.after.pop(stream, []), *more]))
        after = f" after {' '.join(waits)}" if waits else ""
        self.lines.append(f"{words}{after} stream {stream}")
        self.last[stream] = name

    def run(self) -> None:
        record = self.out.record
        for index, event in enumerate(record.events):
            kind = event[0]
            if kind == "op":
                operation = record.operations[event[2]]
                ps = round(self.out.rates.operation(operation) * 1e12)
                name = f"c{index}"
                self.task(f"compute {name} {ps}ps", name, self.stream(event[1]), [])
            elif kind == "collective":
                self._collective(index, event)
            elif kind == "wait" and event[2] in self.name_of:
                self.after.setdefault(self.stream(event[1]), []).append(self.name_of[event[2]])
            elif kind == "mark":
                stream = self.stream(event[1])
                last = [self.last[stream]] if stream in self.last else []
                self.marks[event[2]] = [*last, *self.after.get(stream, [])]
            elif kind == "await":
                self.after.setdefault(self.stream(event[1]), []).extend(self.marks.get(event[2], []))

    def _collective(self, index: int, event: tuple[object, ...]) -> None:
        assert isinstance(event[1], int) and isinstance(event[4], int) and isinstance(event[8], int)
        assert isinstance(event[2], int) and isinstance(event[5], int)
        if self.out.job.families[event[4]].size < 2:
            return
        name, stream = f"c{index}", self.stream(event[1])
        size = "" if event[3] == "barrier" else f" {max(event[5], 1)}B"
        root = f" root {event[8]}" if event[8] >= 0 else ""
        before = [*([self.last[stream]] if stream in self.last else []), *self.after.get(stream, [])]
        self.task(f"{event[3]} {name}{size} on g{event[4]}{root}", name, f"g{event[4]}", before)
        self.name_of[event[2]] = name


def workload(out: Priced) -> str:
    """Raises ValueError for jobs with messages between ranks or ranks that differ in what they communicate: the text
    has one program for all ranks."""
    if any(e[0] in ("send", "receive") for one in out.job.classes for e in one.record.events):
        raise ValueError("--workload: stages of a pipeline differ, and a workload's text has one program for all ranks")
    writer = _Writer(out)
    writer.run()
    used = sorted({e[4] for e in out.record.events if e[0] == "collective"})
    head = [f"# {' '.join(out.job.command)}: the step of ranks like rank {out.job.classes[out.slowest].recorded[0]}",
            f"ranks {out.job.world}"]  # fmt: skip
    for family in used:
        if out.job.families[family].size > 1:
            groups = " ".join(ranks_words(g) for g in out.job.families[family].groups)
            head.append(f"group g{family} {groups}")
    return "\n".join([*head, *writer.lines]) + "\n"
