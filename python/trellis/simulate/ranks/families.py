"""Families of groups, of what the ranks that ran know of them: some groups are made by their members alone."""

from collections.abc import Mapping, Sequence

from trellis.simulate.match import Mismatch
from trellis.simulate.record import Family

__all__ = ["joined"]

Groups = Sequence[tuple[int, ...]]
Known = tuple[list[Family], dict[int, int]]  # a rank's families, and those that others do not make: as Groups.partial


def joined(world: int, known: Mapping[int, Known]) -> tuple[list[Family], list[str]]:
    """(the families of the job, what was assumed for them). Raises Mismatch where ranks do not make the same."""
    first, *others = sorted(known)
    families, partial = known[first]
    for rank in others:
        if _kinds(known[rank]) != _kinds(known[first]):
            raise Mismatch(f"ranks {first} and {rank} do not make the same groups ({_words(known[first])}; "
                           f"{_words(known[rank])}): expected as many of the same sizes in the same order")  # fmt: skip
    whole, assumed = list(families), []
    for which, parent in sorted(partial.items()):
        name = families[which].name
        told = sorted({group for own, _ in known.values() for group in own[which].groups})
        if parent < 0 and _of_all([known[rank][0][which] for rank in known], list(known)):
            whole[which] = Family(name, tuple(told))
            continue
        groups = _spread(world, told) if parent < 0 else _split(told, whole[parent].groups, list(known))
        if not groups:
            raise Mismatch(f"groups {name} are made by their members alone, and {', '.join(map(str, told))} do not "
                           f"tell which the others of {world} ranks are: make all groups on all ranks")  # fmt: skip
        whole[which] = Family(name, tuple(sorted(groups)))
        if len(groups) > len(told):
            assumed.append(f"groups {name} are made by their members alone: those of ranks that did not run are taken "
                           f"to be like {', '.join(map(str, told))}")  # fmt: skip
    return whole, assumed


def _kinds(known: Known) -> tuple[list[tuple[str, int]], dict[int, int]]:
    return [(family.name, family.size) for family in known[0]], known[1]


def _words(known: Known) -> str:
    return ", ".join(f"{family.name} of {family.size}" for family in known[0])


def _of_all(told: Sequence[Family], ran: Sequence[int]) -> bool:
    """Whether all ranks make all groups after all: each knows the same, also those that it is no member of."""
    return all(set(one.groups) == set(told[0].groups) for one in told) and any(
        rank not in group for rank in ran for group in told[0].groups)  # fmt: skip


def _spread(world: int, told: Groups) -> list[tuple[int, ...]]:
    """With groups whose members are as far apart, so that each rank is in one. Empty: they do not fit."""
    apart = [rank - min(told[0]) for rank in told[0]]
    taken = {rank for group in told for rank in group}
    groups = list(told)
    for lowest in range(world):
        if lowest not in taken:
            groups.append(group := tuple(lowest + step for step in apart))
            taken.update(group)
    alike = all([rank - min(group) for rank in group] == apart for group in told)
    return groups if alike and taken == set(range(world)) and sum(map(len, groups)) == world else []


def _split(told: Groups, parents: Groups, ran: list[int]) -> list[tuple[int, ...]]:
    """With parts of the other parents, at the same places. Empty: known parents are not split alike."""
    places = {parent: [tuple(parent.index(rank) for rank in group) for group in told if set(group) <= set(parent)]
              for parent in parents}  # fmt: skip
    of_known = [places[parent] for parent in parents if set(parent) & set(ran)]
    if any(one != of_known[0] for one in of_known):
        return []
    return [tuple(parent[place] for place in part) for parent in parents for part in of_known[0]]
