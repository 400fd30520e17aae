"""Element-wise instructions of Vector, Scalar and GpSimd."""

from typing import Any

import numpy as np

from trellis.nki.instructions.emit import (
    G,
    S,
    V,
    emit,
    engine_of,
    instruction,
    operand,
    refuse,
    scalar_attribute,
    session,
)
from trellis.nki.instructions.operators import BITS, UNARY, alu, apply
from trellis.nki.tensors.tensor import NkiTensor
from trellis.nki.tensors.types import bits_type, is_integer, through_f32

__all__ = [
    "check_bits",
    "memset",
    "scalar_attributes",
    "scalar_steps",
    "tensor_copy",
    "tensor_scalar",
    "tensor_tensor",
    "together",
]


def together(a: Any, b: Any) -> tuple[Any, Any]:
    """Values whose shapes differ only in how free dimensions are divided, in one shape."""
    if a.shape != b.shape and a.size == b.size and a.shape[:1] == b.shape[:1]:
        b = b.reshape(a.shape)
    elif a.ndim != b.ndim and min(a.ndim, b.ndim) >= 2:
        if a.ndim > b.ndim and b.shape[0] in (1, a.shape[0]) and b.size == b.shape[0]:
            b = b.reshape((b.shape[0],) + (1,) * (a.ndim - 1))
        elif b.ndim > a.ndim and a.shape[0] in (1, b.shape[0]) and a.size == a.shape[0]:
            a = a.reshape((a.shape[0],) + (1,) * (b.ndim - 1))
    return a, b


def by_integers(*tensors: Any) -> bool:
    """Whether GpSimd takes an operation on these for one of integers (nki.isa.tensor_tensor)."""
    return all(is_integer(t.dtype) and t.itemsize >= 4 and t.space != "psum" for t in tensors)


def check_bits(op: str, *tensors: Any) -> None:
    for t in tensors:
        if isinstance(t, NkiTensor) and not is_integer(t.dtype):
            raise refuse(f"{op} of {t!r}; expected integers (nki.isa: operators on bits)")


def check_two_psum(name: str, a: Any, b: Any) -> None:
    s = session()
    if isinstance(b, NkiTensor) and a.space == b.space == "psum" and s.strict and not s.beta:
        s.warn("psum", f"{name} reads {a!r} and {b!r}, both in PSUM; the documentation asks for one at most")


@instruction("tensor_tensor")
def tensor_tensor(dst: Any, data1: Any, data2: Any, op: Any, engine: Any = None, name: Any = None) -> Any:
    word = alu(op)
    s = session()
    check_two_psum("tensor_tensor", data1, data2)
    exact = word not in BITS and engine_of(engine) != V and by_integers(dst, data1, data2)
    if word in BITS:
        check_bits(word, data1, data2)
    if s.compute:
        if word in BITS:
            a, b = together(data1.read(), data2.read())
        elif exact:
            a, b = together(data1.read().astype(np.int64), data2.read().astype(np.int64))
        else:
            a, b = together(data1.f32(), data2.f32())
        dst.write(apply(word, a, b))
    allowed = (G,) if word == "pow" else (G, V) if exact else (V, G) if engine_of(engine) else (V,)
    if any(t.space == "psum" for t in (dst, data1, data2)) and (word != "pow" or s.beta):
        allowed = (V,)
    return emit("tensor_tensor", (dst,), (data1, data2), allowed=allowed, name="tensor_tensor", engine=engine,
                attributes={"op": word})


def _step(values: Any, word: str, operand0: Any, reverse: bool, integers: bool) -> Any:
    if word in UNARY:
        return apply(word, values)
    if word in BITS:
        number = operand0.read() if isinstance(operand0, NkiTensor) else np.asarray(int(operand0))
        other = number.astype(values.dtype) if number.ndim else number.astype(np.int64).astype(values.dtype)
        if other.ndim and other.ndim != values.ndim:
            other = other.reshape((other.shape[0],) + (1,) * (values.ndim - 1))
    else:
        other = operand(operand0, values)
        values = values.astype(np.float32)
    return apply(word, other, values) if reverse else apply(word, values, other)


def scalar_steps(data: Any, op0: str, operand0: Any, reverse0: bool, op1: str | None, operand1: Any,
                 reverse1: bool) -> Any:
    """(data op0 operand0) op1 operand1."""
    integers = op0 in BITS
    values = _step(data.read() if integers or is_integer(data.dtype) else data.f32(), op0, operand0, reverse0, integers)
    if op1 is not None:
        values = _step(values, op1, operand1, reverse1, integers)
    return values


def scalar_attributes(op0: str, operand0: Any, reverse0: bool, op1: str | None, operand1: Any,
                      reverse1: bool) -> dict[str, Any]:
    attributes: dict[str, Any] = {"op": op0, **scalar_attribute("value", operand0)}
    if reverse0:
        attributes["reverse"] = 1
    if op1 is not None:
        attributes |= {"op1": op1, **scalar_attribute("value1", operand1)}
        if reverse1:
            attributes["reverse1"] = 1
    return attributes


