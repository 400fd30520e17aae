"""What a kernel did, as flat records: buffers, views of them, and instructions in the order of its text.

The front end appends, one call an instruction; whoever times or draws reads. Columns are plain lists, a view is stored
once and named by its index, so an instruction costs a microsecond.

>>> t = Trace("copy")
>>> x = t.add_buffer("x", "hbm", "f32", (128, 64), rows=1, row_bytes=128 * 64 * 4, role="input")
>>> y = t.add_buffer("y", "sbuf", "f32", (128, 64), rows=128, row_bytes=256)
>>> source = t.add_view(View(x, 0, 128, 0, ((64, 1),), 64, "f32"))
>>> target = t.add_view(View(y, 0, 128, 0, ((64, 1),), 0, "f32"))
>>> t.add("dma_copy", (target,), (source,), allowed=("sync", "scalar", "gpsimd"), name="dma_copy")
0
>>> t.instruction(0).inputs[0].pattern
((64, 1),)
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

__all__ = ["COLUMNS", "CollectiveCall", "ENGINES", "Fold", "Trace", "View"]

ENGINES = ("tensor", "vector", "scalar", "gpsimd", "sync")
# Besides operands.
COLUMNS = (
    "kind",
    "engine",
    "allowed",
    "attributes",
    "line",
    "names",
    "queue",
    "core",
    "partial",
    "begins",
)


@dataclass
class Buffer:
    """A piece of memory. On chip `rows` partitions of `row_bytes` each; in HBM one row with all its bytes.

    A tile that is declared in a loop is a new buffer in each iteration, and each block of a tile with block dimensions
    is one; those of one declaration share `site`.
    """

    index: int
    name: str
    space: str  # hbm, sbuf, psum
    dtype: str  # as Trellis names types: f32, bf16, f8e4m3
    shape: tuple[int, ...]
    rows: int
    row_bytes: int
    role: str = "internal"  # input, output, internal
    address: tuple[int, int] | None = None  # (partition, byte in it), where the kernel says so
    line: int = 0  # index into Trace.lines
    site: int = 0  # the declaration
    core: int = 0  # which core of a logical core owns it
    alive: bool = True  # False: its one writer was made to write elsewhere; nothing refers to it


class View(NamedTuple):
    """The elements that an operand touches: `rows` rows, in each up to four dimensions, outermost first.

    `offset` and strides count elements of `dtype`. On chip a row is a partition, and `offset` is within it. In HBM rows
    are `pitch` elements apart (0: one row, read repeatedly), and `offset` is from the buffer's start.
    """

    buffer: int
    first_row: int
    rows: int
    offset: int
    pattern: tuple[tuple[int, int], ...]  # (count, stride)
    pitch: int
    dtype: str

    @property
    def elements(self) -> int:
        """Of a row."""
        n = 1
        for count, _ in self.pattern:
            n *= count
        return n


class Fold(NamedTuple):
    """A loop of which only some iterations are recorded: `kept` of `rows` instructions each, one after the other from
    `first`. `missing` more would follow these."""

    first: int
    rows: int
    kept: int
    missing: int


class CollectiveCall(NamedTuple):
    """What it takes to price a collective: bytes of the larger buffer on each rank."""

    kind: str
    bytes: int
    groups: tuple[tuple[int, ...], ...]
    pairs: tuple[tuple[int, int], ...] = ()  # of a permutation: source, target


@dataclass(frozen=True, slots=True)
class Instruction:
    """One row of the trace's columns, with its views."""

    index: int
    kind: str  # as `trellis core list instructions` names it
    engine: str | None  # that the kernel asks for
    allowed: tuple[str, ...]  # the engines that can run it, the documented default first
    outputs: tuple[View, ...]
    inputs: tuple[View, ...]
    attributes: dict[str, Any]  # by the keys of sim/core: numbers, and words as sim/core spells them
    line: int  # index into Trace.lines
    name: str  # as the kernel calls it
    queue: str | None  # of a DMA: sync, scalar, gpsimd, where the kernel says so
    core: int


