"""nl's element-wise functions and a tile's operators, as instructions; results are new tiles."""

import math
from typing import Any

import numpy as np

from trellis.nki.instructions.activation import activation
from trellis.nki.instructions.elementwise import tensor_copy, tensor_scalar, tensor_tensor
from trellis.nki.instructions.emit import PE, G, emit
from trellis.nki.instructions.operators import BITS, FUNCTIONS, UNARY
from trellis.nki.kernels.allocation import fresh
from trellis.nki.kernels.session import refuse, session
from trellis.nki.language.assign import assign, in_place
from trellis.nki.language.indices import mask_of
from trellis.nki.rules.chips import PARTITIONS
from trellis.nki.tensors.tensor import NkiTensor
from trellis.nki.tensors.types import F32, U8, is_float, is_integer, to_dtype

__all__ = ["binary", "binary_into", "finish", "install", "promoted", "spread", "unary"]

COMPARISONS = {"is_equal", "not_equal", "is_gt", "is_ge", "is_lt", "is_le", "logical_and", "logical_or", "logical_xor"}


def promoted(*operands: Any) -> Any:
    """The type of a result: f32 wins over narrower floats, floats over integers."""
    types = [t.dtype for t in operands if isinstance(t, NkiTensor)]
    floats = [t for t in types if is_float(t)]
    if len(set(types)) == 1:
        only = types[0]
        numbers = [x for x in operands if not isinstance(x, NkiTensor) and x is not None]
        fraction = any(
            isinstance(x, (float, np.floating)) and float(x) != int(float(x)) if np.isfinite(float(x)) else True
            for x in numbers
            if isinstance(x, (float, np.floating))
        )
        return F32 if fraction and not is_float(only) else only
    if floats:
        return F32 if len(set(floats)) > 1 else floats[0]
    return max(types, key=lambda t: t.itemsize)


def finish(dst: NkiTensor, made: Any, mask: Any = None) -> NkiTensor:
    """The tile as the result of its instruction."""
    dst.born = made.index
    dst.mask = mask
    dst.memory.read = False
    return dst


def as_tile(x: Any) -> Any:
    """An operand: a tile, or a number."""
    if isinstance(x, NkiTensor):
        return x
    if isinstance(x, np.ndarray) and x.size > 1:
        tile = fresh(x.shape if x.ndim > 1 else (1, x.size), to_dtype(x.dtype))
        made = emit("iota", (tile,), (), allowed=(G,), name="constant")
        tile.write(np.asarray(x))
        return finish(tile, made)
    return (
        x
        if isinstance(x, (int, float))
        else np.asarray(x).reshape(-1)[0].item()
        if not hasattr(x, "value")
        else x.value
    )


def _is_column(x: NkiTensor, of: NkiTensor) -> bool:
    return x.size == x.shape[0] and x.shape[0] == of.shape[0] and of.size > of.shape[0]


def _by_products(x: NkiTensor, rows: int) -> NkiTensor:
    """A row times a column of ones, as neuronxcc's compiler does it (trainium_inferentia2_arch.rst, Partition
    Broadcast). What does not fit into one bank of PSUM is gathered in SBUF."""
    s = session()
    ones = s.ones = s.ones or fresh((1, PARTITIONS), F32)
    width, most = x.shape[1], s.limits.bank_bytes // F32.itemsize
    alone = width <= most and x.dtype == F32
    tile = fresh((rows, width), x.dtype, "psum" if alone else "sbuf")
    for first in range(0, width, most):
        part = slice(first, min(first + most, width))
        bank = tile if alone else fresh((rows, part.stop - first), F32, "psum")
        if s.compute:
            bank.write(x[:, part].read())
        emit(
            "nc_matmul",
            (bank,),
            (ones[:, 0:rows], x[:, part]),
            allowed=(PE,),
            name="broadcast",
            attributes={"accumulate": 0},
        )
        bank.memory.written = True
        if not alone:
            tensor_copy(tile[:, part], bank)
    return tile


def spread(x: NkiTensor, rows: int) -> NkiTensor:
    """A row for every partition."""
    if x.shape[0] == rows or x.shape[0] != 1:
        return x
    if session().beta and x.ndim == 2 and x.space == "sbuf" and not is_integer(x.dtype):
        return _by_products(x, rows)
    tile = fresh((rows, *x.shape[1:]), x.dtype)
    if session().compute:
        tile.write(x.read())
    emit("partition_broadcast", (tile,), (x,), allowed=(G,), name="broadcast")
    return tile


def binary_into(dst: NkiTensor, op: str, x: Any, y: Any) -> Any:
    """dst = x op y by the instruction that fits the operands."""
    if not isinstance(x, NkiTensor):
        return tensor_scalar(dst, y, op, x, True)
    if not isinstance(y, NkiTensor):
        return tensor_scalar(dst, x, op, y)
    rows = max(x.shape[0], y.shape[0])
    if op not in BITS:
        if _is_column(y, x):
            return tensor_scalar(dst, x, op, y)
        if _is_column(x, y):
            return tensor_scalar(dst, y, op, x, True)
    return tensor_tensor(dst, spread(x, rows), spread(y, rows), op)


