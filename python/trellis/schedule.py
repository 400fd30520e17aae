"""Schedules: who sends what to whom, proved, drawn, and run on numpy arrays.

An all_reduce by ring, in the words of a whole machine. ``b[rank, chunk]`` is a chunk of the data; ``=`` copies it and
``+=`` adds to it, from wherever it is:

>>> from trellis import schedule
>>> n = 4
>>> b = schedule.Builder("all_reduce", ranks=n, pieces=n)
>>> for step in range(n - 1):
...     b.round()
...     for r in range(n):
...         b[(r + 1) % n, (r - step) % n] += b[r, (r - step) % n]
>>> for step in range(n - 1):
...     b.round()
...     for r in range(n):
...         b[(r + 1) % n, (r + 1 - step) % n] = b[r, (r + 1 - step) % n]
>>> ring = b.finish("my ring")
>>> ring.verify().ok
True
>>> import numpy as np
>>> [float(out[0]) for out in ring.run([np.full(8, r, np.float32) for r in range(n)])]
[6.0, 6.0, 6.0, 6.0]
"""

import pathlib
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from trellis import _native
from trellis._where import PROGRAM

__all__ = ["Builder", "Proof", "Schedule", "algorithm", "algorithms", "collectives", "read"]

_DTYPES = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16",
    "int8": "i8", "uint8": "u8", "int16": "i16", "uint16": "u16",
    "int32": "i32", "uint32": "u32", "int64": "i64", "uint64": "u64",
}  # fmt: skip


@dataclass(frozen=True)
class Proof:
    """What the verifier found."""

    ok: bool
    text: str
    steps: int
    transfers: int
    same_bits_everywhere: bool

    def __bool__(self) -> bool:
        return self.ok


