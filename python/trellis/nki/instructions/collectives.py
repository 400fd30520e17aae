"""Collectives: what every rank of a group gives, and what each gets. They are computed where a kernel runs on several
ranks (kernels/ranks.py); on one alone every rank of the group has its data."""

from collections.abc import Callable
from typing import Any

import numpy as np

from trellis.nki.instructions.emit import G, SYNC, NkiInstruction, emit, instruction, refuse, session
from trellis.nki.instructions.operators import alu, apply
from trellis.nki.kernels.ranks import Group, group_of
from trellis.nki.tensors.registers import VirtualRegister, number
from trellis.nki.tensors.types import F32
from trellis.nki.trace import CollectiveCall

__all__ = ["all_gather", "all_reduce", "all_to_all", "collective_permute", "rank_id", "reduce_scatter"]

MOST_OPERANDS = 4  # of one instruction of sim/core
Parts = list[Any]


@instruction("rank_id")
def rank_id(name: Any = None) -> VirtualRegister:
    return VirtualRegister(session().rank)


@instruction("collective_permute_implicit_current_processing_rank_id")
def current_rank(iteration_id: int, replica_group: Any, channel_id: int = 0, name: Any = None) -> VirtualRegister:
    """In a ring each rank gets what its predecessor had: after i steps, the data of the i-th before it."""
    group = group_of(replica_group)
    return VirtualRegister(group.ranks[(group.place - number(iteration_id)) % len(group.ranks)])


def _listed(x: Any) -> list[Any]:
    return list(x) if isinstance(x, (list, tuple)) else [x]


def _checked(kind: str, srcs: Any, dsts: Any, *, on_chip: bool, most: int = 1 << 30) -> tuple[list[Any], list[Any]]:
    """Operands as lists, by the documentation's rules."""
    srcs, dsts = _listed(srcs), _listed(dsts)
    if len(srcs) != len(dsts) or not 1 <= len(srcs) <= most:
        raise refuse(f"{kind} of {len(srcs)} sources to {len(dsts)} destinations; expected as many, at least 1"
                     + (f" and at most {most}" if most < 1 << 30 else "") + f" (nki.collectives.{kind})")
    for t in (*srcs, *dsts):
        if t.on_chip != srcs[0].on_chip or t.space == "psum":
            raise refuse(f"{kind} of {t!r}; expected all tensors in HBM, or all in SBUF (nki.collectives.{kind})")
    if srcs[0].on_chip and not on_chip:
        raise refuse(f"{kind} of {srcs[0]!r}; expected tensors in HBM (nki.collectives.{kind})")
    if srcs[0].on_chip and len(srcs) > 1:
        raise refuse(
            f"{kind} of {len(srcs)} tensors in SBUF; expected one: several are for HBM (nki.collectives.{kind})"
        )
    return srcs, dsts


def _sized(kind: str, dst: Any, elements: int) -> None:
    if dst.size != elements:
        raise refuse(f"{kind} to {dst!r}, which has {dst.size} elements; expected {elements} (nki.collectives.{kind})")


def _recorded(kind: str, srcs: list[Any], dsts: list[Any], moved: int, group: Group, op: str = "",
              pairs: tuple[tuple[int, int], ...] = ()) -> Any:
    """The instructions, with what it takes to price them: `moved` bytes of the larger buffer."""
    t, made = session().trace, NkiInstruction(-1)
    attributes: dict[str, Any] = {"ns": 0} | ({"op": op} if op else {})
    for first in range(0, len(srcs), MOST_OPERANDS):
        part = slice(first, first + MOST_OPERANDS)
        made = emit(kind, tuple(dsts[part]), tuple(srcs[part]), allowed=(G, SYNC), name=kind, attributes=attributes)
        share = moved * len(srcs[part]) // len(srcs)
        t.collectives[made.index] = CollectiveCall(kind, share, group.groups, pairs)
    return made


def _done(kind: str, srcs: Any, dsts: Any, replica_group: Any, larger: Callable[[Any, Any], Any],
          result: Callable[[Parts, Group], Any], *, op: Any = None, on_chip: bool = True) -> Any:
    """Each tensor by itself: `result` of what all ranks have, in the group's order."""
    srcs, dsts = _checked(kind, srcs, dsts, on_chip=on_chip)
    group = group_of(replica_group)
    if session().compute:
        for k, parts in enumerate(group.exchange(kind, [np.array(t.read()) for t in srcs])):
            dsts[k].write(result(parts, group))
    moved = sum(larger(a, b).size * larger(a, b).itemsize for a, b in zip(srcs, dsts, strict=True))
    return _recorded(kind, srcs, dsts, moved, group, alu(op) if op is not None else "")


def _folded(op: Any, parts: Parts) -> Any:
    """In the group's order; floats as f32, as every instruction computes."""
    word, total = alu(op), parts[0]
    if total.dtype.kind not in "iu":
        parts = [p.astype(F32) for p in parts]
        total = parts[0]
    for part in parts[1:]:
        total = apply(word, total, part)
    return total


def _axis(kind: str, values: Any, dim: Any) -> int:
    dim = number(dim)
    if not -values.ndim <= dim < values.ndim:
        raise refuse(f"{kind} along dimension {dim} of a tensor that has {values.ndim} (nki.collectives.{kind})")
    return int(dim % values.ndim)


