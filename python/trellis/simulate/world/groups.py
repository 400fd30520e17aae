"""Groups of ranks, in families: those that were made together, as along an axis of a mesh."""

from collections.abc import Sequence
from typing import Any

from trellis.simulate.record import Family

__all__ = ["Groups"]


class Groups:
    """Every rank makes all groups, its own and others', in the same order: so families have the same numbers. Of those
    that members make alone each rank knows its own, and as many."""

    def __init__(self, rank: int, world: int) -> None:
        self.rank = rank
        self.world = world
        self._families: list[tuple[str, list[tuple[int, ...]]]] = [("world", [tuple(range(world))])]
        self._by_name: dict[str, tuple[int, tuple[int, ...]]] = {}
        self._counts: dict[str, int] = {}
        self.backends: dict[str, str] = {}
        self._open = False
        self._said = ""
        self._taken: set[int] = set()  # ranks of the last family
        self.partial: dict[int, int] = {}  # families that members make alone: of which family they are parts, -1: none
        self._axes: dict[str, None] = {}  # of meshes, that are the whole world

    def default(self, name: str) -> None:
        self._by_name[name] = (0, self._families[0][1][0])

    def made(self, ranks: Sequence[int], description: str | None, name: str | None,
             within: int | None = None) -> None:  # fmt: skip
        """`name`: torch's, None where this rank is no member. `within`: the family of the group whose members alone
        make it, -1 if it is their own."""
        members = tuple(ranks)
        said = (description or "group").removeprefix("mesh_")
        groups = self._families[-1][1]
        last = self._open and self._said == said and len(groups[0]) == len(members) and not self._taken & set(members)
        if not last or within != self.partial.get(len(self._families) - 1):
            again = self._counts.get(said, 0)
            self._counts[said] = again + 1
            self._families.append((f"{said}.{again}" if again else said, []))
            self._open, self._said = True, said
            self._taken.clear()
            if within is not None:
                self.partial[len(self._families) - 1] = within
        self._families[-1][1].append(members)
        self._taken.update(members)
        if name is not None:
            self._by_name[name] = (len(self._families) - 1, members)

    def of(self, name: str) -> tuple[int, tuple[int, ...]]:
        """(its family, its members)"""
        return self._by_name[name]

    def axis(self, name: str, size: int) -> None:
        """An axis of a mesh. One that is the whole world has its group, and is a family by another name."""
        if size == self.world > 1:
            self._axes[name] = None

    def families(self) -> list[Family]:
        told = [Family(label, tuple(sorted(groups))) for label, groups in self._families]
        names = {family.name for family in told}
        return told + [Family(name, told[0].groups) for name in self._axes if name not in names]


def name_of(group: Any) -> str:
    return str(getattr(group, "group_name", group))
