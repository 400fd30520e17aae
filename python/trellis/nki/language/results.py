"""neuronxcc's instructions return their result: the shape, type and memory of the tile that each gives."""

from collections.abc import Callable
from typing import Any

import numpy as np

from trellis.nki.instructions.dma import order_of
from trellis.nki.instructions.emit import IMPLEMENTATIONS
from trellis.nki.instructions.masks import in_shape, made_of
from trellis.nki.instructions.operators import name_of
from trellis.nki.instructions.products import transposed
from trellis.nki.instructions.reductions import axes_of
from trellis.nki.kernels.allocation import fresh
from trellis.nki.kernels.session import session
from trellis.nki.language.arithmetic import finish, promoted
from trellis.nki.language.indices import mask_of
from trellis.nki.tensors.indexing import under
from trellis.nki.tensors.types import F32, to_dtype

__all__ = ["returning"]

Shape = tuple[tuple[int, ...], Any, str]  # shape, type, memory


def _as(key: str) -> Callable[[dict[str, Any]], Shape]:
    return lambda a: (tuple(a[key].shape), a[key].dtype, "sbuf")


def _columns(key: str, n: int, dtype: Any = None) -> Callable[[dict[str, Any]], Shape]:
    return lambda a: ((a[key].shape[0], n), dtype or a[key].dtype, "sbuf")


def _tensor_tensor(a: dict[str, Any]) -> Shape:
    x, y = a["data1"], a["data2"]
    shape = np.broadcast_shapes(x.shape, y.shape) if x.ndim == y.ndim else (x if x.size >= y.size else y).shape
    return tuple(shape), promoted(x, y), "sbuf"


def _product(a: dict[str, Any]) -> Shape:
    m = a["stationary"].shape[1:]
    n = a["moving"].shape[1:]
    double = a.get("perf_mode") is not None and name_of(a["perf_mode"]).startswith("double_row")
    if double:
        m, n = m[1:], n[1:]
    return (int(np.prod(m)), *n), F32, "psum"


def _transpose(a: dict[str, Any]) -> Shape:
    data = a["data"]
    free = data.size // data.shape[0]
    vector = a.get("engine") is not None and "vector" in name_of(a["engine"])
    return (free, data.shape[0]), data.dtype, "sbuf" if vector else "psum"


def _reduce(a: dict[str, Any]) -> Shape:
    data = a["data"]
    axes = axes_of(a["axis"], data.ndim)
    if a.get("keepdims"):
        return tuple(1 if d in axes else n for d, n in enumerate(data.shape)), data.dtype, "sbuf"
    kept = tuple(n for d, n in enumerate(data.shape) if d not in axes)
    return (kept if len(kept) > 1 else (data.shape[0], 1)), data.dtype, "sbuf"


def _gather(a: dict[str, Any]) -> Shape:
    src, index = a["src_buffer"], a["index"]
    count = a.get("num_valid_indices") or index.size // max(1, index.shape[0] // 16)
    return (src.shape[0], int(count), int(a.get("num_elem_per_idx", 1))), src.dtype, "sbuf"


def _dma_transpose(a: dict[str, Any]) -> Shape:
    src = a["src"]
    return tuple(src.shape[d] for d in order_of(a.get("axes"), src.ndim)), src.dtype, "sbuf"