class Schedule:
    """A schedule: every rank's steps over chunks. Has no bytes and no clock."""

    def __init__(self, native: _native.Schedule) -> None:
        self._native = native
        self._proof: Proof | None = None

    @property
    def collective(self) -> str:
        return self._native.collective

    @property
    def ranks(self) -> int:
        return self._native.ranks

    @property
    def steps(self) -> int:
        """Of all ranks."""
        return self._native.steps

    @property
    def name(self) -> str:
        return self._native.algorithm

    @property
    def channels(self) -> int:
        return self._native.channels

    @property
    def text(self) -> str:
        """The form that `trellis schedule show` prints and `read` reads."""
        return self._native.text()

    def program(self, rank: int) -> list[dict[str, Any]]:
        """One rank's steps.

        >>> [step["op"] for step in algorithm("ring", "all_gather", 2).program(0)]
        ['send', 'recv', 'copy']
        """
        return self._native.program(rank)

    def verify(self) -> Proof:
        """Proves that it does its collective, for all data, sizes and timings; or says what is wrong."""
        if self._proof is None:
            self._proof = Proof(*self._native.verify())
        return self._proof

    def _expect_proved(self, what: str) -> None:
        """A time for something else than the collective would mislead."""
        proof = self.verify()
        if not proof:
            raise ValueError(f"{what} of schedule {self.name!r}, which does not do its {self.collective}: {proof.text}")

    def msccl_xml(self) -> str:
        """The schedule as MSCCL's XML."""
        return self._native.msccl_xml()

    def save(self, path: str | pathlib.Path) -> None:
        """Writes the text form, or MSCCL's XML where the name ends in .xml."""
        path = pathlib.Path(path)
        path.write_text(self.msccl_xml() if path.suffix == ".xml" else self.text)

    def draw(self) -> str:
        """A picture as SVG: ranks, and the transfers between them over time."""
        with tempfile.TemporaryDirectory() as folder:
            source, picture = pathlib.Path(folder, "schedule.txt"), pathlib.Path(folder, "schedule.svg")
            self.save(source)
            done = subprocess.run(
                [PROGRAM, "schedule", "draw", str(source), "-o", str(picture)], capture_output=True, text=True
            )
            if done.returncode != 0:
                raise ValueError(f"trellis schedule draw: {done.stderr.strip()}")
            return picture.read_text()

    def _repr_svg_(self) -> str | None:
        return self.draw() if self.ranks <= 64 else None

    def __repr__(self) -> str:
        return f"<schedule {self.name!r}: {self.collective} of {self.ranks} ranks, {self.steps} steps>"

    def __getstate__(self) -> str:
        return self.text

    def __setstate__(self, text: str) -> None:
        self.__init__(_native.parse_schedule(text))  # type: ignore[misc]

    def run(
        self,
        inputs: Sequence[npt.ArrayLike],
        op: str = "sum",
        dtype: str | None = None,
        timeout: float = 30.0,
        counts: Sequence[Any] | None = None,
    ) -> list[npt.NDArray[Any]]:
        """Runs it for real, every rank a thread, and returns each rank's output.

        `inputs` has one array for each rank, as the collective takes them (of `scatter` and `broadcast`, only the
        root's counts). They are of one size but for all_gather_v and all_to_all_v. `counts` says how many elements each
        rank gets of reduce_scatter_v, and of all_to_all_v, for each rank, how many it sends to each. `dtype` names a
        type that numpy lacks: "bf16" for arrays of uint16, "f8e4m3fn" and "f8e5m2" for uint8. The arrays must have its
        size, and arrays of floats are of their own type.

        >>> blocks = [np.arange(n, dtype=np.float32) for n in (1, 3)]
        >>> [list(map(int, out)) for out in algorithm("ring", "all_gather_v", 2).run(blocks)]
        [[0, 0, 1, 2], [0, 0, 1, 2]]
        """
        arrays = [np.ascontiguousarray(array) for array in inputs]
        if len(arrays) != self.ranks:
            raise ValueError(f"{len(arrays)} arrays, expected {self.ranks}: one for each rank")
        types = {array.dtype for array in arrays}
        if len(types) != 1:
            raise ValueError(f"arrays of types {types}: expected one type")
        kind = types.pop()
        name = _type_of(kind, dtype)
        sizes = self._sizes([array.size for array in arrays], counts)
        outputs = [np.zeros(size, kind) for size in sizes.outputs]
        _native.run_schedule(
            self._native, arrays, outputs, sizes.count, name, op, timeout, sizes.counts, sizes.arriving
        )
        return outputs

    def _sizes(self, inputs: list[int], counts: Sequence[Any] | None) -> "_Sizes":
        n, given = self.ranks, [] if counts is None else list(counts)
        if (counts is not None) != (self.collective in ("reduce_scatter_v", "all_to_all_v")):
            raise ValueError(f"{self.collective} {'needs' if counts is None else 'takes no'} counts")
        if self.collective == "all_gather_v":
            return _Sizes(0, [sum(inputs)] * n, [inputs] * n)
        if self.collective == "all_to_all_v":
            table = [[int(count) for count in row] for row in given]
            if [len(row) for row in table] != [n] * n or [sum(row) for row in table] != inputs:
                raise ValueError(f"counts {table}: expected {n} rows of {n}, with sums {inputs}, the arrays' sizes")
            arriving = [[row[r] for row in table] for r in range(n)]
            return _Sizes(0, [sum(row) for row in arriving], table, arriving)
        if len(set(inputs)) != 1:
            raise ValueError(f"arrays of sizes {sorted(set(inputs))}: expected one size")
        size = inputs[0]
        if self.collective == "reduce_scatter_v":
            each = [int(count) for count in given]
            if len(each) != n or sum(each) != size:
                raise ValueError(f"counts {each}: expected {n}, with the sum {size}, the arrays' size")
            return _Sizes(0, each, [each] * n)
        if self.collective in ("all_gather", "gather"):
            return _Sizes(size, [size * n] * n)
        if self.collective not in ("reduce_scatter", "scatter", "all_to_all"):
            return _Sizes(size, [size] * n)
        if size % n != 0:
            raise ValueError(f"{size} elements of {self.collective}: expected a multiple of {n} ranks")
        return _Sizes(size // n, [size if self.collective == "all_to_all" else size // n] * n)


def _type_of(kind: np.dtype[Any], asked: str | None) -> str:
    """The library's type for arrays of numpy's."""
    own = _DTYPES.get(kind.name) if kind.isnative else None
    name = asked or own
    if name is None:
        raise ValueError(f"arrays of {kind}: expected one of {', '.join(_DTYPES)}, in this machine's order of bytes")
    size = _native.element_bytes(name)
    if size != kind.itemsize:
        raise ValueError(f"arrays of {kind} ({kind.itemsize} bytes an element) as {name} ({size} bytes)")
    if kind.kind == "f" and name not in (own, "tf32"):
        raise ValueError(f"arrays of {kind} as {name}: expected its bits, as arrays of uint{8 * size}")
    return name


@dataclass(frozen=True)
class _Sizes:
    """Of a call: its count, each rank's output, and where blocks have sizes of their own, each rank's counts."""

    count: int
    outputs: list[int]
    counts: list[list[int]] = field(default_factory=list)
    arriving: list[list[int]] = field(default_factory=list)


class _Chunks:
    """A region of every rank's memory, by rank and chunk."""

    def __init__(self, builder: "Builder", region: _native.Region) -> None:
        self._builder, self._region = builder, region

    def _place(self, key: tuple[int, int | slice]) -> "_Place":
        rank, chunk = key
        if isinstance(chunk, slice):
            if chunk.start is None or chunk.stop is None or chunk.step is not None:
                raise ValueError("chunks are one number, or first:end")
            first, count = chunk.start, chunk.stop - chunk.start
        else:
            first, count = chunk, 1
        return _Place(self._builder, _native.Place(rank, self._region, first, count))

    def __getitem__(self, key: tuple[int, int | slice]) -> "_Place":
        return self._place(key)

    def __setitem__(self, key: tuple[int, int | slice], source: "_Place") -> None:
        target = self._place(key)
        if not (isinstance(source, _Summed) and source.is_at(target)):
            self._builder.copy(source, target)


class _Place:
    def __init__(self, builder: "Builder", native: _native.Place) -> None:
        self._builder, self._native = builder, native

    def __iadd__(self, source: "_Place") -> "_Place":
        self._builder.reduce(source, self)
        return _Summed(self._builder, self._native)

    def is_at(self, other: "_Place") -> bool:
        mine, its = self._native, other._native
        return (mine.rank, mine.region, mine.first, mine.count) == (its.rank, its.region, its.first, its.count)


class _Summed(_Place):
    """What `+=` leaves. Python assigns it to the place where it is, which moves nothing."""


class Builder(_Chunks):
    """Moves between the places of a whole machine, in; every rank's program, with its order, out.

    Indexing it gives the data: the chunks of the larger buffer, wherever they are at the time. `input`, `output` and
    `scratch` are the buffers themselves. Moves happen as if one after the other; what need not wait does not.
    """

    def __init__(
        self,
        collective: str,
        ranks: int,
        pieces: int = 1,
        *,
        root: int = 0,
        peer: int = 0,
        in_place: bool = False,
        pairs: Sequence[tuple[int, int]] = (),
    ) -> None:
        self._moves = _native.Moves(collective, ranks, pieces, root, peer, in_place, list(pairs))
        self._channel = 0
        super().__init__(self, _native.Region.data)
        self.ranks = ranks
        self.input = _Chunks(self, _native.Region.input)
        self.output = _Chunks(self, _native.Region.output)
        self.scratch = _Chunks(self, _native.Region.scratch)

    def copy(self, source: _Place, target: _Place) -> None:
        self._moves.copy(source._native, target._native, self._channel)

    def reduce(self, source: _Place, target: _Place) -> None:
        """Adds the source to the target."""
        self._moves.reduce(source._native, target._native, self._channel)

    def round(self) -> None:
        """Moves from here on belong together; it decides how steps are listed, not when they run."""
        self._moves.round()

    @contextmanager
    def channel(self, number: int) -> Iterator[None]:
        """Transfers within it are independent of those of other channels."""
        before, self._channel = self._channel, number
        try:
            yield
        finally:
            self._channel = before

    def finish(self, name: str = "built") -> Schedule:
        return Schedule(self._moves.finish(name))


def algorithm(
    config: str,
    collective: str,
    ranks: int | Sequence[int],
    *,
    root: int = 0,
    peer: int = 0,
    in_place: bool = False,
    pairs: Sequence[tuple[int, int]] = (),
) -> Schedule:
    """A registered algorithm's schedule. `ranks` may be a shape, innermost first; a config has channels and segments.
    `pairs` are permute's: who sends to whom.

    >>> algorithm("torus*2", "all_reduce", (4, 4))
    <schedule 'torus': all_reduce of 16 ranks, 3072 steps>
    """
    dims = [ranks] if isinstance(ranks, int) else list(ranks)
    return Schedule(_native.make_schedule(config, collective, dims, root, peer, in_place, list(pairs)))


def read(source: str | pathlib.Path) -> Schedule:
    """From text or a file: ours, MSCCL's .xml, MSCCL++'s .json. Text of these two may be a single line."""
    text = str(source)
    if isinstance(source, pathlib.Path) or ("\n" not in text and not text.lstrip().startswith(("<", "{"))):
        path = pathlib.Path(source)
        text = path.read_text()
    if text.lstrip().startswith("<"):
        return Schedule(_native.parse_msccl(text))
    if text.lstrip().startswith("{"):
        return Schedule(_native.parse_mscclpp(text))
    return Schedule(_native.parse_schedule(text))


def algorithms() -> dict[str, dict[str, Any]]:
    """Every registered algorithm: what it is, and which collectives it serves."""
    return {
        name: {"summary": summary, "ranks": ranks, "serves": serves}
        for name, summary, ranks, serves in _native.algorithms()
    }


def collectives() -> list[str]:
    return _native.collectives()


def __dir__() -> list[str]:
    return __all__
