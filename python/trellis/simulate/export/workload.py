"""A job as a workload of `trellis sim`: its operations with their prices, its collectives to be priced together."""

from trellis.simulate.export.tasks import Task, tasks
from trellis.simulate.price import Priced
from trellis.simulate.price.rates import ranks_words, shift_ends
from trellis.simulate.record import RankRecord
from trellis.simulate.record.steps import Event

__all__ = ["workload"]


def _shift(out: Priced, task: Task) -> list[str]:
    """A line for each of its rounds."""
    event = task.event
    ends = shift_ends(out.job.families[event[4]].groups, event[8])
    if len(ends) > 2:
        raise ValueError(f"--workload: a shift among {out.job.families[event[4]].size} ranks, an odd number, has no "
                         "words in a workload's text; --chakra writes it")  # fmt: skip
    return [f"send_recv c{task.number}.{i} {max(event[5], 1)}B from {source} to {target}"
            for i, (source, target) in enumerate(ends)]  # fmt: skip


def _words(out: Priced, task: Task) -> str:
    event, record = task.event, out.record
    if event[0] == "op":
        return f"compute c{task.number} {round(out.rates.operation(record.operations[event[2]]) * 1e12)}ps"
    size = "" if event[3] == "barrier" else f" {max(event[5], 1)}B"
    root = f" root {event[8]}" if event[8] >= 0 else ""
    return f"{event[3]} c{task.number}{size} on g{event[4]}{root}"


def _communicated(out: Priced, record: RankRecord) -> tuple[Event, ...]:
    """Of each collective that moves something: its kind, its family, its bytes and its root."""
    return tuple((*event[3:6], event[8]) for event in record.events
                 if event[0] == "collective" and out.job.families[event[4]].size > 1)  # fmt: skip


def workload(out: Priced) -> str:
    """Raises ValueError for jobs with messages between ranks or ranks that differ in what they communicate: the text
    has one program for all ranks."""
    if any(e[0] in ("send", "receive") for one in out.job.classes for e in one.record.events):
        raise ValueError("--workload: stages of a pipeline differ, and a workload's text has one program for all "
                         "ranks; --chakra writes one for each")  # fmt: skip
    first = out.job.classes[0]
    for one in out.job.classes:
        if _communicated(out, one.record) != _communicated(out, first.record):
            raise ValueError(
                f"--workload: ranks like {first.recorded[0]} and {one.recorded[0]} differ in what they "
                "communicate, and a workload's text has one program for all ranks; --chakra writes one for each"
            )
    told = tasks(out.job, out.record)
    head = [f"# {' '.join(out.job.command)}: the step of ranks like rank {out.job.classes[out.slowest].recorded[0]}",
            f"ranks {out.job.world}"]  # fmt: skip
    for family in sorted({task.event[4] for task in told if task.event[0] == "collective"}):
        groups = " ".join(ranks_words(g) for g in out.job.families[family].groups)
        head.append(f"group g{family} {groups}")
    names: dict[int, list[str]] = {}
    for task in told:
        shift = task.event[0] == "collective" and task.event[3] == "shift"
        lines = _shift(out, task) if shift else [_words(out, task)]
        names[task.number] = [line.split()[1] for line in lines]
        after = f" after {' '.join(name for n in task.after for name in names[n])}" if task.after else ""
        for number, line in enumerate(lines):
            head.append(f"{line}{after} stream {task.lane}{f'.{number}' if number else ''}")
    return "\n".join(head) + "\n"