@dataclass
class Trace:
    """A kernel's records. The lists below `instructions` are its columns, all of one length."""

    name: str
    chip: str = "trn2"
    dialect: str = "0.7"  # beta1: neuronxcc's, whose compiler reorders; else the release whose rules hold
    lnc: int = 1
    grid: tuple[int, ...] = ()
    no_reorder: list[tuple[int, int]] = field(default_factory=list)  # instructions [first, last) in the text's order
    skip_middle_end: bool = False
    depends: list[tuple[int, int]] = field(default_factory=list)  # (later, earlier): it waits for the result
    after: list[tuple[int, int]] = field(default_factory=list)  # (later, earlier): only the order of their issue
    labels: dict[tuple[str, int], list[int]] = field(default_factory=dict)  # instructions by their name= and core
    collectives: dict[int, CollectiveCall] = field(default_factory=dict)  # by instruction
    folds: list[Fold] = field(default_factory=list)  # the inner ones first
    buffers: list[Buffer] = field(default_factory=list)
    views: list[View] = field(default_factory=list)
    lines: list[tuple[str, int, str]] = field(default_factory=lambda: [("", 0, "")])  # file, number, text; 0: unknown
    # The columns.
    kind: list[str] = field(default_factory=list)
    engine: list[str | None] = field(default_factory=list)
    allowed: list[tuple[str, ...]] = field(default_factory=list)
    outputs: list[tuple[int, ...]] = field(default_factory=list)  # indices into views
    inputs: list[tuple[int, ...]] = field(default_factory=list)
    attributes: list[dict[str, Any]] = field(default_factory=list)
    line: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    queue: list[str | None] = field(default_factory=list)
    core: list[int] = field(default_factory=list)
    partial: list[bool] = field(default_factory=list)  # it may write less than its outputs' views say
    # A region begins here: a long iteration of a loop around others, or what comes after it.
    begins: list[bool] = field(default_factory=list)
    turned: bool = False  # what is recorded next begins a region

    def __len__(self) -> int:
        return len(self.kind)

    def add_buffer(self, name: str, space: str, dtype: str, shape: tuple[int, ...], *, rows: int, row_bytes: int,
                   role: str = "internal", **more: Any) -> int:
        """The index of the new buffer. `more` are Buffer's other fields."""
        index = len(self.buffers)
        self.buffers.append(Buffer(index, name, space, dtype, shape, rows, row_bytes, role, **more))
        return index

    def add_view(self, view: View) -> int:
        self.views.append(view)
        return len(self.views) - 1

    def add(self, kind: str, outputs: tuple[int, ...], inputs: tuple[int, ...], *, allowed: tuple[str, ...],
            name: str, engine: str | None = None, attributes: dict[str, Any] | None = None, line: int = 0,
            queue: str | None = None, core: int = 0, partial: bool = False) -> int:
        """Appends an instruction; views are indices. Its index."""
        self.kind.append(kind)
        self.engine.append(engine)
        self.allowed.append(allowed)
        self.outputs.append(outputs)
        self.inputs.append(inputs)
        self.attributes.append(attributes or {})
        self.line.append(line)
        self.names.append(name)
        self.queue.append(queue)
        self.core.append(core)
        self.partial.append(partial)
        self.begins.append(self.turned)
        self.turned = False
        return len(self.kind) - 1

    def instruction(self, i: int) -> Instruction:
        view = self.views.__getitem__
        return Instruction(i, self.kind[i], self.engine[i], self.allowed[i], tuple(map(view, self.outputs[i])),
                           tuple(map(view, self.inputs[i])), self.attributes[i], self.line[i], self.names[i],
                           self.queue[i], self.core[i])

    def instructions(self) -> Iterator[Instruction]:
        return map(self.instruction, range(len(self)))

    def summary(self) -> dict[str, int]:
        """How many instructions of each kind."""
        counts: dict[str, int] = {}
        for kind in self.kind:
            counts[kind] = counts.get(kind, 0) + 1
        return counts
