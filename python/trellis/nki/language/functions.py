"""nl's functions by name. Those of several instructions say which; each is timed on its own."""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from trellis.nki.instructions.dma import check_inside, copied, record_copy
from trellis.nki.instructions.elementwise import memset, tensor_copy
from trellis.nki.instructions.emit import G, V, emit, refuse, session
from trellis.nki.instructions.masks import in_shape, made_of
from trellis.nki.instructions.operators import alu
from trellis.nki.instructions.products import nc_matmul, nc_transpose, transposed
from trellis.nki.instructions.reductions import axes_of, tensor_partition_reduce, tensor_reduce
from trellis.nki.kernels.allocation import fresh
from trellis.nki.language.arithmetic import binary, finish, spread, unary
from trellis.nki.language.assign import LoopSum
from trellis.nki.language.indices import mask_of
from trellis.nki.rules.chips import PARTITIONS
from trellis.nki.tensors.indexing import under
from trellis.nki.tensors.tensor import NkiTensor
from trellis.nki.tensors.types import F32, U8, is_integer, to_dtype

__all__ = ["function", "LANGUAGE", "load"]

LANGUAGE: dict[str, Callable[..., Any]] = {}


def function(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers the function of nki.language with this name."""

    def register(f: Callable[..., Any]) -> Callable[..., Any]:
        LANGUAGE[name] = f
        return f

    return register


BINARY_NAMES = {"add": "add", "subtract": "subtract", "multiply": "multiply", "divide": "divide", "maximum": "max",
                "minimum": "min", "abs_max": "abs_max", "abs_min": "abs_min", "power": "pow", "equal": "is_equal",
                "not_equal": "not_equal", "less": "is_lt", "less_equal": "is_le", "greater": "is_gt",
                "greater_equal": "is_ge", "bitwise_and": "bitwise_and", "bitwise_or": "bitwise_or",
                "bitwise_xor": "bitwise_xor", "left_shift": "shift_left", "right_shift": "shift_right",
                "logical_and": "logical_and", "logical_or": "logical_or", "logical_xor": "logical_xor", "mod": "mod",
                "fmod": "fmod"}  # fmt: skip
UNARY_NAMES = ["abs", "square", "exp", "log", "sqrt", "rsqrt", "tanh", "sigmoid", "relu", "gelu", "gelu_apprx_sigmoid",
               "gelu_apprx_tanh", "gelu_dx", "gelu_apprx_sigmoid_dx", "silu", "silu_dx", "softplus", "mish", "erf",
               "erf_dx", "reciprocal", "sin", "cos", "tan", "arctan", "ceil", "floor", "trunc", "negative", "sign",
               "logical_not"]  # fmt: skip


def _elementwise() -> None:
    def two(op: str) -> Callable[..., Any]:
        def f(x: Any, y: Any, dtype: Any = None, mask: Any = None, **_: Any) -> Any:
            return binary(op, x, y, None if dtype is bool else dtype, mask)
        return f

    def one(word: str) -> Callable[..., Any]:
        def f(x: Any, dtype: Any = None, mask: Any = None, **_: Any) -> Any:
            return unary(word, x, None if dtype is bool else dtype, mask)
        return f

    for name, op in BINARY_NAMES.items():
        LANGUAGE[name] = two(op)
    for name in UNARY_NAMES:
        LANGUAGE[name] = one(name)
    LANGUAGE["invert"] = one("bitwise_not")


_elementwise()


# Reductions: one instruction along free dimensions, GpSimd's across partitions.
def _reduced(op: str, x: Any, axis: Any, dtype: Any, mask: Any, keepdims: bool) -> NkiTensor:
    axes = axes_of(axis, x.ndim)
    s = session()
    kept = [1 if d in axes else n for d, n in enumerate(x.shape)] if keepdims else \
        [n for d, n in enumerate(x.shape) if d not in axes or d == 0]
    if len(kept) < 2:
        kept = [x.shape[0] if 0 not in axes else 1, 1]
    dst = fresh(
        tuple(1 if d == 0 and 0 in axes else n for d, n in enumerate(kept)), to_dtype(dtype) if dtype else x.dtype
    )
    free = tuple(a for a in axes if a != 0)
    s.mask = let = mask_of(mask)
    try:
        if 0 not in axes:
            made = tensor_reduce(dst, op, x, free)
        else:
            part = x
            if free:
                part = fresh((x.shape[0], *(1 if d in free else n for d, n in enumerate(x.shape) if d)), F32)
                tensor_reduce(part, op, x, free)
                s.mask = made_of(let, x.shape, free, part.shape)
            made = tensor_partition_reduce(dst, op, part)
    finally:
        s.mask = None
    return finish(dst, made, made_of(let, x.shape, axes, dst.shape))


def _reduction(name: str, op: str) -> None:
    def f(x: Any, axis: Any, dtype: Any = None, mask: Any = None, keepdims: bool = False, **_: Any) -> Any:
        if dtype is bool:  # neuronxcc's default of nl.all, whose results are as those of comparisons
            dtype = U8 if session().beta else None
        return _reduced(op, x, axis, dtype, mask, keepdims)

    LANGUAGE[name] = f


for _name, _op in {"sum": "add", "max": "max", "min": "min", "prod": "multiply", "all": "logical_and"}.items():
    _reduction(_name, _op)


def _count(x: Any, axis: Any, mask: Any) -> int:
    """The number of elements that are reduced to one."""
    axes, let = axes_of(axis, x.ndim), in_shape(mask_of(mask), x.shape)
    if let is None:
        return int(prod(x.shape[a] for a in axes))
    counts = set(let.sum(axis=axes).reshape(-1).tolist()) - {0}
    if len(counts) > 1:
        raise refuse(f"mean of {x!r} under a mask that lets {min(counts)} to {max(counts)} elements into each result; "
                     f"expected as many into all")
    return int(max(counts, default=1))


@function("mean")
def mean(x: Any, axis: Any, dtype: Any = None, mask: Any = None, keepdims: bool = False, **_: Any) -> Any:
    """tensor_reduce, tensor_scalar. In neuronxcc's dialect the mean of integers is f32."""
    total = _reduced("add", x, axis, F32, mask, keepdims)
    kind = F32 if session().beta and is_integer(x.dtype) else x.dtype
    result = binary("multiply", total, 1.0 / _count(x, axis, mask), dtype or kind)
    result.mask = total.mask  # where nothing was added up there is no mean
    return result


@function("var")
def var(x: Any, axis: Any, dtype: Any = None, mask: Any = None, keepdims: bool = False, **_: Any) -> Any:
    """The mean, the squares of what differs from it, and their mean."""
    average = mean(x, axis, F32, mask, keepdims=True)
    apart = binary("subtract", x, average, F32)
    return mean(unary("square", apart, F32), axis, dtype or x.dtype, mask, keepdims)


@function("softmax")
def softmax(x: Any, axis: Any = -1, dtype: Any = None, compute_dtype: Any = None, mask: Any = None, **_: Any) -> Any:
    """The maximum, exp of what is left, its sum, and the quotient."""
    largest = _reduced("max", x, axis, F32, mask, True)
    powers = unary("exp", binary("subtract", x, largest, F32, mask), F32, mask)
    total = unary("reciprocal", _reduced("add", powers, axis, F32, mask, True), F32)
    return binary("multiply", powers, total, dtype or x.dtype, mask)


@function("rms_norm")
def rms_norm(x: Any, w: Any, axis: Any, n: Any, epsilon: float = 1e-6, dtype: Any = None, compute_dtype: Any = None,
             mask: Any = None, **_: Any) -> Any:
    total = _reduced("add", unary("square", x, F32, mask), axis, F32, mask, True)
    scale = unary("rsqrt", binary("add", binary("multiply", total, 1.0 / n, F32), epsilon, F32), F32)
    scaled = binary("multiply", x, scale, F32, mask)
    return binary("multiply", scaled, w, dtype or x.dtype, mask) if w is not None else scaled


@function("where")
def where(condition: Any, x: Any, y: Any, dtype: Any = None, mask: Any = None, **_: Any) -> Any:
    operands = [t for t in (condition, x, y) if isinstance(t, NkiTensor)]
    shape = np.broadcast_shapes(*(t.shape for t in operands))
    values = [t for t in (x, y) if isinstance(t, NkiTensor)]
    dst = fresh(tuple(shape), to_dtype(dtype) if dtype else values[0].dtype if values else F32)
    if session().compute:
        keep = condition.read() != 0
        a, b = (t.f32() if isinstance(t, NkiTensor) else np.float32(t) for t in (x, y))
        dst.write(np.where(keep, a, b), mask_of(mask))
    attributes = {} if isinstance(y, NkiTensor) else {"value": float(y)}
    made = emit("select", (dst,), (condition, x, y), allowed=(V,), name="where", attributes=attributes)
    return finish(dst, made, mask_of(mask))


# Memory.
@function("load")
def load(src: Any, dtype: Any = None, mask: Any = None, **_: Any) -> NkiTensor:
    if not isinstance(src, NkiTensor):
        raise refuse(f"load of {type(src).__name__}; expected a tensor in HBM")
    s = session()
    let = mask_of(mask)
    src = under(src, let) if let is not None or src.valid is not None else src
    check_inside(src, "skip" if let is not None else None)
    shape = src.shape if src.ndim > 1 else (src.shape[0], 1)
    dst = _tile_of(src, shape, to_dtype(dtype) if dtype is not None else src.dtype)
    if s.compute:
        s.mask = let
        dst.write(copied(dst, src))
        s.mask = None
    if src.bounds is not None and dst.ndim == src.ndim:
        dst.bounds = src.bounds
        made = record_copy("load", dst, src)
        dst.bounds, dst._view = None, None
        return _named(dst, made, let)
    return finish(dst, record_copy("load", dst, src), let)


def _named(dst: NkiTensor, made: Any, mask: Any) -> NkiTensor:
    """The tile of a load whose instruction writes to a part of it."""
    dst._view = session().trace.outputs[made.index][0]
    finish(dst, made, mask)
    return dst


def _tile_of(src: NkiTensor, shape: tuple[int, ...], kind: Any) -> NkiTensor:
    """A tile as large as what is loaded; blocks on the left of the 128 partitions stay blocks."""
    if shape[0] > 128 or (len(shape) > 2 and shape[0] < 128 and shape[1] == 128 and src.partition == 1):
        raise refuse(
            f"load of {list(shape)}: {shape[0]} partitions; expected at most 128 (nki.language.tile_size.pmax)"
        )
    return fresh(tuple(shape), kind)


@function("store")
def store(dst: Any, value: Any, mask: Any = None, **_: Any) -> None:
    s = session()
    let = mask_of(mask)
    if not isinstance(dst, NkiTensor) or dst.on_chip:
        raise refuse(f"store to {dst!r}; expected a tensor in HBM")
    if not isinstance(value, NkiTensor):
        tile = fresh(dst.shape if dst.ndim > 1 else (1, *dst.shape), dst.dtype)
        memset(tile, value)
        value = tile
    if value.size != dst.size and value.size != 1 and let is None and dst.flat is None:
        raise refuse(f"store of {value!r} to {dst!r}: {value.size} elements to {dst.size}")
    under(dst, let)
    if value.space == "psum":
        value = _evicted(value)
    s.mask = let
    if s.compute:
        dst.write(copied(dst, value))
    s.mask = None
    dst.memory.written = True
    record_copy("store", dst, value)
    dst.bounds = None


def _evicted(value: NkiTensor) -> NkiTensor:
    tile = fresh(value.shape, value.dtype)
    tensor_copy(tile, value)
    return tile


@function("load_transpose2d")
def load_transpose2d(src: Any, dtype: Any = None, mask: Any = None, **_: Any) -> NkiTensor:
    """A DMA that transposes, which moves elements of 2 bytes (nki.isa.dma_transpose). For others Tensor transposes what
    is loaded: KDA counts the same products and the same copies out of PSUM in `bmm_v2` and in
    `bmm_v2_d2_loadtranspose`."""
    let = mask_of(mask)
    dst = fresh((src.shape[1], src.shape[0]), to_dtype(dtype) if dtype else src.dtype)
    if src.itemsize != 2 and let is None and src.bounds is None and src.shape[1] <= PARTITIONS:
        return _transposed_by_products(dst, src)
    under(src, let)
    if session().compute:
        values = src.read()
        dst.write((np.where(let, values, 0) if let is not None else values).T)
    made = emit("dma_transpose", (dst,), (src,), allowed=("sync", "scalar", G), name="load_transpose2d")
    src.bounds = None
    return finish(dst, made, _turned(let, src.shape))


def _turned(mask: Any, shape: tuple[int, ...]) -> Any:
    """Of a transpose's result, the mask that its operand has."""
    let = in_shape(mask, shape)
    return None if let is None else transposed(let)


def _transposed_by_products(dst: NkiTensor, src: NkiTensor) -> NkiTensor:
    for first in range(0, src.shape[0], PARTITIONS):
        rows = slice(first, min(first + PARTITIONS, src.shape[0]))
        turned = transpose(load(src[rows, :]))
        made = tensor_copy(dst[:, rows], turned)
    return finish(dst, made) if src.shape[0] <= PARTITIONS else dst


@function("atomic_rmw")
def atomic_rmw(dst: Any, value: Any, op: Any, mask: Any = None, **_: Any) -> None:
    from trellis.nki.instructions.dma import dma_copy

    session().mask = mask_of(mask)
    dma_copy(dst, value, dst_rmw_op=op)
    session().mask = None


@function("copy")
def copy(x: Any = None, dtype: Any = None, mask: Any = None, src: Any = None, **_: Any) -> Any:
    return unary("copy", src if x is None else x, dtype, mask)


@function("static_cast")
def static_cast(input_data: Any, dtype: Any) -> Any:
    if isinstance(input_data, NkiTensor):
        return unary("copy", input_data, dtype)
    return np.asarray(input_data).astype(to_dtype(dtype))


@function("broadcast_to")
def broadcast_to(x: Any = None, shape: Any = (), dtype: Any = None, src: Any = None, **_: Any) -> Any:
    x = src if x is None else x
    shape = tuple(shape)
    if x.on_chip and x.shape[0] == 1 and shape[0] > 1:
        x = spread(x, shape[0])
    wide = x.broadcast_to(shape)
    return wide if dtype is None or to_dtype(dtype) == x.dtype else unary("copy", wide, dtype)


@function("expand_dims")
def expand_dims(x: Any = None, axis: Any = 0, data: Any = None) -> Any:
    x = data if x is None else x
    return x.expand_dim(axis)


# Products.
@function("transpose")
def transpose(x: Any, dtype: Any = None, mask: Any = None, **_: Any) -> Any:
    """nc_transpose."""
    dst = fresh((x.size // x.shape[0], x.shape[0]), to_dtype(dtype) if dtype else x.dtype, "psum")
    return finish(dst, nc_transpose(dst, x), _turned(mask_of(mask), x.shape))


@function("matmul")
def matmul(x: Any, y: Any, transpose_x: bool = False, mask: Any = None, **_: Any) -> Any:
    """nc_matmul; without transpose_x the array transposes x first, and a copy brings that to SBUF."""
    s = session()
    if not transpose_x:
        turned = transpose(x)
        x = fresh(turned.shape, turned.dtype)
        tensor_copy(x, turned)
    if y.space == "psum":
        y = _evicted(y)
    if x.space == "psum":
        x = _evicted(x)
    dst = fresh((x.size // x.shape[0], *y.shape[1:]), F32, "psum")
    s.mask = mask_of(mask)
    made = nc_matmul(dst, x, y)
    kept, s.mask = s.mask, None
    return finish(dst, made, kept)


@function("loop_reduce")
def loop_reduce(x: Any, op: Any, loop_indices: Any, dtype: Any = None, mask: Any = None, **_: Any) -> Any:
    """The first iteration of the loops writes, later ones combine: what it is assigned to says where."""
    given = loop_indices if isinstance(loop_indices, (tuple, list)) else (loop_indices,)
    first = all(int(i) == getattr(i, "first", 0) for i in given)
    tile = unary("copy", x, dtype) if dtype is not None and to_dtype(dtype) != x.dtype else x
    return LoopSum(alu(op), first, tile, mask_of(mask))
