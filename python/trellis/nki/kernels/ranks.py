"""A kernel on several ranks: each runs it with its own arguments, and collectives exchange what they have."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trellis.nki.kernels.cores import Team
from trellis.nki.kernels.session import Session, refuse, session
from trellis.nki.trace import Trace

if TYPE_CHECKING:
    from trellis.nki.kernels.jit import Kernel

__all__ = ["Group", "group_of", "on_ranks", "RankedRun", "World"]


@dataclass
class Meeting:
    """One collective of one group: what each rank has given, and how many have taken it."""

    kind: str
    given: dict[int, Any]
    taken: int = 0


class World:
    """The ranks that run side by side."""

    def __init__(self, ranks: int) -> None:
        self.ranks = ranks
        self._meetings: dict[tuple[Any, ...], Meeting] = {}
        self._count: dict[tuple[Any, ...], int] = {}

    def exchange(self, s: Session, kind: str, ranks: tuple[int, ...], value: Any) -> list[Any]:
        """What all of these ranks give at their n-th meeting, in their order. Waits for them."""
        mine = (s.rank, s.core, ranks)
        number = self._count[mine] = self._count.get(mine, 0) + 1
        meeting = self._meetings.setdefault((s.core, ranks, number), Meeting(kind, {}))
        if meeting.kind != kind:
            raise refuse(f"rank {s.rank} calls {kind} where rank {next(iter(meeting.given))} calls {meeting.kind}; "
                         f"expected the same of ranks {list(ranks)}")
        meeting.given[s.rank] = value
        s.team.wait(lambda: len(meeting.given) == len(ranks), f"{kind} of ranks {list(ranks)}")
        meeting.taken += 1
        if meeting.taken == len(ranks):
            del self._meetings[s.core, ranks, number]
        return [meeting.given[rank] for rank in ranks]


@dataclass(frozen=True)
class Group:
    """The groups of a collective, and the one that the running rank is in."""

    groups: tuple[tuple[int, ...], ...]
    ranks: tuple[int, ...]
    place: int  # of the running rank in it; -1: in none

    @property
    def member(self) -> bool:
        return self.place >= 0

    def exchange(self, kind: str, values: list[Any]) -> list[list[Any]]:
        """Of each value, what all ranks have."""
        s = session()
        if s.world is None:
            return [[v] * len(self.ranks) for v in values]
        if not self.member:
            raise refuse(f"{kind} on rank {s.rank}, which is in none of the groups {[list(g) for g in self.groups]}")
        return [list(each) for each in zip(*s.world.exchange(s, kind, self.ranks, values), strict=True)]

    def ring(self) -> tuple[tuple[int, int], ...]:
        """Each rank and the next one, of all groups."""
        return tuple((g[k], g[(k + 1) % len(g)]) for g in self.groups for k in range(len(g)))


def group_of(given: Any) -> Group:
    """Of a ReplicaGroup, or of lists of ranks. A kernel that runs alone is the first rank of the first group."""
    s = session()
    lists = getattr(given, "replica_groups", given)
    try:
        groups = tuple(tuple(int(rank) for rank in g) for g in lists)
    except (TypeError, ValueError):
        raise refuse(f"{given!r} as a replica group; expected lists of ranks, [[0, 1], [2, 3]]") from None
    ranks = [rank for g in groups for rank in g]
    if not groups or not all(groups) or len(set(ranks)) < len(ranks) or min(ranks) < 0:
        raise refuse(f"groups {[list(g) for g in groups]}; expected ranks from 0 on, each in one group alone")
    if s.world is None:
        return Group(groups, groups[0], 0)
    if max(ranks) >= s.world.ranks:
        raise refuse(f"rank {max(ranks)} of a group; the kernel runs on ranks 0 to {s.world.ranks - 1}")
    mine = next((g for g in groups if s.rank in g), ())
    return Group(groups, mine or groups[0], mine.index(s.rank) if mine else -1)


@dataclass
class RankedRun:
    """What a kernel gave on each rank, and did there."""

    results: list[Any]
    traces: list[Trace]

    def timing(self, machine: str = "", chip: str = "") -> Any:
        """How long it takes: of the rank that ends last. Its collectives wait for the other ranks."""
        from trellis.nki.timing import time_of_ranks

        return time_of_ranks(self.traces, chip, machine)


def on_ranks(
    kernel: "Kernel", arguments: Sequence[Any], *, compute: bool | None = None, chip: str | None = None
) -> RankedRun:
    """Runs the kernel once for each rank: `arguments` has each one's, by name as a dict, or by place as a tuple."""
    if not arguments:
        raise ValueError("on_ranks with no arguments; expected those of each rank")
    world, launches = World(len(arguments)), []
    for rank, each in enumerate(arguments):
        args, kwargs = ((), dict(each)) if isinstance(each, dict) else (tuple(each), {})
        launches.append(kernel.launched(args, kwargs, compute=compute, chip=chip, world=world, rank=rank))
    seats = [(launch, seat) for launch in launches for seat in launch.seats()]
    with launches[0].running():
        given = Team([seat for _, seat in seats]).run(lambda k: seats[k][0].body())
    results = []
    for launch in launches:
        first = next(k for k, (owner, _) in enumerate(seats) if owner is launch)
        with launch.running():
            results.append(launch.close(given[first]))
        kernel.keep(launch, results[-1])
    return RankedRun(results, [launch.session.trace for launch in launches])
