"""The proof that a job's communication fits together: in each group, all members come to the same collectives in the
same order; every message has a receiver that expects it; and nobody waits in a circle."""

from collections import defaultdict
from dataclasses import dataclass
from itertools import zip_longest

from trellis.simulate.record import JobRecord
from trellis.simulate.record.steps import Event

__all__ = ["Mismatch", "Proof", "prove"]


class Mismatch(ValueError):
    """Two ranks' communication does not fit; the text names both lines."""


@dataclass(frozen=True)
class Proof:
    collectives: int  # of all classes
    messages: int
    groups: int  # that were compared


def _words(event: Event) -> str:
    if event[0] == "collective":
        reduction = f" by {event[7]}" if event[7] else ""
        root = f" from rank {event[8]} of the group" if event[8] >= 0 else ""
        return f"{event[3]} of {event[5]} B of {event[6]}{reduction}{root}"
    return f"{event[0]} of {event[5]} B of {event[6]} with tag {event[7]}"


class _Sequences:
    """What each class does in each family of groups, in its order."""

    def __init__(self, job: JobRecord) -> None:
        self.job = job
        self.collectives: list[dict[int, list[Event]]] = []
        self.messages: list[dict[tuple[int, int, str], list[Event]]] = []
        for one in job.classes:
            by_family: dict[int, list[Event]] = defaultdict(list)
            by_peer: dict[tuple[int, int, str], list[Event]] = defaultdict(list)
            for event in one.record.events:
                if event[0] == "collective":
                    by_family[event[4]].append(event)
                elif event[0] in ("send", "receive"):
                    by_peer[event[3], event[4], event[0]].append(event)
            self.collectives.append(by_family)
            self.messages.append(by_peer)

    def told(self, which: int, rank: int, event: Event | None) -> str:
        record = self.job.classes[which].record
        if event is None:
            return f"rank {rank} does nothing more there"
        return f"rank {rank} does {_words(event)} in {record.place(event)}"


def _expect_same(
    all_of: _Sequences, what: str, family: int, one: tuple[int, int], other: tuple[int, int],
    first: list[Event], second: list[Event], fields: slice,
) -> None:  # fmt: skip
    """Of two members, each a class and a rank of it."""
    for index, (a, b) in enumerate(zip_longest(first, second), 1):
        if a is None or b is None or a[fields] != b[fields]:
            name = all_of.job.families[family].name
            raise Mismatch(f"{what} {index} of a group {name} differs: {all_of.told(*one, a)}; "
                           f"{all_of.told(*other, b)}")  # fmt: skip


def _compare(all_of: _Sequences, family: int, one: tuple[int, int], other: tuple[int, int]) -> None:
    """Collectives of two members: each a class and a rank of it."""
    first, second = all_of.collectives[one[0]].get(family, []), all_of.collectives[other[0]].get(family, [])
    _expect_same(all_of, "collective", family, one, other, first, second, slice(3, 9))


def _compare_messages(
    all_of: _Sequences, family: int, source: tuple[int, int, int], target: tuple[int, int, int]
) -> None:
    """Messages from one member of a group to another: each a class, a rank of it, its place in the group."""
    sent = all_of.messages[source[0]].get((family, target[2], "send"), [])
    taken = all_of.messages[target[0]].get((family, source[2], "receive"), [])
    _expect_same(all_of, "message", family, source[:2], target[:2], sent, taken, slice(5, 8))


def prove(job: JobRecord) -> Proof:
    """Raises Mismatch. That nobody waits in a circle is shown by the timeline, which ends."""
    all_of = _Sequences(job)
    class_of = {rank: index for index, one in enumerate(job.classes) for rank in one.ranks}
    used = {f for by in all_of.collectives for f in by} | {key[0] for by in all_of.messages for key in by}
    groups = 0
    seen: set[object] = set()
    for family in sorted(used):
        for group in job.families[family].groups:
            members = tuple((class_of[rank], place) for place, rank in enumerate(group))
            kinds = tuple(sorted({which for which, _ in members}))
            groups += 1
            if (family, kinds) not in seen:
                seen.add((family, kinds))
                first = {which: group[place] for which, place in reversed(members)}
                for which in kinds[1:]:
                    _compare(all_of, family, (kinds[0], first[kinds[0]]), (which, first[which]))
            _messages(all_of, family, group, members, seen)
    return Proof(sum(len(e) for by in all_of.collectives for e in by.values()),
                 sum(len(e) for by in all_of.messages for e in by.values()), groups)  # fmt: skip


def _messages(all_of: _Sequences, family: int, group: tuple[int, ...], members: tuple[tuple[int, int], ...],
              seen: set[object]) -> None:  # fmt: skip
    pairs = {(source, key[1]) for source, (which, _) in enumerate(members) for key in all_of.messages[which]
             if key[0] == family and key[2] == "send"}  # fmt: skip
    pairs |= {(key[1], target) for target, (which, _) in enumerate(members) for key in all_of.messages[which]
              if key[0] == family and key[2] == "receive"}  # fmt: skip
    for source, target in sorted(pairs):
        a, b = members[source][0], members[target][0]
        if (family, a, b, source, target) in seen:
            continue
        seen.add((family, a, b, source, target))
        _compare_messages(all_of, family, (a, group[source], source), (b, group[target], target))
