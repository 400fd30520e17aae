"""One instruction: its record, and the checks that all instructions share."""

from collections.abc import Callable
from typing import Any

from trellis.nki.instructions.operators import TIMED_AS, name_of
from trellis.nki.kernels.session import Session, broken, refuse, session
from trellis.nki.rules.chips import PARTITIONS
from trellis.nki.tensors.tensor import NkiTensor

__all__ = ["COLLECTIVES", "DMA", "G", "IMPLEMENTATIONS", "NkiInstruction", "PE", "S", "SYNC", "V", "emit", "engine_of",
           "instruction", "operand", "refuse", "scalar_attribute", "session"]  # fmt: skip
V, S, G, PE, SYNC = "vector", "scalar", "gpsimd", "tensor", "sync"
IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {}


def instruction(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers what computes and records the instruction of nki.isa with this name; its first parameter is `dst`."""

    def register(f: Callable[..., Any]) -> Callable[..., Any]:
        IMPLEMENTATIONS[name] = f
        return f

    return register


class NkiInstruction:
    """What a call returns: its place in the trace, for depends_on."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index

    def depends_on(self, *producers: Any, kind: Any = None) -> "NkiInstruction":
        trace = session().trace
        pairs = trace.after if name_of(kind) == "schedule" else trace.depends
        pairs += [(self.index, p.index) for p in producers]
        return self


def engine_of(engine: Any) -> str | None:
    """The engine that a call asks for; None where it leaves the choice."""
    if engine is None:
        return None
    word = name_of(engine).removesuffix("_engine")
    return None if word == "unknown" else {"pool": G, "act": S, "dve": V, "pe": PE, "sp": SYNC}.get(word, word)


def emit(kind: str, outputs: tuple[Any, ...], inputs: tuple[Any, ...], *, allowed: tuple[str, ...], name: str,
         engine: Any = None, attributes: dict[str, Any] | None = None, queue: str | None = None,
         partial: bool = False) -> NkiInstruction:  # fmt: skip
    """Records an instruction on tensors; inputs that are numbers are left out: attributes have them. `partial`: not all
    of the outputs may be written, besides what a mask leaves out."""
    s = session()
    asked = engine_of(engine)
    outs = tuple(t for t in outputs if t is not None)
    ins = tuple(t for t in inputs if isinstance(t, NkiTensor))
    if asked is not None and asked not in allowed:
        _refuse_engine(s, name, asked, allowed)
        asked = None
    if kind not in DMA and kind not in COLLECTIVES:
        _check_rows(name, outs, ins)
        psum = next((t for t in (*outs, *ins) if t.memory.space == "psum"), None)
        if psum is not None and not s.beta and (asked == G or allowed == (G,)):
            broken(
                "psum",
                f"{name} of {psum!r} on the gpsimd engine; expected SBUF: GpSimd has no access to PSUM "
                f"(nki.isa.{name})",
            )
        if psum is not None and asked is None and len(allowed) > 1:
            allowed = tuple(e for e in allowed if e != G)
    rows = _rows_of(outs, ins) if kind in DMA else None
    if s.team is not None and kind in DMA:
        s.team.turn_over()
    for t in ins:
        t.memory.read = True
    for t in outs if not s.compute else ():
        if t.memory.space == "psum":
            t.touch()
    partial = partial or any(t.valid is not None or (s.mask is not None and t.bounds is None) for t in outs)
    timed = {key: TIMED_AS.get(value, value) for key, value in attributes.items()} if attributes else None
    index = s.trace.add(kind, tuple(_record(t, rows) for t in outs), tuple(_record(t, rows) for t in ins),
                        allowed=allowed, name=name, engine=asked, attributes=timed, line=s.line(), queue=queue,
                        core=s.core, partial=partial)
    if s.barriers:
        met = {s.barriers.get((t.memory.buffer, s.core)) for t in (*outs, *ins)}
        s.trace.depends += [(index, at) for at in met if at is not None]
    return NkiInstruction(index)


DMA = {"dma_copy", "dma_transpose", "dma_gather", "dma_scatter", "dma_compute", "dma_gather_add", "dma_scatter_add",
       "sendrecv"}  # fmt: skip
COLLECTIVES = {"all_gather", "all_gather_v", "all_reduce", "all_to_all", "all_to_all_v", "collective_permute",
               "collective_permute_implicit", "collective_permute_implicit_reduce", "reduce_scatter"}  # fmt: skip


def _refuse_engine(s: Session, name: str, asked: str, allowed: tuple[str, ...]) -> None:
    if s.strict:
        raise refuse(f"{name} on the {asked} engine; expected {' or '.join(allowed)} (nki.isa.{name})")
    s.warn("engine", f"{name} on the {asked} engine; {' or '.join(allowed)} runs it (nki.isa.{name})")


def _rows_of(outs: tuple[Any, ...], ins: tuple[Any, ...]) -> int | None:
    """The rows of a DMA's operand on chip."""
    for t in (*outs, *ins):
        if t.on_chip:
            return int(t.shape[t.partition]) if t.partition < t.ndim else int(t.shape[0])
    return None


def _record(t: NkiTensor, rows: int | None) -> int:
    return t.record(None if t.on_chip else rows)


def _check_rows(name: str, outs: tuple[Any, ...], ins: tuple[Any, ...]) -> None:
    for t in (*outs, *ins):
        if not t.on_chip:
            raise refuse(f"{name} of {t!r}; expected an operand in SBUF or PSUM: load it first (nki.isa.{name})")
        if t.shape[t.partition if t.partition < t.ndim else 0] > PARTITIONS:
            raise refuse(f"{name} of {t!r}; expected at most {PARTITIONS} partitions (nki.language.tile_size.pmax)")


def scalar_attribute(key: str, operand: Any) -> dict[str, float]:
    """A scalar operand as an attribute, if it is a number."""
    return {} if isinstance(operand, NkiTensor) or operand is None else {key: float(operand)}


def operand(x: Any, like: Any = None) -> Any:
    """A scalar operand's value: a number as f32, or a column that broadcasts along the free dimensions of `like`."""
    import numpy as np

    if isinstance(x, NkiTensor):
        values = x.f32()
        if like is not None and values.ndim < like.ndim:
            values = values.reshape(values.shape + (1,) * (like.ndim - values.ndim))
        elif like is not None and values.ndim > like.ndim and values.size == values.shape[0]:
            values = values.reshape((values.shape[0],) + (1,) * (like.ndim - 1))
        return values
    return np.float32(x)
