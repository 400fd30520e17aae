"""Which ranks are run, and which are like them."""

from collections.abc import Iterable

from trellis.simulate.record import Family, RankClass, RankRecord

__all__ = ["classes", "first_ranks", "missing_mates"]


def first_ranks(world: int) -> list[int]:
    """The ends of the world: what makes ranks differ is likely to differ there."""
    return [0] if world == 1 else [0, world - 1]


def _messaging(families: list[Family], records: Iterable[RankRecord]) -> list[int]:
    """Families along which messages go: ranks at different places there do different things."""
    return sorted({e[3] for record in records for e in record.events if e[0] in ("send", "receive")})


def _place(rank: int, families: list[Family], along: list[int]) -> tuple[int, ...]:
    places = []
    for family in along:
        group = families[family].of(rank)
        places.append(group.index(rank) if group is not None else -1)
    return tuple(places)


def missing_mates(world: int, families: list[Family], records: dict[int, RankRecord]) -> list[int]:
    """Ranks that should run, too, so that each class has two that did and no two ends of a pipeline are guessed."""
    along = _messaging(families, records.values())
    ranks_at: dict[tuple[int, ...], list[int]] = {}
    for rank in range(world):
        ranks_at.setdefault(_place(rank, families, along), []).append(rank)
    wanted = []
    for ranks in ranks_at.values():
        done = [rank for rank in ranks if rank in records]
        differ = len({records[rank].hash() for rank in done}) > 1
        need = min(len(ranks), 3 if differ else 2)
        for rank in (ranks[-1], ranks[0], ranks[len(ranks) // 2]):
            if len(done) < need and rank not in done:
                done.append(rank)
                wanted.append(rank)
    return wanted


def classes(world: int, families: list[Family], records: dict[int, RankRecord]) -> tuple[list[RankClass], list[str]]:
    """(the classes, what was assumed for them). Ranks that did not run are like most of those at their place."""
    along = _messaging(families, records.values())
    by_hash: dict[str, RankClass] = {}
    hash_at: dict[tuple[int, ...], dict[str, int]] = {}
    for rank, record in sorted(records.items()):
        digest = record.hash()
        by_hash.setdefault(digest, RankClass([], [], record)).recorded.append(rank)
        votes = hash_at.setdefault(_place(rank, families, along), {})
        votes[digest] = votes.get(digest, 0) + (1 if rank else 0)  # rank 0 has no vote: it may do more, such as print
    assumed = []
    for rank in range(world):
        votes = hash_at[_place(rank, families, along)]
        digest = records[rank].hash() if rank in records else max(votes, key=lambda d: votes[d])
        by_hash[digest].ranks.append(rank)
    for votes in hash_at.values():
        if len(votes) > 1:
            several = [by_hash[d].recorded for d in votes]
            like = max((by_hash[d] for d in votes), key=lambda c: len(c.ranks)).recorded[0]
            assumed.append(f"ranks {several} at the same place do different things; the others are like rank {like}")
    for one in by_hash.values():
        if len(one.ranks) > 1 and len(one.recorded) == 1:
            assumed.append(f"ranks like rank {one.recorded[0]} were not checked by a second one")
    return sorted(by_hash.values(), key=lambda c: c.ranks[0]), assumed
