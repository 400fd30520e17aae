"""Selections by predicate, range or place, and numbers by place."""

from typing import Any

import numpy as np

from trellis.nki.instructions.activation import accumulate, command_of
from trellis.nki.instructions.elementwise import together
from trellis.nki.instructions.emit import G, V, emit, instruction, operand, scalar_attribute, session
from trellis.nki.instructions.operators import alu, apply
from trellis.nki.tensors.affine import as_affine
from trellis.nki.tensors.registers import number
from trellis.nki.tensors.tensor import NkiTensor
from trellis.nki.tensors.types import convert

__all__ = ["affine_select", "by_place", "iota", "range_select", "select_reduce"]


def by_place(rows: int, pattern: Any, offset: Any, channel_multiplier: int) -> Any:
    """offset + row * channel_multiplier + what the pattern's dimensions add; [rows, counts...]."""
    total = np.asarray(number(offset), np.int64) + np.arange(rows, dtype=np.int64) * int(channel_multiplier)
    total = total.reshape((rows,) + (1,) * len(pattern))
    for axis, (step, count) in enumerate(pattern):
        shape = [1] * (len(pattern) + 1)
        shape[axis + 1] = int(count)
        total = total + (np.arange(int(count), dtype=np.int64) * int(step)).reshape(shape)
    return total


def _pattern_keys(pattern: Any, offset: Any, channel_multiplier: Any) -> dict[str, Any]:
    keys: dict[str, Any] = {"start": number(offset), "rows": int(channel_multiplier)}
    for k, (step, _) in enumerate(reversed(list(pattern)[-4:])):
        keys["step" if k == 0 else f"step{k}"] = int(step)
    return keys


@instruction("iota")
def iota(dst: Any, pattern: Any = None, offset: Any = 0, channel_multiplier: int = 0, name: Any = None,
         expr: Any = None) -> Any:
    if expr is not None:  # neuronxcc's: an array of indices
        expr = np.asarray(expr)
        values = expr
        found = as_affine(expr)
        keys: dict[str, Any] = (
            {} if found is None else {"start": found.base, "rows": found.steps[0], "step": found.steps[-1]}
        )
    else:
        values = by_place(dst.shape[dst.partition], pattern, offset, channel_multiplier)
        keys = _pattern_keys(pattern, offset, channel_multiplier)
    if session().compute:
        dst.write(values)
    return emit("iota", (dst,), (), allowed=(G,), name="iota", attributes=keys)


@instruction("affine_select")
def affine_select(
    dst: Any,
    pattern: Any = (),
    channel_multiplier: Any = 0,
    on_true_tile: Any = None,
    on_false_value: Any = 0,
    cmp_op: Any = "equal",
    offset: Any = 0,
    name: Any = None,
    pred: Any = None,
) -> Any:
    if pred is not None:  # neuronxcc's: which elements to keep
        keep, word = np.asarray(pred), "is_ge"
        keys: dict[str, Any] = {"start": 0, "rows": 0, "step": 0}
    else:
        word = alu(cmp_op, "cmp_op")
        keep = apply(word, by_place(on_true_tile.shape[0], pattern, offset, channel_multiplier), 0)
        keys = _pattern_keys(pattern, offset, channel_multiplier)
    if session().compute:
        alike = on_true_tile.dtype == dst.dtype  # else by way of f32
        values = on_true_tile.read() if alike else on_true_tile.f32()
        if keep.size == values.size:
            keep = keep.reshape(values.shape)
        other = operand(on_false_value, values)
        dst.write(np.where(keep, values, convert(np.asarray(other), dst.dtype) if alike else other))
    keys |= {"cmp": word, **scalar_attribute("value", on_false_value)}
    return emit("affine_select", (dst,), (on_true_tile,), allowed=(G,), name="affine_select", attributes=keys)


@instruction("range_select")
def range_select(dst: Any, on_true_tile: Any, comp_op0: Any, comp_op1: Any, bound0: Any, bound1: Any,
                 reduce_cmd: Any = None, reduce_res: Any = None, reduce_op: Any = "max", range_start: Any = 0,
                 on_false_value: Any = None, name: Any = None) -> Any:
    first, second, command = alu(comp_op0), alu(comp_op1), command_of(reduce_cmd)
    if session().compute:
        x = on_true_tile.f32()
        place = (np.arange(x.size // x.shape[0], dtype=np.float32) + operand(range_start)).reshape((1, *x.shape[1:]))
        keep = apply(first, place, operand(bound0, x)) & apply(second, place, operand(bound1, x))
        out = np.where(keep, x, np.finfo(np.float32).min if on_false_value is None else np.float32(on_false_value))
        dst.write(out)
        accumulate("vector", command, alu(reduce_op), out, None, reduce_res)
    start = {} if isinstance(range_start, NkiTensor) else {"start": number(range_start)}
    attributes = {"cmp": first, "cmp1": second, "reduce_cmd": command} | start
    return emit("range_select", (dst, reduce_res), (on_true_tile, bound0, bound1), allowed=(V,), name="range_select",
                attributes=attributes)


@instruction("select_reduce")
def select_reduce(dst: Any, predicate: Any, on_true: Any, on_false: Any, reduce_res: Any = None, reduce_cmd: Any = None,
                  reduce_op: Any = "max", reverse_pred: bool = False, name: Any = None) -> Any:
    command = command_of(reduce_cmd)
    if session().compute:
        keep = predicate.read() != 0
        values = on_true.f32()
        values, keep = together(values, ~keep if reverse_pred else keep)
        out = np.where(keep, values, operand(on_false, values))
        dst.write(out)
        accumulate("vector", command, alu(reduce_op), out, None, reduce_res)
    attributes = {"reduce_cmd": command, **scalar_attribute("value", on_false)}
    if reverse_pred:
        attributes["reverse"] = 1
    kind = "select" if reduce_res is None else "select_reduce"
    return emit(kind, (dst, reduce_res), (predicate, on_true, on_false), allowed=(V,), name="select_reduce",
                attributes=attributes)
