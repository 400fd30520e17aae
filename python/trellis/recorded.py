"""What a torch job communicated, as a workload: run it with TRELLIS_RECORD=folder, then

    python -m trellis.recorded folder -o job.txt
    trellis sim job.txt -m "trn2.48xlarge x 4"

Between a rank's operations is the time that it computed, as measured where it ran; `--compute` multiplies it. A job
whose operations all are among all ranks can be played by more of them: `--ranks 64`.
"""

import argparse
import json
import math
import pathlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from trellis import origin

__all__ = ["main", "workload"]


@dataclass
class _Communication:
    """One rank's part in an operation."""

    key: tuple[Any, ...]  # the same on all its ranks
    collective: str
    bytes: int
    root: int
    peer: int
    members: tuple[int, ...]
    after: list["_Task"]


@dataclass
class _Compute:
    ns: int
    after: list["_Task"] = field(default_factory=list)


_Task = _Communication | _Compute


def _event(path: pathlib.Path, number: int, line: str) -> dict[str, Any]:
    try:
        event = json.loads(line)
    except json.JSONDecodeError as error:
        where = f"{path}:{number}"
        raise ValueError(f"{where}: {error.msg} at column {error.colno}: expected a whole line of JSON") from None
    if not isinstance(event, dict) or not event:
        raise ValueError(f"{path}:{number}: {line[:40]!r}: expected names with values, as {{\"issued\": 1, ...}}")
    return event


