"""Reductions, scans, statistics and searches along the free dimensions, and across partitions."""

from typing import Any

import numpy as np

from trellis.nki.instructions.activation import accumulate, command_of
from trellis.nki.instructions.elementwise import scalar_attributes, scalar_steps, together
from trellis.nki.instructions.emit import G, V, emit, instruction, operand, refuse, scalar_attribute, session
from trellis.nki.instructions.operators import ALU, alu, apply, reduce
from trellis.nki.tensors.tensor import NkiTensor, broadcasts

__all__ = ["axes_of", "masked", "tensor_partition_reduce", "tensor_reduce"]

NEUTRAL = {"add": 0.0, "max": -np.inf, "min": np.inf, "multiply": 1.0}
STARTS = NEUTRAL | {"subtract": 0.0}  # what a scan combines its first element with


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    given = (axis,) if isinstance(axis, (int, np.integer)) else tuple(axis)
    return tuple(sorted(int(a) % ndim for a in given))


def masked(values: Any, op: str) -> Any:
    """Values without what the running instruction's mask leaves out."""
    mask = session().mask
    if mask is None or not broadcasts(mask, values.shape):
        return values
    return np.where(mask, values, np.float32(NEUTRAL.get(op, 0.0)))


@instruction("tensor_reduce")
def tensor_reduce(dst: Any, op: Any, data: Any, axis: Any, negate: bool = False, keepdims: bool = False,
                  name: Any = None) -> Any:
    word = alu(op)
    axes = axes_of(axis, data.ndim)
    if 0 in axes and data.shape[0] > 1:
        raise refuse(f"axis={axis} of {data!r}; expected free dimensions: the first is of partitions "
                     f"(nki.isa.tensor_reduce)")
    if session().compute:
        values = data.read() if word in ("bitwise_and", "bitwise_or", "bitwise_xor") else data.f32()
        total = reduce(word, masked(values, word), axes)
        whole = session().mask
        session().mask = _row_mask(whole, dst, axes)
        dst.write(-total if negate else total)
        session().mask = whole
    attributes: dict[str, Any] = {"op": word, "axis": len(axes)}
    if negate:
        attributes["negate"] = 1
    return emit("tensor_reduce", (dst,), (data,), allowed=(V,), name="tensor_reduce", attributes=attributes)


def _row_mask(mask: Any, dst: Any, axes: tuple[int, ...]) -> Any:
    """The mask of a reduction's result: rows of which anything was let through."""
    if mask is None:
        return None
    kept = mask.any(axis=tuple(a for a in axes if a < mask.ndim), keepdims=True)
    return kept if broadcasts(kept, dst.shape) else None


@instruction("tensor_partition_reduce")
def tensor_partition_reduce(dst: Any, op: Any, data: Any, name: Any = None) -> Any:
    word = alu(op)
    if session().compute:
        dst.write(reduce(word, data.f32(), (0,)))
    return emit("tensor_partition_reduce", (dst,), (data,), allowed=(G,), name="tensor_partition_reduce",
                attributes={"op": word})


@instruction("tensor_scalar_reduce")
def tensor_scalar_reduce(dst: Any, data: Any, op0: Any, operand0: Any, reduce_op: Any, reduce_res: Any = None,
                         reverse0: bool = False, reduce_cmd: Any = "reset_reduce", reduce_init: Any = None,
                         reduce_res_negate: bool = False, name: Any = None) -> Any:
    first, reducer = alu(op0, "op0"), alu(reduce_op, "reduce_op")
    command = command_of(reduce_cmd)
    if session().compute:
        values = scalar_steps(data, first, operand0, reverse0, None, None, False).astype(np.float32)
        if dst is not None:
            dst.write(values)
        total = accumulate("vector", command, reducer, masked(values, reducer), reduce_init)
        if reduce_res is not None and total is not None:
            reduce_res.write(-total if reduce_res_negate else total)
    attributes = scalar_attributes(first, operand0, reverse0, None, None, False)
    attributes |= {"reduce": reducer, "reduce_cmd": command}
    return emit("tensor_scalar_reduce", (dst, reduce_res), (data, operand0), allowed=(V,), name="tensor_scalar_reduce",
                attributes=attributes)


def cumulated(op: str, x: Any, start: Any, mask: Any) -> Any:
    """out[i] = x[i] op out[i - 1], along the last axis of two dimensions; where the mask is false, out[i - 1]."""
    out = np.empty_like(x)
    state = np.broadcast_to(start, x.shape[:1])
    for i in range(x.shape[1]):
        step = apply(op, x[:, i], state)
        state = out[:, i] = step if mask is None else np.where(mask[:, i], step, state)
    return out


