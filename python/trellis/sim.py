"""Prices on simulated machines: how long it takes, what bounds it, and how sure that is.

>>> from trellis import sim
>>> p = sim.price("all_reduce", "trn2.48xlarge", "64MiB", config="ring*2")
>>> p.config, p.bounds.most <= p.time <= p.interval.high
('ring dims=64 channels=2', True)
>>> p.links.busy.max() <= 1.0
np.True_
"""

import os
import pathlib
import sys
from collections.abc import Iterable
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from trellis import _native
from trellis.machine import Figure, Level, Machine, chip_figures, chips, machines
from trellis.operations import OperationTime, operation_kinds, operation_time
from trellis.schedule import Schedule
from trellis.sizes import Size, in_bytes
from trellis.step import StepPrice, price_step

__all__ = [
    "Bounds", "Figure", "Interval", "Leg", "Level", "Links", "Machine", "OperationTime", "Played", "Price",
    "Sensitivity", "StepPrice", "Timeline", "chip_figures", "chips", "machines", "operation_kinds", "operation_time",
    "play", "price", "price_step", "sweep", "timeline",
]  # fmt: skip

_PS = 1e-12


@dataclass(frozen=True)
class Bounds:
    """Seconds that no schedule can beat, by what limits it."""

    latency: float
    bandwidth: float
    bisection: float
    memory: float

    @property
    def most(self) -> float:
        return max(self.latency, self.bandwidth, self.bisection, self.memory)


@dataclass(frozen=True)
class Sensitivity:
    """How one uncertain figure changes the time: the ends of its range, and the times there."""

    figure: str
    low_text: str
    high_text: str
    low: float
    high: float


@dataclass(frozen=True)
class Interval:
    low: float
    high: float
    sensitivities: list[Sensitivity]


@dataclass(frozen=True)
class Leg:
    """A stretch of the critical path."""

    kind: str  # launch, software, moving, latency
    time: float
    source: int
    target: int  # -1: local
    resource: str


@dataclass(frozen=True)
class Links:
    """What was used, a row each: links, memory, DMA engines. Of a folded run, those of the simulated ranks."""

    names: list[str]
    bytes: npt.NDArray[np.float64]
    rate: npt.NDArray[np.float64]  # bytes a second
    busy: npt.NDArray[np.float64]  # part of the time


@dataclass(frozen=True)
class Price:
    """Times are in seconds, rates in bytes a second.

    `interval` is the time at both ends of the ranges of uncertain figures. It is None where the price was asked for
    with ``interval=False``, and only there.
    """

    config: str
    time: float
    bytes: float
    algbw: float
    busbw: float
    bounds: Bounds
    busiest: str
    busiest_share: float
    path: list[Leg] = field(repr=False)
    path_words: str = field(repr=False)
    links: Links = field(repr=False)
    interval: Interval | None
    simulated: int
    transfers: int
    exact: bool


@dataclass(frozen=True)
class Timeline:
    """What ran where and when: span i is `labels[i]`, in row `row[i]`, from `start[i]` to `end[i]` seconds."""

    rows: list[tuple[str, str]]
    labels: list[str]
    row: npt.NDArray[np.int64]
    start: npt.NDArray[np.float64]
    end: npt.NDArray[np.float64]


@dataclass(frozen=True)
class Played:
    """A workload's time. Cells are sets of ranks that do the same: compute, comm, exposed and idle seconds of each."""

    time: float
    exposed: float
    parts: list[tuple[str, str, float, float, str]]  # name, stream, start, end, algorithm
    cells: list[tuple[list[int], float, float, float, float]]
    path: list[str]


def _machine(machine: str | os.PathLike[str] | Machine) -> Machine:
    return machine if isinstance(machine, Machine) else Machine(machine)


def price(
    what: str | Schedule,
    machine: str | os.PathLike[str] | Machine,
    size: Size = "1MiB",
    *,
    config: str = "",
    ranks: int = 0,
    root: int = 0,
    element: float = 4,
    era: str = "",
    fold: bool = True,
    in_place: bool = False,
    interval: bool = True,
    explain: bool = True,
) -> Price:
    """Prices a collective or a schedule. `size` is of the larger buffer; without a `config`, the fastest is found.

    A schedule has its own config, ranks, root and place: none of these can be given with one. One that `verify` refutes
    has no price: ValueError, with the fault.
    """
    if isinstance(what, Schedule):
        what._expect_proved("the price")
    schedule = what._native if isinstance(what, Schedule) else None
    given = {"config": config, "ranks": ranks, "root": root, "in_place": in_place}
    ignored = [f"{name}={value!r}" for name, value in given.items() if value]
    if schedule and ignored:
        raise ValueError(f"{', '.join(ignored)} with a schedule, which has its own")
    raw = _native.price(
        _machine(machine)._spec, schedule, "" if isinstance(what, Schedule) else what, float(in_bytes(size)), config,
        ranks, root, element, era, fold, in_place, interval, explain,
    )  # fmt: skip
    return _price(raw)


