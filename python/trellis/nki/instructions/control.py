"""Registers, and what the cores of a logical core do together."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from trellis.nki.instructions.dma import copied
from trellis.nki.instructions.emit import G, SYNC, NkiInstruction, emit, engine_of, instruction, refuse, session
from trellis.nki.instructions.operators import name_of
from trellis.nki.kernels.session import Session
from trellis.nki.tensors.registers import VirtualRegister, number

__all__ = [
    "ALL", "core_barrier", "register_alloc", "register_load", "register_move", "register_store", "scalar_load",
    "scalar_store", "sendrecv",
]  # fmt: skip

ALL = (SYNC, "scalar", "gpsimd", "vector", "tensor")


@instruction("register_alloc")
def register_alloc(x: Any = None) -> VirtualRegister:
    return VirtualRegister(x)


@instruction("register_move")
def register_move(dst: Any, src: Any = None, imm: Any = None) -> Any:
    """`imm` is what nki 0.2 calls a number as the source (nki/migration/index.rst)."""
    if src is None and imm is None:
        raise refuse("register_move of nothing; expected src (nki.isa.register_move)")
    dst.value = VirtualRegister(imm if src is None else src).value
    return emit("register_move", (), (), allowed=ALL, name="register_move", attributes={"value": dst.value})


@instruction("register_load")
def register_load(dst: Any, src: Any) -> Any:
    dst.value = number(src)
    return emit("register_load", (), (src,), allowed=ALL, name="register_load", attributes={"value": dst.value})


@instruction("register_store")
def register_store(dst: Any, src: Any) -> Any:
    dst.write(np.asarray(number(src)))
    return emit("register_store", (dst,), (), allowed=ALL, name="register_store")


@instruction("scalar_load")
def scalar_load(dst: Any, src: Any, name: Any = None) -> Any:
    return register_load(dst, src)


@instruction("scalar_store")
def scalar_store(dst: Any, src: Any, name: Any = None) -> Any:
    return register_store(dst, src)


def _touching(s: Session, buffer: int, first: int) -> list[int]:
    """The last instruction of each kind and core, from a place of the trace on, that has an operand in the buffer."""
    t, last = s.trace, {}
    for at in range(first, len(t)):
        if any(t.views[v].buffer == buffer for v in (*t.outputs[at], *t.inputs[at])):
            last[t.kind[at], t.core[at]] = at
    return sorted(last.values())


@instruction("core_barrier")
def core_barrier(data: Any, cores: Any, engine: Any = None, name: Any = None) -> Any:
    """What touched `data` on any core comes before, and what will touch it after. The last core records the barriers of
    all, so that the records of each are in its order."""
    s, buffer = session(), data.memory.buffer
    if s.team is None or s.team.meet():
        before = _touching(s, buffer, s.barriers.get((buffer, s.core), -1) + 1)
        own = s.core
        for core in range(s.trace.lnc):
            s.core = core
            made = emit("core_barrier", (), (), allowed=ALL, name="core_barrier", engine=engine_of(engine) or G)
            s.trace.depends += [(made.index, at) for at in before]
            s.barriers[buffer, core] = made.index
            s.meetings.add((buffer, made.index))
        s.core = own
    return NkiInstruction(s.barriers[buffer, s.core])


@dataclass
class Parcel:
    """What a core sends, and where it wants what it receives."""

    core: int
    source: Any
    target: Any
    values: Any
    index: int = -1  # of the instruction, once both cores have come


@instruction("sendrecv")
def sendrecv(src: Any, dst: Any, send_to_rank: Any, recv_from_rank: Any, pipe_id: Any, dma_engine: Any = None,
             name: Any = None, use_gpsimd_dma: bool = False) -> Any:
    """Each core's instruction moves what it sends to the other core's memory. The second core to come records both."""
    s = session()
    if s.team is None or s.trace.lnc == 1:
        raise refuse("sendrecv in a kernel of one core; expected kernel[2](...) (nki.isa.sendrecv)")
    mine = Parcel(s.core, src, dst, np.array(copied(dst, src)) if s.compute else None)
    theirs, second = s.team.exchange(number(send_to_rank), number(recv_from_rank), number(pipe_id), mine)
    if s.compute:
        dst.write(theirs.values.reshape(dst.shape))
    if second or theirs is mine:
        own_dma = use_gpsimd_dma or (dma_engine is not None and name_of(dma_engine) == "gpsimd_dma")
        kind, engines = ("sendrecv_gpsimd", (G,)) if own_dma else ("sendrecv", (SYNC, "scalar", G))
        for sender, receiver in ((mine, theirs), (theirs, mine))[: 1 if theirs is mine else 2]:
            s.core = sender.core
            sender.index = emit(kind, (receiver.target,), (sender.source,), allowed=engines, name="sendrecv").index
        s.core = mine.core
    return NkiInstruction(mine.index)