def _read(path: pathlib.Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    lines = [_event(path, at, line) for at, line in enumerate(path.read_text().splitlines(), 1) if line.strip()]
    if not lines or lines[0].get("trellis") != "recording 2":
        raise ValueError(f"{path} is no recording: expected a first line with \"trellis\":\"recording 2\"")
    return lines[0], lines[1:]


class _Rank:
    """One rank's computations and communications in its order, with what each waits for."""

    def __init__(self, events: list[dict[str, Any]]) -> None:
        self.endings = {event["ended"]: event for event in events if "ended" in event}
        self.awaited_at_end = {event["taken"] for event in events if event.get("backward")}
        self.tasks: list[_Task] = []
        self.begun: dict[int, _Communication] = {}  # by the operation's number; the last where it is several
        self.ended: set[int] = set()
        self.taken: set[int] = set()
        self.blocking: set[int] = set()  # what the end of a backward pass waits for
        self.counts: dict[tuple[Any, ...], int] = defaultdict(int)
        self.waited: list[_Task] = []  # since the last computation
        self.computed: _Compute | None = None
        self.last: int | None = None  # the program's last line: it has computed since
        methods = {
            "begins": self._begins, "issued": self._issued, "waits": self._waits, "waited": self._waited,
            "taken": self._taken, "awaits": self._awaits, "ended": self._ended,
        }  # fmt: skip
        for event in events:
            kind, number = next(iter(event.items()))
            methods[kind](number, event)

    def _after(self) -> list[_Task]:
        return [*([self.computed] if self.computed else []), *self.waited]

    def _communicates(self, now: int) -> None:
        """The program has computed until now."""
        if not self.blocking and self.last is not None and now > self.last:
            self.computed = _Compute(now - self.last, self._after())
            self.waited = []
            self.tasks.append(self.computed)
        self.last = now

    def _begins(self, number: int, event: dict[str, Any]) -> None:
        self._communicates(event["ns"])
        members = tuple(event["members"])
        ending = self.endings.get(number, {})
        root = event["root"] if event["root"] >= 0 else ending.get("source", -1)
        ends = (root, event["peer"]) if event["collective"] == "send_recv" else ()
        where = (members, *ends)
        after = self._after()
        for size in ending.get("parts", [event["bytes"]]):
            key = (*where, self.counts[where])
            one = _Communication(key, event["collective"], size, root, event["peer"], members, after)
            self.counts[where] += 1
            self.begun[number] = one
            self.tasks.append(one)
            after = [one]

    def _issued(self, number: int, event: dict[str, Any]) -> None:
        self.last = event["ns"]

    def _waits(self, number: int, event: dict[str, Any]) -> None:
        self._communicates(event["ns"])

    def _waited(self, number: int, event: dict[str, Any]) -> None:
        self.waited.append(self.begun[number])
        self.last = event["ns"]

    def _taken(self, number: int, event: dict[str, Any]) -> None:
        """Its future was taken. Outside of a backward pass nobody says when it is awaited: as it ends, then."""
        if number not in self.awaited_at_end and number in self.ended:
            self.waited.append(self.begun[number])
        self.taken.add(number)

    def _awaits(self, number: int, event: dict[str, Any]) -> None:
        self._communicates(event["ns"])
        self.waited.append(self.begun[number])
        if number not in self.ended:
            self.blocking.add(number)

    def _ended(self, number: int, event: dict[str, Any]) -> None:
        """On another thread."""
        self.ended.add(number)
        if number in self.taken and number not in self.awaited_at_end:
            self.waited.append(self.begun[number])
        if number in self.blocking:
            self.blocking.remove(number)
            self.last = event["ns"]


class _Writer:
    """All ranks' tasks as lines, each after those that it waits for."""

    def __init__(self, tasks: dict[int, list[_Task]], compute: float) -> None:
        self.tasks, self.compute = tasks, compute
        self.at = dict.fromkeys(tasks, 0)
        self.names: dict[int, str] = {}  # of a task, by its identity
        self.arrived: dict[tuple[Any, ...], dict[int, _Communication]] = defaultdict(dict)
        self.groups: dict[tuple[int, ...], str] = {}
        self.lines: list[str] = []
        self.only_all = True

    def _after(self, tasks: list[_Task]) -> str:
        names = sorted({self.names[id(task)] for task in tasks})
        return f" after {' '.join(names)}" if names else ""

    def _everyone(self, members: tuple[int, ...]) -> bool:
        return len(members) == len(self.tasks)

    def _on(self, members: tuple[int, ...]) -> str:
        return "" if self._everyone(members) else f" on {','.join(map(str, members))}"

    def _stream(self, members: tuple[int, ...], one: _Communication) -> str:
        if one.collective == "send_recv":
            return f" stream from{members[one.root]}to{members[one.peer]}"
        if self._everyone(members):
            return ""
        return f" stream {self.groups.setdefault(members, f'group{len(self.groups)}')}"

    def _communicate(self, parts: dict[int, _Communication]) -> None:
        one = next(iter(parts.values()))
        name = f"c{len(self.lines)}"
        after = self._after([task for part in parts.values() for task in part.after])
        if one.collective == "send_recv":
            ends = f" from {one.members[one.root]} to {one.members[one.peer]}"
            self.only_all = False
        else:
            root = f" root {one.root}" if one.root else ""
            ends = self._on(one.members) + root
            self.only_all &= self._everyone(one.members)
        size = "" if one.collective == "barrier" else f" {one.bytes}B"
        self.lines.append(f"{one.collective} {name}{size}{ends}{after}{self._stream(one.members, one)}")
        for part in parts.values():
            self.names[id(part)] = name

    def _compute_now(self, ranks: list[int]) -> None:
        """The ranks' next tasks are computations with the same predecessors."""
        tasks = [self.tasks[rank][self.at[rank]] for rank in ranks]
        lengths = [task.ns for task in tasks if isinstance(task, _Compute)]
        name = f"t{len(self.lines)}"
        ns = sum(lengths) / len(lengths) * self.compute
        self.lines.append(f"compute {name} {ns:.0f}ns{self._on(tuple(ranks))}{self._after(tasks[0].after)}")
        for rank, task in zip(ranks, tasks, strict=True):
            self.names[id(task)] = name
            self.at[rank] += 1

    def _ready(self) -> Iterator[tuple[int, _Task]]:
        for rank, tasks in self.tasks.items():
            if self.at[rank] < len(tasks):
                yield rank, tasks[self.at[rank]]

    def run(self) -> None:
        while any(True for _ in self._ready()):
            before = len(self.lines), dict(self.at)
            alike: dict[str, list[int]] = defaultdict(list)
            for rank, task in self._ready():
                if isinstance(task, _Compute) and all(id(each) in self.names for each in task.after):
                    alike[self._after(task.after)].append(rank)
            for ranks in alike.values():
                self._compute_now(ranks)
            for rank, task in list(self._ready()):
                if isinstance(task, _Communication):
                    self.arrived[task.key][rank] = task
                    self.at[rank] += 1
            for key, parts in list(self.arrived.items()):
                one = next(iter(parts.values()))
                needed = 2 if one.collective == "send_recv" else len(one.members)
                known = all(id(each) in self.names for part in parts.values() for each in part.after)
                if len(parts) == needed and known:
                    self._communicate(self.arrived.pop(key))
            if before == (len(self.lines), self.at):
                raise ValueError(f"the recording is not whole: after {len(self.lines)} tasks nothing can go on")
        if self.arrived:
            one = next(iter(next(iter(self.arrived.values())).values()))
            raise ValueError(f"{one.collective} of ranks {one.members} was not recorded by all of them")


def workload(folder: str | pathlib.Path, compute: float = 1.0, ranks: int = 0) -> str:
    """The text of the workload, as `trellis sim` and `trellis.sim.play` read it."""
    if not 0 <= compute < math.inf:
        raise ValueError(f"--compute {compute}: expected a factor of 0 or more")
    if ranks < 0:
        raise ValueError(f"--ranks {ranks}: expected a number of ranks, or 0 for as many as were recorded")
    paths = sorted(pathlib.Path(folder).glob("rank*.jsonl"))
    if not paths:
        what = "has no recordings" if pathlib.Path(folder).is_dir() else "is no folder"
        raise ValueError(f"{folder} {what}: expected one where a job with TRELLIS_RECORD={folder} wrote rank0.jsonl")
    read = [_read(path) for path in paths]
    recorded = {head["rank"]: events for head, events in read}
    expected = read[0][0]["ranks"]
    if sorted(recorded) != list(range(expected)):
        raise ValueError(f"{folder} has recordings of ranks {sorted(recorded)}, expected 0 to {expected - 1}")
    writer = _Writer({rank: _Rank(recorded[rank]).tasks for rank in sorted(recorded)}, compute)
    writer.run()
    if ranks and not writer.only_all:
        raise ValueError(f"--ranks {ranks}: some operations are not among all {expected} ranks")
    head = f"# recorded from {expected} ranks\nranks {ranks or expected}\n"
    return head + "".join(f"{line}\n" for line in writer.lines)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder")
    options.add_argument("-o", "--output", help="file of the workload [standard output]")
    options.add_argument("--compute", type=float, default=1.0, help="factor of computations' times [1]")
    options.add_argument("--ranks", type=int, default=0, help="as if so many ranks had run [as recorded]")
    given = options.parse_args()
    try:
        text = workload(given.folder, given.compute, given.ranks)
    except (ValueError, OSError) as error:
        raise SystemExit(f"trellis.recorded: {error}") from None
    if given.output:
        pathlib.Path(given.output).write_text(origin.comment(origin.facts()) + text)
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