def _price(raw: dict[str, Any]) -> Price:
    between = None
    if "interval_ps" in raw:
        low, high = raw["interval_ps"]
        sensitivities = [Sensitivity(name, a, b, x * _PS, y * _PS) for name, a, b, x, y in raw["sensitivities"]]
        between = Interval(low * _PS, high * _PS, sensitivities)
    same = ("config", "bytes", "algbw", "busbw", "path_words", "simulated", "transfers", "exact")
    return Price(
        **{name: raw[name] for name in same},
        time=raw["time_ps"] * _PS,
        bounds=Bounds(*(t * _PS for t in raw["bounds_ps"])),
        busiest=raw["busiest"][0],
        busiest_share=raw["busiest"][1],
        path=[Leg(kind, time * _PS, a, b, resource) for kind, time, a, b, resource in raw["path"]],
        links=Links(*raw["links"]),
        interval=between,
    )


def timeline(schedule: Schedule, machine: str | os.PathLike[str] | Machine, size: Size = "1MiB") -> Timeline:
    """What ran where and when.

    >>> from trellis import schedule
    >>> t = timeline(schedule.algorithm("ring", "all_reduce", 16), "trn2.48xlarge")
    >>> len(t.labels) == len(t.start) and bool((t.end >= t.start).all())
    True
    """
    schedule._expect_proved("the timeline")
    raw = _native.timeline(_machine(machine)._spec, schedule._native, float(in_bytes(size)))
    return Timeline(raw["rows"], raw["labels"], raw["row"], raw["start_ps"] * _PS, raw["end_ps"] * _PS)


def play(
    workload: str | pathlib.Path,
    machine: str | os.PathLike[str] | Machine,
    *,
    algorithm: str = "",
    era: str = "",
    flops: float = 0,
    memory: float = 0,
    within: float = 0,
    most_effort: int = 0,
) -> Played:
    """Plays a workload, in the text form of `trellis sim`: a file, or the text itself. An algorithm may take longer
    than the fastest by the part `within` of the time; `most_effort` limits what is tried to find it. 0: the usual.

    >>> play("ranks 16\\ncompute forward 1ms\\nall_reduce sums 64MB after forward", "trn2.48xlarge").time > 1e-3
    True
    """
    name, text = "workload", str(workload)
    if not text.strip():
        raise ValueError(f"workload {text!r}: expected the name of a file, or lines as `trellis sim` reads them")
    if isinstance(workload, pathlib.Path) or "\n" not in text:
        name, text = pathlib.Path(workload).name, pathlib.Path(workload).read_text()
    raw = _native.play(_machine(machine)._spec, name, text, algorithm, era, flops, memory, within, most_effort)
    parts = [(part, stream, a * _PS, b * _PS, config) for part, stream, a, b, config in raw["parts"]]
    cells = [(ranks, *(t * _PS for t in times)) for ranks, *times in raw["cells"]]
    return Played(
        raw["time_ps"] * _PS, raw["exposed_ps"] * _PS, parts, cells, [parts[index][0] for index in raw["path"]]
    )


Question = dict[str, Any]


def _answer(question: Question) -> Price:
    return price(**question)


def sweep(questions: Iterable[Question], executor: Executor | None = None, progress: bool = False) -> list[Price]:
    """Prices many questions, each the arguments of `price`, at once; the answers come in their order.

    Without an executor, processes of this machine share the work. Any executor of concurrent.futures will do:
    Dask's client.get_executor(), mpi4py.futures.MPIPoolExecutor. An error says which question it is of.

    >>> sizes = ["64KiB", "1MiB"]
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> ask = [{"what": "all_reduce", "machine": "trn2.48xlarge", "size": s, "interval": False} for s in sizes]
    >>> a, b = sweep(ask, ThreadPoolExecutor(2))
    >>> a.time < b.time
    True
    """
    asked = list(questions)
    own = ProcessPoolExecutor() if executor is None else None
    try:
        futures = [(own or executor).submit(_answer, question) for question in asked]  # type: ignore[union-attr]
        if progress:
            _show(futures)
        return [_answered(future, number, asked[number]) for number, future in enumerate(futures)]
    finally:
        if own:
            own.shutdown(cancel_futures=True)


def _answered(future: Any, number: int, question: Question) -> Price:
    try:
        return future.result()  # type: ignore[no-any-return]
    except (TypeError, ValueError) as error:
        kind = ValueError if isinstance(error, ValueError) else TypeError
        raise kind(f"question {number}, {question}: {error}") from error
    except Exception as error:
        error.add_note(f"question {number}, {question}")
        raise


def _show(futures: list[Any]) -> None:
    """A line that grows on stderr. Futures of other libraries are waited for in their order."""
    try:
        ended = as_completed(futures)
        for done, _ in enumerate(ended, 1):
            _bar(done, len(futures))
    except (AttributeError, TypeError):
        for done, future in enumerate(futures, 1):
            with suppress(Exception):  # told with its question
                future.result()
            _bar(done, len(futures))
    sys.stderr.write("\n")


def _bar(done: int, of: int) -> None:
    filled = 40 * done // of
    sys.stderr.write(f"\r[{'#' * filled}{' ' * (40 - filled)}] {done}/{of}")
    sys.stderr.flush()


def __dir__() -> list[str]:
    return __all__