@instruction("tensor_scalar")
def tensor_scalar(dst: Any, data: Any, op0: Any, operand0: Any, reverse0: bool = False, op1: Any = None,
                  operand1: Any = None, reverse1: bool = False, engine: Any = None, name: Any = None) -> Any:
    first = alu(op0, "op0")
    second = None if op1 is None else alu(op1, "op1")
    if second is not None and (first in BITS) != (second in BITS):
        raise refuse(f"op0={first} and op1={second}; expected both on bits or both arithmetic (nki.isa.tensor_scalar)")
    if first in BITS:
        check_bits(first, data, dst)
    if session().compute:
        values = scalar_steps(data, first, operand0, reverse0, second, operand1, reverse1)
        if first in BITS and values.dtype != dst.dtype and values.dtype.itemsize == dst.itemsize:
            values = values.view(dst.dtype)
        dst.write(values)
    arithmetic = {first, second} <= {"multiply", "add", "subtract", "max", "min", None}
    allowed: tuple[str, ...] = (
        (V,) if first in BITS else (V, S, G) if arithmetic and session().limits.generation > 2 else (V, G)
    )
    if engine_of(engine) is None and "rsqrt" not in (first, second):  # GpSimd is used when asked for, or for rsqrt
        allowed = tuple(e for e in allowed if e != G)
    return emit("tensor_scalar", (dst,), (data, operand0, operand1), allowed=allowed, name="tensor_scalar",
                engine=engine, attributes=scalar_attributes(first, operand0, reverse0, second, operand1, reverse1))


@instruction("scalar_tensor_tensor")
def scalar_tensor_tensor(dst: Any, data: Any, op0: Any, operand0: Any, op1: Any, operand1: Any, reverse0: bool = False,
                         reverse1: bool = False, name: Any = None) -> Any:
    first, second = alu(op0, "op0"), alu(op1, "op1")
    if session().compute:
        values = scalar_steps(data, first, operand0, reverse0, None, None, False)
        other = operand1.read() if second in BITS else operand1.f32()
        values, other = together(values if second in BITS else values.astype(np.float32), other)
        dst.write(apply(second, other, values) if reverse1 else apply(second, values, other))
    attributes = scalar_attributes(first, operand0, reverse0, None, None, False) | {"op1": second}
    if reverse1:
        attributes["reverse1"] = 1
    ins = (data, operand0, operand1) if isinstance(operand0, NkiTensor) else (data, operand1)
    return emit("scalar_tensor_tensor", (dst,), ins, allowed=(V,), name="scalar_tensor_tensor", attributes=attributes)


@instruction("tensor_copy")
def tensor_copy(dst: Any, src: Any, engine: Any = None, name: Any = None) -> Any:
    s = session()
    if s.compute:
        dst.write(through_f32(src.read(), dst.dtype))
    allowed = (V, G) if s.limits.generation == 2 and not s.beta else (V, S, G)
    return emit("tensor_copy", (dst,), (src,), allowed=allowed, name="tensor_copy", engine=engine)


def moved(name: str, dst: Any, src: Any, engine: Any) -> Any:
    if session().compute:
        dst.write(through_f32(src.read(), dst.dtype))
    return emit("tensor_copy", (dst,), (src,), allowed=(V, S, G), name=name, engine=engine)


@instruction("tensor_copy_dynamic_src")
def tensor_copy_dynamic_src(dst: Any, src: Any, engine: Any = None, name: Any = None) -> Any:
    return moved("tensor_copy_dynamic_src", dst, src, engine)


@instruction("tensor_copy_dynamic_dst")
def tensor_copy_dynamic_dst(dst: Any, src: Any, engine: Any = None, name: Any = None) -> Any:
    return moved("tensor_copy_dynamic_dst", dst, src, engine)


@instruction("memset")
def memset(dst: Any, value: Any, engine: Any = None, name: Any = None) -> Any:
    if session().compute:
        if dst.dtype.names:
            dst.reinterpreted(bits_type(dst.dtype)).write(np.asarray(int(value)))
        else:
            dst.write(np.asarray(value))
    return emit("memset", (dst,), (), allowed=(V, G), name="memset", engine=engine, attributes={"value": float(value)})


@instruction("reciprocal")
def reciprocal(dst: Any, data: Any, name: Any = None) -> Any:
    if session().compute:
        dst.write(apply("reciprocal", data.f32()))
    return emit("reciprocal", (dst,), (data,), allowed=(V,), name="reciprocal")


def _chosen(predicate: Any, reverse: bool) -> Any:
    values = predicate.read()
    return values == 0 if reverse else values != 0


@instruction("tensor_copy_predicated")
def tensor_copy_predicated(dst: Any, src: Any, predicate: Any, reverse_pred: bool = False, name: Any = None) -> Any:
    if session().compute:
        where = _chosen(predicate, reverse_pred)
        values = src.read() if isinstance(src, NkiTensor) else np.float32(src)
        if isinstance(src, NkiTensor):
            where, values = together(where, values)
        before = dst.array.copy()
        where = np.broadcast_to(where, dst.shape) if where.size != before.size else where.reshape(dst.shape)
        dst.write(np.where(where, np.asarray(values).astype(np.float32) if dst.dtype.kind not in "iu" else values,
                           before.astype(np.float32) if dst.dtype.kind not in "iu" else before))
    attributes = {"reverse": 1} if reverse_pred else {}
    return emit("tensor_copy_predicated", (dst,), (src, predicate), allowed=(V,), name="tensor_copy_predicated",
                attributes=attributes | scalar_attribute("value", src))


@instruction("nc_stream_shuffle")
def nc_stream_shuffle(dst: Any, src: Any, shuffle_mask: Any, name: Any = None) -> Any:
    if len(shuffle_mask) != 32:
        raise refuse(f"a shuffle mask of {len(shuffle_mask)}; expected 32 entries (nki.isa.nc_stream_shuffle)")
    if session().compute:
        values = src.read()
        rows = dst.shape[0]
        out = dst.array.copy()
        for first in range(0, rows, 32):
            for row, source in enumerate(shuffle_mask):
                if int(source) != 255 and first + row < rows and first + int(source) < values.shape[0]:
                    out[first + row] = values[first + int(source)].reshape(out[first + row].shape)
        dst.write(out)
    return emit("nc_stream_shuffle", (dst,), (src,), allowed=(V,), name="nc_stream_shuffle")


