"""Scalar's functions, and what its accumulators keep."""

from typing import Any

import numpy as np

from trellis.nki.instructions.emit import S, V, emit, instruction, operand, refuse, scalar_attribute, session
from trellis.nki.instructions.masks import masked, results_of
from trellis.nki.instructions.operators import alu, apply, evaluate, function_name, name_of, reduce
from trellis.nki.tensors.tensor import NkiTensor

__all__ = ["accumulate", "activation", "command_of"]


def command_of(cmd: Any) -> str:
    return "idle" if cmd is None else name_of(cmd)


def accumulate(engine: str, command: str, op: str, values: Any, initial: Any, result: Any,
               negate: bool = False) -> None:
    """Reduces each row into an engine's accumulators, as the command says, and stores what they hold. Those of rows of
    which a mask lets nothing through stay as they are."""
    if command == "idle":
        return
    kept = session().accumulators
    if command == "reset":
        kept.pop(engine, None)
        return
    rows = values.shape[0]
    elements = masked(values, op).reshape(rows, -1)
    before = None
    if command == "reduce":
        before = kept.get(engine)
    elif command == "load_reduce" and initial is not None:
        before = np.reshape(initial.f32() if isinstance(initial, NkiTensor) else np.float32(initial), (-1, 1))
    if before is None:
        total = reduce(op, elements, (1,))
    elif op == "subtract":  # each element, and not what the first leaves of the others
        total = reduce(op, np.concatenate([np.broadcast_to(before, (rows, 1)), elements], axis=1), (1,))
    else:
        total = apply(op, before, reduce(op, elements, (1,)))
    free = tuple(range(1, values.ndim))
    some = results_of(values.shape, free, (rows, 1))
    if some is not None and engine in kept and kept[engine].shape == total.shape:
        total = np.where(some, total, kept[engine])
    kept[engine] = total
    if result is not None:
        result.write(-total if negate else total, results_of(values.shape, free, result.shape))


def _scaled(data: Any, scale: Any, bias: Any) -> Any:
    x = data.f32()
    if isinstance(scale, NkiTensor) or scale != 1.0:
        x = x * operand(scale, x)
    if bias is not None and (isinstance(bias, NkiTensor) or bias != 0):
        x = x + operand(bias, x)
    return x


def _record(kind: str, name: str, dst: Any, inputs: tuple[Any, ...], result: Any, attributes: dict[str, Any],
            allowed: tuple[str, ...] = (S,)) -> Any:
    return emit(kind, (dst, result), inputs, allowed=allowed, name=name, attributes=attributes)


@instruction("activation")
def activation(dst: Any, op: Any, data: Any, bias: Any = None, scale: Any = 1.0, reduce_op: Any = None,
               reduce_res: Any = None, reduce_cmd: Any = None, name: Any = None, called: str = "activation") -> Any:
    word = function_name(op)
    command = command_of(reduce_cmd)
    if reduce_res is not None and command == "idle":
        command = "reset_reduce"
    reducer = "add" if reduce_op is None else alu(reduce_op, "reduce_op")
    s = session()
    if s.limits.generation == 2 and bias is not None and not isinstance(bias, NkiTensor) and not s.beta:
        raise refuse(f"bias={bias} on {s.limits.chip}; expected a [partitions, 1] tensor (nki.isa.activation)")
    if s.compute:
        values = evaluate(word, _scaled(data, scale, bias))
        dst.write(values)
        accumulate("scalar", command, reducer, values, None, reduce_res)
    attributes: dict[str, Any] = {"func": word, **scalar_attribute("scale", scale)}
    if bias is not None:
        attributes |= scalar_attribute("bias", bias)
    if reduce_res is not None or command != "idle":
        attributes["reduce_cmd"] = command
    return _record("activation", called, dst, (data, bias, scale), reduce_res, attributes)


@instruction("activation_reduce")
def activation_reduce(dst: Any, op: Any, data: Any, reduce_op: Any, reduce_res: Any, bias: Any = None,
                      scale: Any = 1.0, name: Any = None) -> Any:
    return activation(dst, op, data, bias, scale, reduce_op, reduce_res, "reset_reduce", called="activation_reduce")


@instruction("activate2")
def activate2(dst: Any, op: Any, data: Any, imm0: Any, imm1: Any, op0: Any, op1: Any, relu_param: Any = 0.0,
              reverse0: bool = False, reverse1: bool = False, reduce_op: Any = None, reduce_res: Any = None,
              reduce_cmd: Any = None, name: Any = None) -> Any:
    word, first, second = function_name(op), alu(op0, "op0"), alu(op1, "op1")
    command = command_of(reduce_cmd)
    if session().compute:
        x = data.f32()
        for step, immediate, reverse in ((first, imm0, reverse0), (second, imm1, reverse1)):
            if step != "bypass":
                value = operand(immediate, x)
                x = apply(step, value, x) if reverse else apply(step, x, value)
        x = np.where(x > 0, x, operand(relu_param, x) * x) if word in ("prelu", "lrelu") else evaluate(word, x)
        dst.write(x)
        accumulate("scalar", command, "add" if reduce_op is None else alu(reduce_op), x, None, reduce_res)
    attributes = {"func": word, "op": first, "op1": second, **scalar_attribute("value", imm0),
                  **scalar_attribute("value1", imm1)}
    return _record("activate2", "activate2", dst, (data, imm0, imm1), reduce_res, attributes)


@instruction("exponential")
def exponential(dst: Any, src: Any, max_value: Any = 0.0, reduce_res: Any = None, reduce_cmd: Any = None,
                reduce_init: Any = 0.0, name: Any = None) -> Any:
    command = command_of(reduce_cmd)
    if session().compute:
        x = src.f32()
        values = np.exp(x - operand(max_value, x))
        dst.write(values)
        accumulate("vector", command, "add", values, reduce_init, reduce_res)
    return _record("exponential", "exponential", dst, (src, max_value), reduce_res,
                   {**scalar_attribute("value", max_value), "reduce_cmd": command}, (V,))
