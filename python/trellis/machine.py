"""Simulated machines as objects: read, edited, copied, sent to other processes.

>>> m = Machine("trn2.48xlarge x 2")
>>> m.ranks, m.chips
(128, 32)
>>> slower = m.what_if("efa.rate=12GB/s")
>>> slower.figures["efa.rate"].value
12000000000.0
>>> m.figures["efa.rate"].value > 12e9
True
"""

import os
import pathlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trellis import _native

__all__ = ["Figure", "Level", "Machine", "chip_figures", "chips", "machines"]


@dataclass(frozen=True)
class Figure:
    """A named number of the hardware model, in base units: seconds, bytes, bytes a second, hertz, cycles."""

    value: float
    dimension: str
    mark: str  # documented, fitted, assumed
    low: float
    high: float
    source: str


@dataclass(frozen=True)
class Level:
    """How chips, or groups of them, are joined; the innermost level is the first."""

    kind: str
    name: str
    dims: tuple[int, ...]


def _figures(raw: dict[str, tuple[Any, ...]]) -> dict[str, Figure]:
    return {name: Figure(*values) for name, values in raw.items()}


class Machine:
    """A machine by name ("trn2.48xlarge"), several ("trn2.48xlarge x 4"), a shape ("torus:4x4/clos:16"), or a file.

    A file is Trellis's ("my.machine", "my.machine x 4"), ASTRA-sim's, SimGrid's, NCCL's or hwloc's. It is read once.
    Machines do not change: each edit gives a new one.
    """

    def __init__(
        self,
        name: str | os.PathLike[str],
        changes: Sequence[tuple[str, Any]] = (),
        file: tuple[str, str] | None = None,  # its path and text, where they are known
    ) -> None:
        self.base, self.changes = os.fspath(name), tuple(changes)
        path = None if file else _native.machine_file(self.base)
        self._file = (path, pathlib.Path(path).read_text()) if path else file
        self._spec = _native.machine_of_file(self.base, *self._file) if self._file else _native.machine_spec(self.base)
        for kind, change in self.changes:
            if kind == "what_if":
                self._spec.what_if(change)
            elif kind == "figure":
                self._spec.set_figure(*change)
            else:
                self._spec.set_dims(*change)
        self._facts = self._spec.facts()

    def what_if(self, change: str) -> "Machine":
        """ "efa.rate=12GB/s", "dead:0-1", "slow:0-1:0.5", "nic:12:0.5", "hbm:3:0.7", "straggler:5:0.8"."""
        return self._changed("what_if", change)

    def with_figure(self, name: str, value: str | float) -> "Machine":
        """A figure with another value: "12 GB/s", or a number in its base unit."""
        return self._changed("figure", (name, value))

    def with_dims(self, level: int, dims: Sequence[int]) -> "Machine":
        return self._changed("dims", (level, list(dims)))

    def _changed(self, kind: str, change: Any) -> "Machine":
        return Machine(self.base, (*self.changes, (kind, change)), self._file)

    @property
    def name(self) -> str:
        return self._spec.name

    @property
    def chip(self) -> str:
        return self._spec.chip

    @property
    def ranks(self) -> int:
        return int(self._facts["ranks"])

    @property
    def chips(self) -> int:
        return int(self._facts["chips"])

    @property
    def host_ranks(self) -> int:
        """Ranks of one host."""
        return int(self._facts["host_ranks"])

    @property
    def at_defects(self) -> dict[int, float]:
        """Ranks at parts that `what_if` made dead or slow, and how many times as long their engines take."""
        return dict(self._facts["at_defects"])

    @property
    def memory_at_defects(self) -> dict[int, float]:
        """Ranks whose HBM `what_if` made slower or faster, and how many times as long it takes."""
        return dict(self._facts["memory_at_defects"])

    @property
    def dims(self) -> tuple[int, ...]:
        return tuple(self._facts["dims"])

    @property
    def injection(self) -> float:
        """Bytes a second that one chip can send."""
        return float(self._facts["injection"])

    @property
    def bisection(self) -> float:
        """Bytes a second, one way, between the halves."""
        return float(self._facts["bisection"])

    @property
    def rank_memory(self) -> float:
        """Bytes of HBM that a rank has. ValueError: a machine without a chip."""
        return self._of_chip("rank_memory")

    @property
    def rank_flops(self) -> float:
        """A second, of a rank's Tensor engines in products of 16 bits. ValueError: a machine without a chip."""
        return self._of_chip("rank_flops")

    def _of_chip(self, fact: str) -> float:
        if fact not in self._facts:
            raise ValueError(f"{self.name} has no chip: expected one whose engines are known, as trn1.32xlarge")
        return float(self._facts[fact])

    @property
    def eras(self) -> list[str]:
        return list(self._facts["eras"])

    @property
    def levels(self) -> list[Level]:
        return [Level(kind, name, tuple(dims)) for kind, name, dims in self._spec.levels]

    @property
    def figures(self) -> dict[str, Figure]:
        return _figures(self._spec.figures)

    @property
    def digest(self) -> str:
        """Of figures and levels: results on machines with the same are results on the same machine."""
        return self._spec.digest

    @property
    def words(self) -> str:
        """As the program says it: trn2.48xlarge, what if slow:0-4:0.5."""
        told = self.base
        for kind, change in self.changes:
            if kind == "what_if":
                told += f", what if {change}"
            else:
                told += f", {kind} {change[0]}={change[1]}"
        return told

    def route(self, source: int, target: int) -> list[tuple[str, float, float]]:
        """The links from one rank to another: name, bytes a second, seconds of latency."""
        return [(name, rate, latency * 1e-12) for name, rate, latency in self._spec.route(source, target)]

    def __reduce__(self) -> tuple[Any, ...]:
        return Machine, (self.base, self.changes, self._file)

    def __repr__(self) -> str:
        edits = f" with {len(self.changes)} changes" if self.changes else ""
        return f"<machine {self.base!r}{edits}: {self.ranks} ranks>"


def machines() -> list[str]:
    return _native.machine_names()


def chips() -> list[str]:
    return _native.chip_names()


def chip_figures(name: str) -> dict[str, Figure]:
    return _figures(_native.chip_figures(name))


def __dir__() -> list[str]:
    return __all__
