"""What waits for what, in the job's own words."""

from collections import defaultdict
from dataclasses import dataclass

from trellis.simulate.price import Priced
from trellis.simulate.record.steps import Event
from trellis.simulate.report import words

__all__ = ["Wait", "waits"]


@dataclass
class Wait:
    seconds: float
    times: int
    what: str  # "all_gather of 128 MiB in 8 ranks of tp"
    where: str  # modules and lines
    why: str  # "runs 3.2 ms by ring dims=8"


def _what(out: Priced, event: Event) -> tuple[str, str]:
    if event[0] == "collective":
        family = out.job.families[event[4]]
        return event[3], f"{event[3]} of {words.size(event[5])} among {family.size} ranks of {family.name}"
    if event[0] in ("send", "receive"):
        family = out.job.families[event[3]]
        end = "from" if event[0] == "receive" else "to"
        return event[0], f"{event[0]} of {words.size(event[5])} {end} place {event[4]} of {family.name}"
    operation = out.record.operations[event[2]]
    return operation.name, f"{operation.name} on stream {out.record.streams[event[1]]}"


def _why(out: Priced, event: Event) -> str:
    if event[0] != "collective":
        return ""
    key = (event[3], event[4], event[5], event[8])
    return f"{words.seconds(out.rates.collective(*key))} by {out.rates.algorithms[key]}"


def _no_numbers(module: str) -> str:
    return ".".join("*" if part.isdigit() else part for part in module.split("."))


def waits(out: Priced, most: int = 8) -> list[Wait]:
    """The longest, of the compute stream of the slowest class. Layers that wait alike are added up."""
    found: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    example: dict[tuple[str, str, str], Event] = {}
    for index, seconds in out.timed.classes[out.slowest].exposed.items():
        event = out.record.events[index]
        place = out.record.place(event)
        where = f"{_no_numbers(place.module)} at {place.line}" if place.module else place.line
        key = (_what(out, event)[1], where, str(event[-1]))
        found[key].append(seconds)
        example[key] = event
    told = [Wait(sum(all_of), len(all_of), key[0], f"{key[1]}, {key[2]}", _why(out, example[key]))
            for key, all_of in found.items()]  # fmt: skip
    return sorted(told, key=lambda w: -w.seconds)[:most]