def _shape_of(x: Any, y: Any) -> tuple[int, ...]:
    if not isinstance(y, NkiTensor):
        return tuple(x.shape)
    if not isinstance(x, NkiTensor):
        return tuple(y.shape)
    try:
        return np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        a, b = (x.shape, y.shape) if x.ndim >= y.ndim else (y.shape, x.shape)
        if b[0] == a[0] and (len(b) == 2 and b[1] == 1 or np.prod(a) == np.prod(b)):
            return tuple(a)
        raise refuse(f"operands of {list(x.shape)} and {list(y.shape)} do not broadcast") from None


def binary(op: str, x: Any, y: Any, dtype: Any = None, mask: Any = None) -> NkiTensor:
    x, y = as_tile(x), as_tile(y)
    if not isinstance(x, NkiTensor) and not isinstance(y, NkiTensor):
        raise refuse(f"{op} of two numbers, {x!r} and {y!r}; expected a tile")
    s = session()
    kind = to_dtype(dtype) if dtype is not None else U8 if op in COMPARISONS and s.beta else promoted(x, y)
    if op == "divide" and dtype is None and s.beta and is_integer(kind):
        kind = F32  # as numpy's division, which neuronxcc's own kernels take the floor of
    dst = fresh(_shape_of(x, y), kind)
    s.mask = mask_of(mask)
    try:
        made = binary_into(dst, op, x, y)
    finally:
        kept, s.mask = s.mask, None
    return finish(dst, made, kept)


def unary(word: str, x: NkiTensor, dtype: Any = None, mask: Any = None) -> NkiTensor:
    """A function of each element: Scalar's, or an operator of Vector's."""
    s = session()
    if not isinstance(x, NkiTensor):
        python = f", or math.{word} of a number" if hasattr(math, word) else ""
        raise refuse(f"{word} of {x!r}; expected a tile{python}")
    kind = to_dtype(dtype) if dtype is not None else U8 if word == "logical_not" and s.beta else x.dtype
    dst = fresh(x.shape, kind)
    s.mask = mask_of(mask)
    try:
        if word == "negative":
            made = tensor_scalar(dst, x, "multiply", -1.0)
        elif word in UNARY and word not in FUNCTIONS:
            made = tensor_scalar(dst, x, word, 0)
        elif word == "copy":
            made = tensor_copy(dst, x)
        else:
            made = activation(dst, word, x)
    finally:
        kept, s.mask = s.mask, None
    return finish(dst, made, kept)


_viewed_as = NkiTensor.broadcast_to


def _broadcast_to(self: NkiTensor, shape: Any) -> Any:
    """A tile's rows are views; its only partition for all of them is work, in neuronxcc's dialect."""
    beta = self.on_chip and session().beta and len(shape) == self.ndim == 2
    return _viewed_as(spread(self, int(shape[0])) if beta else self, shape)


def _operator(op: str, swapped: bool = False) -> Any:
    def method(self: NkiTensor, other: Any) -> NkiTensor:
        return binary(op, other, self) if swapped else binary(op, self, other)

    return method


def _in_place(op: str) -> Any:
    return lambda self, other: in_place(self, op, other)


OPERATORS = {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "pow": "pow", "mod": "mod",
             "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "shift_left",
             "rshift": "shift_right"}  # fmt: skip


def install() -> None:
    """Gives tensors their operators and assignments."""
    for word, op in OPERATORS.items():
        setattr(NkiTensor, f"__{word}__", _operator(op))
        setattr(NkiTensor, f"__r{word}__", _operator(op, swapped=True))
        setattr(NkiTensor, f"__i{word}__", _in_place(op))
    for word, op in (("lt", "is_lt"), ("le", "is_le"), ("gt", "is_gt"), ("ge", "is_ge")):
        setattr(NkiTensor, f"__{word}__", _operator(op))
    for word, op in (("eq", "is_equal"), ("ne", "not_equal")):
        setattr(NkiTensor, f"__{word}__", _equality(op))
    others = {"__neg__": lambda self: unary("negative", self), "__invert__": lambda self: unary("bitwise_not", self),
              "__abs__": lambda self: unary("abs", self), "__setitem__": assign, "__array_ufunc__": None,
              "broadcast_to": _broadcast_to, "astype": lambda self, dtype: unary("copy", self, dtype)}  # fmt: skip
    for name, method in others.items():
        setattr(NkiTensor, name, method)


def _equality(op: str) -> Any:
    def method(self: NkiTensor, other: Any) -> Any:
        if session_is_beta() and isinstance(other, (NkiTensor, int, float, np.number)):
            return binary(op, self, other)
        return (self is other) == (op == "is_equal")

    return method


def session_is_beta() -> bool:
    from trellis.nki.kernels.session import active

    return active() and session().beta