def _split(kind: str, values: Any, dim: Any, group: Group) -> Parts:
    axis, n = _axis(kind, values, dim), len(group.ranks)
    if values.shape[axis] % n:
        raise refuse(
            f"{kind} splits dimension {axis} of {list(values.shape)} for {n} ranks; expected a multiple of {n} "
            f"(nki.collectives.{kind})"
        )
    return np.split(values, n, axis=axis)


@instruction("all_gather")
def all_gather(srcs: Any, dsts: Any, replica_group: Any, collective_dim: int, priority: Any = None,
               name: Any = None) -> Any:
    for src, dst in zip(_listed(srcs), _listed(dsts), strict=False):
        _sized("all_gather", dst, src.size * len(group_of(replica_group).ranks))
    return _done("all_gather", srcs, dsts, replica_group, lambda a, b: b,
                 lambda parts, _: np.concatenate(parts, axis=_axis("all_gather", parts[0], collective_dim)))


@instruction("all_reduce")
def all_reduce(srcs: Any, dsts: Any, replica_group: Any, op: Any, priority: Any = None, name: Any = None) -> Any:
    for src, dst in zip(_listed(srcs), _listed(dsts), strict=False):
        _sized("all_reduce", dst, src.size)
    return _done("all_reduce", srcs, dsts, replica_group, lambda a, b: a, lambda parts, _: _folded(op, parts), op=op)


@instruction("reduce_scatter")
def reduce_scatter(srcs: Any, dsts: Any, replica_group: Any, collective_dim: int, op: Any, priority: Any = None,
                   name: Any = None) -> Any:
    return _done("reduce_scatter", srcs, dsts, replica_group, lambda a, b: a, lambda parts, g: _folded(
        op, [_split("reduce_scatter", p, collective_dim, g)[g.place] for p in parts]), op=op)


@instruction("all_to_all")
def all_to_all(srcs: Any, dsts: Any, replica_group: Any, collective_dim: int, priority: Any = None,
               name: Any = None) -> Any:
    return _done("all_to_all", srcs, dsts, replica_group, lambda a, b: a, lambda parts, g: np.concatenate(
        [_split("all_to_all", p, collective_dim, g)[g.place] for p in parts],
        axis=_axis("all_to_all", parts[0], collective_dim)), on_chip=False)


@instruction("collective_permute")
def collective_permute(srcs: Any, dsts: Any, source_target_pairs: Any, priority: Any = None, name: Any = None) -> Any:
    """A rank that no pair names as a target keeps what its destination had."""
    (src,), (dst,) = _checked("collective_permute", srcs, dsts, on_chip=False, most=1)
    _sized("collective_permute", dst, src.size)
    pairs = tuple((number(a), number(b)) for a, b in source_target_pairs)
    if len({b for _, b in pairs}) < len(pairs) or len({a for a, _ in pairs}) < len(pairs):
        raise refuse(f"collective_permute by {list(pairs)}; expected each rank once as a source and once as a target")
    group = group_of([sorted({rank for pair in pairs for rank in pair})])
    mine = session().rank
    if session().compute and group.member:
        (parts,) = group.exchange("collective_permute", [np.array(src.read())])
        source = next((a for a, b in pairs if b == mine), None)
        if source is not None:
            dst.write(parts[group.ranks.index(source)])
    return _recorded("collective_permute", [src], [dst], src.size * src.itemsize, group, pairs=pairs)


def _ring(kind: str, given: Any, dsts_by_channel: Any, replica_group: Any, values: Callable[[list[Any]], Any],
          op: Any = None) -> Any:
    """One step of the ring, a channel after the other: `values` of a channel's sources go to the next rank."""
    group, done = group_of(replica_group), NkiInstruction(-1)
    pairs = group.ring()
    for channel, dsts in enumerate(dsts_by_channel):
        sources = []
        for srcs in given:
            (src,), (dst,) = _checked(kind, srcs[channel], dsts, on_chip=True, most=1)
            _sized(kind, dst, src.size)
            sources.append(src)
        if session().compute:
            (parts,) = group.exchange(kind, [values(sources)])
            dst.write(parts[group.place - 1])
        done = _recorded(kind, sources, [dst], dst.size * dst.itemsize, group, alu(op) if op is not None else "", pairs)
    return done


@instruction("collective_permute_implicit")
def collective_permute_implicit(srcs_by_channel: Any, dsts_by_channel: Any, replica_group: Any, channel_ids: Any = (0,),
                                priority: Any = None, name: Any = None) -> Any:
    return _ring("collective_permute_implicit", (srcs_by_channel,), dsts_by_channel, replica_group,
                 lambda sources: np.array(sources[0].read()))


@instruction("collective_permute_implicit_reduce")
def collective_permute_implicit_reduce(srcs0_by_channel: Any, srcs1_by_channel: Any, dsts_by_channel: Any,
                                       replica_group: Any, op: Any, channel_ids: Any = (0,), priority: Any = None,
                                       name: Any = None) -> Any:
    return _ring("collective_permute_implicit_reduce", (srcs0_by_channel, srcs1_by_channel), dsts_by_channel,
                 replica_group, lambda sources: _folded(op, [np.array(t.read()) for t in sources]), op)
