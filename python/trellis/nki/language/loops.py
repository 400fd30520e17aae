"""Loops, programs of a grid, and slices."""

import contextlib
from collections.abc import Callable, Iterator
from math import prod
from typing import Any

from trellis.nki.instructions.emit import emit
from trellis.nki.kernels.allocation import LoopPlaces
from trellis.nki.kernels.session import Session, active, refuse, session
from trellis.nki.language.functions import function
from trellis.nki.language.repeats import Repeated
from trellis.nki.tensors.indexing import DynSlice
from trellis.nki.tensors.registers import VirtualRegister, number

__all__ = [
    "ALL", "CoreCount", "ds", "dynamic_range", "fori_loop", "nc", "no_reorder", "num_programs", "program_id",
    "program_ndim", "spmd_dim", "spread_over", "while_loop",
]  # fmt: skip

LONG = (
    64  # instructions from which an iteration around loops is a region; a scheduler sees several shorter ones at once
)

ALL = ("sync", "scalar", "gpsimd", "vector", "tensor")


def _range(start: Any, stop: Any = None, step: Any = 1, **_: Any) -> range:
    if stop is None:
        start, stop = 0, start
    return range(number(start), number(stop), number(step))


def _loop(start: Any, stop: Any = None, step: Any = 1, **_: Any) -> Any:
    values = _range(start, stop, step)
    if not active():
        return values
    s = session()
    found: Any = Repeated(s, values) if Repeated.wanted(s, values) else values
    return _placing(s, found) if s.beta else found


class Index(int):
    """An index of a loop that does not begin at 0."""

    first: int

    @staticmethod
    def of(value: int, first: int) -> int:
        if first == 0:
            return value
        made = Index(value)
        made.first = first
        return made


def _placing(s: Session, values: Any) -> Iterator[Any]:
    """neuronxcc reads a loop's body once: what it counts up to compute addresses is counted once."""
    loop = LoopPlaces()
    around = s.loops[-1] if s.loops else None
    s.loops.append(loop)
    t = s.trace
    try:
        for value in values:
            first = len(t)
            yield Index.of(value, values[0])
            if loop.outer and len(t) - first >= LONG:
                t.begins[first] = t.turned = True
            loop.turn()
    finally:
        s.loops.remove(loop)
        if around is not None:
            around.outer = True


function("static_range")(_range)
for _name in ("affine_range", "sequential_range"):
    function(_name)(_loop)


@function("dynamic_range")
def dynamic_range(start: Any, stop: Any = None, step: Any = 1) -> Iterator[VirtualRegister]:
    """A loop whose bounds registers hold; here their values are known."""
    for i in _range(start, stop, step):
        emit("register_add", (), (), allowed=ALL, name="dynamic_range", attributes={"value": number(step)})
        yield VirtualRegister(i)


@function("fori_loop")
def fori_loop(lower: Any, upper: Any, body_fun: Callable[[VirtualRegister], Any], step: int = 1) -> None:
    for i in dynamic_range(lower, upper, step):
        if body_fun(i) is not None:
            raise refuse("the body of a fori_loop returned a value; expected none (nki.language.fori_loop)")


@function("while_loop")
def while_loop(init: Any, body_fun: Callable[[VirtualRegister], Any]) -> None:
    register = VirtualRegister(init)
    while register.value != 0:
        emit("register_add", (), (), allowed=ALL, name="while_loop", attributes={"value": 0})
        register = body_fun(VirtualRegister(register))
        if register is None:
            raise refuse("the body of a while_loop returned nothing; expected the register of its next condition "
                         "(nki.language.while_loop)")


@function("ds")
def ds(start: Any, size: Any) -> DynSlice:
    return DynSlice(start, number(size))


@function("program_id")
def program_id(axis: int = 0) -> int:
    program = session().program
    if axis >= len(program):
        raise refuse(f"program_id({axis}) of a grid of {len(program)} dimensions")
    return int(program[axis])


@function("num_programs")
def num_programs(axes: Any = 0) -> Any:
    grid = session().grid
    if axes is None:
        return prod(grid)
    return tuple(int(grid[a]) for a in axes) if isinstance(axes, (tuple, list)) else int(grid[axes])


@function("program_ndim")
def program_ndim() -> int:
    s = session()
    return 0 if s.grid == (1,) else len(s.grid)


@function("no_reorder")
@contextlib.contextmanager
def no_reorder() -> Iterator[None]:
    trace = session().trace
    first = len(trace)
    yield
    trace.no_reorder.append((first, len(trace)))


class CoreCount(int):
    """A dimension of a grid, and over how many cores it is spread: nl.spmd_dim(nl.nc(2), 2)."""

    cores: int = 1

    def __mul__(self, other: Any) -> "CoreCount":
        return spread_over(int(self) * int(other), max(self.cores, getattr(other, "cores", 1)))

    __rmul__ = __mul__


def spread_over(n: int, cores: int) -> CoreCount:
    made = CoreCount(n)
    made.cores = cores
    return made


def nc(n: int) -> CoreCount:
    return spread_over(n, n)


def spmd_dim(a: Any, b: Any) -> CoreCount:
    return spread_over(int(a) * int(b), max(getattr(a, "cores", 1), getattr(b, "cores", 1)))