UINT32 = np.dtype(np.uint32)
SHAPES: dict[str, Callable[[dict[str, Any]], Shape]] = {
    "activation": _as("data"), "activation_reduce": _as("data"), "affine_select": _as("on_true_tile"),
    "bn_aggr": _columns("data", 2), "bn_stats": _columns("data", 6), "dma_transpose": _dma_transpose,
    "dropout": _as("data"), "local_gather": _gather, "max8": _columns("src", 8),
    "nc_find_index8": _columns("data", 8, UINT32), "nc_match_replace8": _as("data"), "nc_matmul": _product,
    "nc_transpose": _transpose, "range_select": _as("on_true_tile"), "reciprocal": _as("data"),
    "scalar_tensor_tensor": _as("data"), "tensor_copy": _as("src"), "tensor_copy_dynamic_src": _as("src"),
    "tensor_partition_reduce": lambda a: ((1, *a["data"].shape[1:]), a["data"].dtype, "sbuf"),
    "tensor_reduce": _reduce, "tensor_scalar": _as("data"), "tensor_scalar_reduce": _as("data"),
    "tensor_tensor": _tensor_tensor, "tensor_tensor_scan": _as("data0"),
    "iota": lambda a: (tuple(np.shape(a["expr"])), None, "sbuf"),
    "memset": lambda a: (tuple(int(n) for n in a["shape"]), None, "sbuf"),
    "sequence_bounds": lambda a: ((a["segment_ids"].shape[0], 2, a["segment_ids"].shape[-1]),
                                  a["segment_ids"].dtype, "sbuf"),
}  # fmt: skip
# Instructions whose results are not of their operand's places: the operand, and the axes that they reduce.
REDUCED: dict[str, Callable[[dict[str, Any]], tuple[Any, tuple[int, ...]]]] = {
    "bn_stats": lambda a: (a["data"], tuple(range(1, a["data"].ndim))),
    "max8": lambda a: (a["src"], tuple(range(1, a["src"].ndim))),
    "nc_find_index8": lambda a: (a["data"], tuple(range(1, a["data"].ndim))),
    "tensor_partition_reduce": lambda a: (a["data"], (0,)),
    "tensor_reduce": lambda a: (a["data"], axes_of(a["axis"], a["data"].ndim)),
}  # fmt: skip
# Transposes: the operand, and what they make of a mask in its shape.
TURNED: dict[str, tuple[str, Callable[[dict[str, Any], Any], Any]]] = {
    "dma_transpose": ("src", lambda a, let: let.transpose(order_of(a.get("axes"), let.ndim))),
    "nc_transpose": ("data", lambda a, let: transposed(let)),
}
DROPPED = {"memset": ("shape", "dtype"), "iota": ("dtype",)}


def returning(name: str) -> Callable[..., Any]:
    """neuronxcc.nki.isa's function of this name."""
    work = IMPLEMENTATIONS[name]
    shape_of = SHAPES.get(name)

    def call(**given: Any) -> Any:
        s = session()
        mask = mask_of(given.pop("mask", None))
        dtype = given.pop("dtype", None)
        given.pop("name", None)
        dst = given.pop("dst", None)
        for key, value in given.items():
            if isinstance(value, np.ndarray) and value.ndim == 0:
                given[key] = value.item()
        if "pattern" in given:
            given.pop("expr", None)
        result = dst
        if dst is None:
            assert shape_of is not None
            shape, kind, space = shape_of(given | ({"shape": given["shape"]} if "shape" in given else {}))
            result = fresh(shape, to_dtype(dtype) if dtype is not None else kind, space)
        elif mask is not None:
            under(dst, mask)
        for key in DROPPED.get(name, ()):
            given.pop(key, None)
        s.mask = mask
        try:
            made = work(result, **given)
        finally:
            s.mask = None
        return finish(result, made, _mask_of_result(name, mask, given, result.shape)) if dst is None else result

    return call


def _mask_of_result(name: str, mask: Any, given: dict[str, Any], shape: tuple[int, ...]) -> Any:
    if name in TURNED:
        key, turned = TURNED[name]
        let = in_shape(mask, given[key].shape)
        return mask if let is None else turned(given, let).reshape(shape)
    if mask is None or name not in REDUCED:
        return mask
    operand, axes = REDUCED[name](given)
    kept = made_of(mask, operand.shape, axes, shape)
    return kept if kept is not None or 0 in axes else made_of(mask, operand.shape, axes, (shape[0], 1))


