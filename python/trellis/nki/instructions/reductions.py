"""Reductions, scans, statistics and searches along the free dimensions, and across partitions."""

from typing import Any

import numpy as np

from trellis.nki.instructions.activation import accumulate, command_of
from trellis.nki.instructions.elementwise import check_bits, scalar_attributes, scalar_steps, together
from trellis.nki.instructions.emit import G, V, emit, instruction, operand, refuse, scalar_attribute, session
from trellis.nki.instructions.masks import let_in, masked, results_of
from trellis.nki.instructions.operators import ALU, BITS, alu, apply, reduce
from trellis.nki.tensors.tensor import NkiTensor

__all__ = ["axes_of", "tensor_partition_reduce", "tensor_reduce"]

# What a scan combines its first element with.
STARTS = {"add": 0.0, "subtract": 0.0, "multiply": 1.0, "max": -np.inf, "min": np.inf}


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    given = (axis,) if isinstance(axis, (int, np.integer)) else tuple(axis)
    return tuple(sorted(int(a) % ndim for a in given))


def _operator(op: Any, data: Any) -> str:
    word = alu(op)
    if word in BITS:
        check_bits(word, data)
    return word


@instruction("tensor_reduce")
def tensor_reduce(dst: Any, op: Any, data: Any, axis: Any, negate: bool = False, keepdims: bool = False,
                  name: Any = None) -> Any:
    word = _operator(op, data)
    axes = axes_of(axis, data.ndim)
    if 0 in axes and data.shape[0] > 1:
        raise refuse(f"axis={axis} of {data!r}; expected free dimensions: the first is of partitions "
                     f"(nki.isa.tensor_reduce)")
    if session().compute:
        values = data.read() if word in BITS else data.f32()
        total = reduce(word, masked(values, word), axes)
        dst.write(-total if negate else total, results_of(data.shape, axes, dst.shape))
    attributes: dict[str, Any] = {"op": word, "axis": len(axes)}
    if negate:
        attributes["negate"] = 1
    return emit("tensor_reduce", (dst,), (data,), allowed=(V,), name="tensor_reduce", attributes=attributes)


@instruction("tensor_partition_reduce")
def tensor_partition_reduce(dst: Any, op: Any, data: Any, name: Any = None) -> Any:
    word = _operator(op, data)
    if session().compute:
        values = data.read() if word in BITS else data.f32()
        dst.write(reduce(word, masked(values, word), (0,)), results_of(data.shape, (0,), dst.shape))
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
        accumulate("vector", command, reducer, values, reduce_init, reduce_res, reduce_res_negate)
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
        flat, mask = x.reshape(x.shape[0], -1), let_in(x.shape)
        total = cumulated(second, flat, start, None if mask is None else mask.reshape(flat.shape))
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


def _moments(x: Any, keep: Any) -> Any:
    """The number of elements that each row keeps, their mean, and their variance times their number."""
    out = np.zeros((len(x), 3), np.float32)
    n = keep.sum(axis=1)
    if keep.size and keep.all():
        return np.stack([n, x.mean(axis=1), x.var(axis=1) * n], axis=1)
    some = n > 0
    if some.any():
        x, keep, n = x[some], keep[some], n[some]
        out[some] = np.stack([n, x.mean(axis=1, where=keep), x.var(axis=1, where=keep) * n], axis=1)
    return out


@instruction("bn_stats")
def bn_stats(dst: Any, data: Any, name: Any = None) -> Any:
    if data.size // data.shape[0] > 512:
        raise refuse(f"bn_stats of {data!r}; expected at most 512 elements a partition (tile_size.bn_stats_fmax)")
    if session().compute:
        x, mask = data.f32().reshape(data.shape[0], -1), let_in(data.shape)
        keep = np.ones(x.shape, bool) if mask is None else mask.reshape(x.shape)
        out = np.zeros((x.shape[0], 6), np.float32)
        for k in (0, 1):
            out[:, 3 * k:3 * k + 3] = _moments(x[:, k::2], keep[:, k::2])
        dst.write(out, results_of(data.shape, tuple(range(1, data.ndim)), (x.shape[0], 1)))
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
