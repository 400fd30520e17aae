"""A job: classes of ranks that do the same, and the groups among which they communicate."""

import json
import pathlib
import zlib
from dataclasses import dataclass, field
from typing import Any

from trellis.simulate.record.steps import RankRecord, as_json, of_json

__all__ = ["Family", "JobRecord", "RankClass", "read", "write"]

VERSION = 1
_HEAD = b"trellis simulated job "


@dataclass(frozen=True)
class Family:
    """Groups that were made together, as along an axis of a mesh: each does the same by itself."""

    name: str
    groups: tuple[tuple[int, ...], ...]

    @property
    def size(self) -> int:
        return len(self.groups[0])

    def of(self, rank: int) -> tuple[int, ...] | None:
        """The group that the rank is in."""
        return next((group for group in self.groups if rank in group), None)


@dataclass
class RankClass:
    ranks: list[int]  # ascending
    recorded: list[int]  # those that ran; all have the same hash
    record: RankRecord


@dataclass
class JobRecord:
    world: int
    torch: str
    device: str
    command: list[str]
    families: list[Family]
    classes: list[RankClass]
    assumptions: list[str] = field(default_factory=list)

    def class_of(self, rank: int) -> int:
        return next(i for i, one in enumerate(self.classes) if rank in one.ranks)


def _told(job: JobRecord) -> dict[str, Any]:
    return {
        "world": job.world,
        "torch": job.torch,
        "device": job.device,
        "command": job.command,
        "families": [[family.name, family.groups] for family in job.families],
        "classes": [
            {"ranks": one.ranks, "recorded": one.recorded, "hash": one.record.hash(), "record": as_json(one.record)}
            for one in job.classes
        ],
        "assumptions": job.assumptions,
    }


def write(job: JobRecord, path: str | pathlib.Path) -> None:
    """The same job gives the same bytes."""
    text = json.dumps(_told(job), sort_keys=True, separators=(",", ":")).encode()
    pathlib.Path(path).write_bytes(_HEAD + b"%d\n" % VERSION + zlib.compress(text, 9))


def read(path: str | pathlib.Path) -> JobRecord:
    data = pathlib.Path(path).read_bytes()
    head, _, packed = data.partition(b"\n")
    if not head.startswith(_HEAD):
        raise ValueError(f"{path} is no record of a simulated job: expected a first line '{_HEAD.decode()}{VERSION}'")
    if head != _HEAD + b"%d" % VERSION:
        raise ValueError(
            f"{path} is of version {head[len(_HEAD) :].decode()!r}: expected {VERSION}; record the job again"
        )
    try:
        told = json.loads(zlib.decompress(packed))
        families = [Family(name, tuple(tuple(g) for g in groups)) for name, groups in told["families"]]
        classes = [RankClass(c["ranks"], c["recorded"], of_json(c["record"])) for c in told["classes"]]
        return JobRecord(told["world"], told["torch"], told["device"], told["command"], families, classes,
                         told["assumptions"])  # fmt: skip
    except (zlib.error, json.JSONDecodeError, KeyError, TypeError, IndexError) as error:
        raise ValueError(f"{path} is damaged: {type(error).__name__} {error}") from None
