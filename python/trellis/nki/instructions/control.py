"""Registers, other cores, and collectives. A collective alone on one core has its own data as every rank's."""

from typing import Any

import numpy as np

from trellis.nki.instructions.dma import copied
from trellis.nki.instructions.emit import G, SYNC, emit, engine_of, instruction, refuse, session
from trellis.nki.instructions.operators import alu, apply
from trellis.nki.tensors.registers import VirtualRegister, number
from trellis.nki.tensors.types import F32

__all__ = [
    "ALL", "all_gather", "all_reduce", "all_to_all", "collective_permute", "core_barrier", "current_rank",
    "rank_id", "reduce_scatter", "register_alloc", "register_load", "register_move", "register_store",
    "scalar_load", "scalar_store", "sendrecv",
]  # fmt: skip

ALL = (SYNC, "scalar", "gpsimd", "vector", "tensor")


@instruction("register_alloc")
def register_alloc(x: Any = None) -> VirtualRegister:
    return VirtualRegister(x)


@instruction("register_move")
def register_move(dst: Any, src: Any) -> Any:
    dst.value = VirtualRegister(src).value
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


@instruction("core_barrier")
def core_barrier(data: Any, cores: Any, engine: Any = None, name: Any = None) -> Any:
    session().meet()
    return emit("core_barrier", (), (), allowed=ALL, name="core_barrier", engine=engine_of(engine) or G)


@instruction("sendrecv")
def sendrecv(src: Any, dst: Any, send_to_rank: Any, recv_from_rank: Any, pipe_id: Any, dma_engine: Any = None,
             name: Any = None) -> Any:
    s = session()
    if len(s.grid) == 1 and s.grid[0] == 1:
        raise refuse("sendrecv in a kernel of one core; expected kernel[2](...) (nki.isa.sendrecv)")
    if s.compute:
        sent = np.array(copied(dst, src))
        dst.write(s.exchange(number(send_to_rank), number(recv_from_rank), pipe_id, sent).reshape(dst.shape))
    return emit("sendrecv", (dst,), (src,), allowed=(SYNC, "scalar", G), name="sendrecv",
                attributes={"peer": number(send_to_rank)})


@instruction("rank_id")
def rank_id(name: Any = None) -> int:
    return 0


@instruction("collective_permute_implicit_current_processing_rank_id")
def current_rank(iteration_id: int, replica_group: Any, channel_id: int = 0, name: Any = None) -> int:
    return 0


def _ranks(group: Any) -> int:
    lists = getattr(group, "replica_groups", None) or getattr(group, "groups", None) or group
    return len(lists[0]) if isinstance(lists, (list, tuple)) and lists else 1


def _collective(name: str, srcs: Any, dsts: Any, fill: Any) -> Any:
    done: Any = None
    for src, dst in zip(srcs, dsts, strict=True):
        if session().compute:
            dst.write(fill(src.read(), dst))
        done = emit(name, (dst,), (src,), allowed=(G, SYNC), name=name, attributes={"ns": 0})
    return done


def _tiled(values: Any, dst: Any, dim: int) -> Any:
    """Every rank's part is this rank's."""
    axis = dim % len(dst.shape)
    repeat = dst.shape[axis] // values.shape[axis] if values.ndim == len(dst.shape) else 1
    return np.concatenate([values] * repeat, axis=axis) if repeat > 1 else values


@instruction("all_gather")
def all_gather(srcs: Any, dsts: Any, replica_group: Any, collective_dim: int, priority: Any = None,
               name: Any = None) -> Any:
    return _collective("all_gather", srcs, dsts, lambda values, dst: _tiled(values, dst, collective_dim))


@instruction("all_reduce")
def all_reduce(srcs: Any, dsts: Any, replica_group: Any, op: Any, priority: Any = None, name: Any = None) -> Any:
    word, n = alu(op), _ranks(replica_group)

    def fill(values: Any, dst: Any) -> Any:
        total = values.astype(F32)
        for _ in range(n - 1):
            total = apply(word, total, values.astype(F32))
        return total

    return _collective("all_reduce", srcs, dsts, fill)


@instruction("reduce_scatter")
def reduce_scatter(srcs: Any, dsts: Any, replica_group: Any, collective_dim: int, op: Any, priority: Any = None,
                   name: Any = None) -> Any:
    word, n = alu(op), _ranks(replica_group)

    def fill(values: Any, dst: Any) -> Any:
        part = np.split(values.astype(F32), max(n, 1), axis=collective_dim)[0]
        total = part
        for _ in range(n - 1):
            total = apply(word, total, part)
        return total

    return _collective("reduce_scatter", srcs, dsts, fill)


@instruction("all_to_all")
def all_to_all(srcs: Any, dsts: Any, replica_group: Any, collective_dim: int, priority: Any = None,
               name: Any = None) -> Any:
    n = _ranks(replica_group)
    return _collective("all_to_all", srcs, dsts, lambda values, dst: np.concatenate(
        [np.split(values, n, axis=collective_dim)[0]] * n, axis=collective_dim))


@instruction("collective_permute")
def collective_permute(srcs: Any, dsts: Any, source_target_pairs: Any, priority: Any = None, name: Any = None) -> Any:
    return _collective("collective_permute", srcs, dsts, lambda values, dst: values)