@instruction("tensor_scalar_cumulative")
def tensor_scalar_cumulative(dst: Any, src: Any, op0: Any, op1: Any, imm0: Any, imm1: Any = None,
                             reduce_cmd: Any = "reset_reduce", name: Any = None) -> Any:
    first, second, command = alu(op0, "op0"), alu(op1, "op1"), command_of(reduce_cmd)
    if second not in STARTS:
        raise refuse(f"op1={second}; expected one of {', '.join(STARTS)} (nki.isa.tensor_scalar_cumulative)")
    s = session()
    if s.compute:
        x = src.f32()
        x = apply(first, x, operand(imm0, x)).astype(np.float32)
        start: Any = np.float32(STARTS[second])
        if command == "load_reduce":
            start = imm1.f32().reshape(-1) if isinstance(imm1, NkiTensor) else np.float32(imm1)
        elif command == "reduce" and "vector" in s.accumulators:
            start = s.accumulators["vector"].reshape(-1)
        flat, mask = x.reshape(x.shape[0], -1), None
        if s.mask is not None and broadcasts(s.mask, x.shape):
            mask = np.broadcast_to(s.mask, x.shape).reshape(flat.shape)
        total = cumulated(second, flat, start, mask)
        s.accumulators["vector"] = total[:, -1:]
        dst.write(total.reshape(x.shape))
    attributes = {"op": first, "op1": second, "reduce_cmd": command, **scalar_attribute("value", imm0),
                  **scalar_attribute("value1", imm1)}
    return emit("tensor_scalar_cumulative", (dst,), (src, imm0, imm1), allowed=(V,), name="tensor_scalar_cumulative",
                attributes=attributes)


def scanned(op0: str, op1: str, a: Any, b: Any, state: Any, reverse0: bool, reverse1: bool) -> Any:
    """out[i] = (a[i] op0 out[i - 1]) op1 b[i], along the last axis of two dimensions."""
    out = np.empty(np.broadcast_shapes(a.shape, b.shape), np.float32)
    a, b = np.broadcast_to(a, out.shape), np.broadcast_to(b, out.shape)
    f0, f1 = ALU[op0], ALU[op1]
    shape: tuple[int, ...] = out.shape
    with np.errstate(all="ignore"):
        at, bt, ot = np.ascontiguousarray(a.T), np.ascontiguousarray(b.T), np.empty(shape[::-1], np.float32)
        state = np.broadcast_to(np.asarray(state, np.float32).reshape(-1), (shape[0],))
        for i in range(len(at)):
            step = f0(state, at[i]) if reverse0 else f0(at[i], state)
            state = ot[i] = f1(bt[i], step) if reverse1 else f1(step, bt[i])
    out[...] = ot.T
    return out


@instruction("tensor_tensor_scan")
def tensor_tensor_scan(dst: Any, data0: Any, data1: Any, initial: Any, op0: Any, op1: Any, reverse0: bool = False,
                       reverse1: bool = False, name: Any = None) -> Any:
    first, second = alu(op0, "op0"), alu(op1, "op1")
    if session().compute:
        a, b = together(data0.f32(), data1.f32())
        start = initial.f32() if isinstance(initial, NkiTensor) else np.float32(initial)
        out = scanned(first, second, a.reshape(a.shape[0], -1), b.reshape(b.shape[0], -1), start, reverse0, reverse1)
        dst.write(out)
    attributes = {"op": first, "op1": second, **scalar_attribute("value", initial)}
    return emit("tensor_tensor_scan", (dst,), (data0, data1, initial), allowed=(V,), name="tensor_tensor_scan",
                attributes=attributes)


@instruction("bn_stats")
def bn_stats(dst: Any, data: Any, name: Any = None) -> Any:
    if data.size // data.shape[0] > 512:
        raise refuse(f"bn_stats of {data!r}; expected at most 512 elements a partition (tile_size.bn_stats_fmax)")
    if session().compute:
        x = data.f32().reshape(data.shape[0], -1)
        out = np.zeros((x.shape[0], 6), np.float32)
        for k in (0, 1):
            part = x[:, k::2]
            n = part.shape[1]
            if n:
                mean = part.mean(axis=1)
                out[:, 3 * k:3 * k + 3] = np.stack([np.full_like(mean, n), mean, part.var(axis=1) * n], axis=1)
        dst.write(out)
    return emit("bn_stats", (dst,), (data,), allowed=(V,), name="bn_stats")


@instruction("bn_aggr")
def bn_aggr(dst: Any, data: Any, name: Any = None) -> Any:
    if session().compute:
        groups = data.f32().reshape(data.shape[0], -1, 3).astype(np.float64)
        n, mean, spread = groups[:, :, 0], groups[:, :, 1], groups[:, :, 2]
        total = np.maximum(n.sum(axis=1), 1)
        overall = (n * mean).sum(axis=1) / total
        variance = (spread + n * (mean - overall[:, None]) ** 2).sum(axis=1) / total
        dst.write(np.stack([overall, variance], axis=1).astype(np.float32))
    return emit("bn_aggr", (dst,), (data,), allowed=(V,), name="bn_aggr")
