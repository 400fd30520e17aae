"""Records a job: runs its ranks, and puts what they did together."""

from typing import Any

from trellis.simulate.record import Family, JobRecord, RankRecord
from trellis.simulate.record.steps import of_json
from trellis.simulate.ranks.classes import classes, first_ranks, missing_mates
from trellis.simulate.ranks.coordinator import Coordinator, RankFailed, TooShort
from trellis.simulate.ranks.families import joined
from trellis.simulate.ranks.nursery import Forked, Nursery
from trellis.simulate.world.settings import Settings

__all__ = ["record_job"]


def _families(world: int, told: dict[int, Any]) -> tuple[list[Family], list[str]]:
    def of(one: Any) -> list[Family]:
        return [Family(name, tuple(tuple(g) for g in groups)) for name, groups in one["families"]]

    return joined(world, {rank: (of(one), dict(one["partial"])) for rank, one in told.items()})


def _nothing_ran(rank: int, device: str) -> str:
    if device == "cpu":
        return f"rank {rank} computed nothing in its step: expected a step with operators"
    name = "neuron or cuda" if device == "any" else device
    return (
        f"rank {rank} computed nothing on device {name} in its step: expected a job that puts its model there; one "
        "that computes on the host is recorded with --device cpu"
    )


def record_job(command: list[str], world: int, local_world: int, device: str, step: int, memory: int,
               routing: str = "") -> JobRecord:  # fmt: skip
    """Raises RankFailed with what a rank said. Where no step is asked for and the job has too few for one that is like
    those after it, it runs again, and its last is recorded."""
    try:
        return _recorded(command, world, local_world, device, step, memory, routing)
    except TooShort as error:
        if step or not error.updates:
            raise
        job = _recorded(command, world, local_world, device, error.updates, memory, routing)
        job.assumptions.append(f"the job makes {error.updates} updates: its step {error.updates} is recorded, in which "
                               "caches are filled and buckets arranged")  # fmt: skip
        return job


def _recorded(command: list[str], world: int, local_world: int, device: str, step: int, memory: int,
              routing: str) -> JobRecord:  # fmt: skip
    nursery = Nursery()

    def start(rank: int, address: str, key: bytes) -> Forked:
        return nursery.start(
            Settings(rank, world, local_world, device, step, memory, command, routing, address, key.hex()).line()
        )

    coordinator = Coordinator(start)
    try:
        told = coordinator.run(first_ranks(world))
        records: dict[int, RankRecord] = {}
        while True:
            records = {rank: of_json(one["record"]) for rank, one in sorted(told.items())}
            families, assumed_groups = _families(world, told)
            missing = missing_mates(world, families, records)
            if not missing:
                break
            told = coordinator.run(missing)
    finally:
        coordinator.close()
        nursery.close()
    for rank, record in records.items():
        if not any(event[0] == "op" for event in record.events):
            raise RankFailed(_nothing_ran(rank, device))
    grouped, assumed = classes(world, families, records)
    told_of = {line for record in records.values() for line in record.assumptions}
    return JobRecord(world, told[0]["torch"], device, command, families, grouped,
                     sorted(told_of) + assumed_groups + assumed)  # fmt: skip
