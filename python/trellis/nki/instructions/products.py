"""The array's instructions: products, transposes, and microscaled products."""

from collections.abc import Callable
from typing import Any

import numpy as np

from trellis.nki.instructions.elementwise import tensor_copy
from trellis.nki.instructions.emit import PE, V, emit, instruction, refuse, session
from trellis.nki.instructions.masks import let_in
from trellis.nki.instructions.operators import name_of
from trellis.nki.kernels.allocation import fresh
from trellis.nki.names.constants import finfo
from trellis.nki.tensors.types import F32, is_integer, trellis_name

__all__ = ["add_into", "nc_matmul", "nc_transpose", "transposed"]

ROWS = COLUMNS = 128


def _double(perf_mode: Any) -> bool:
    return perf_mode is not None and name_of(perf_mode).startswith("double_row")


def _check_operands(dst: Any, stationary: Any, moving: Any, transpose: bool) -> None:
    s = session()
    for what, t in (("stationary", stationary), ("moving", moving)):
        if t.space != "sbuf":
            raise refuse(f"nc_matmul with {what} {t!r}; expected SBUF (nki.isa.nc_matmul)")
        if is_integer(t.dtype) and not transpose and s.strict and t.itemsize > 1:
            s.warn("type", f"nc_matmul with {what} {t!r}; expected floats (nki.isa.nc_matmul)")
    if dst.space != "psum" and s.strict:
        raise refuse(f"nc_matmul into {dst!r}; expected PSUM (nki.isa.nc_matmul)")
    k, m, n = stationary.shape[0], stationary.size // stationary.shape[0], moving.size // moving.shape[0]
    if k != moving.shape[0]:
        raise refuse(f"nc_matmul of {stationary!r} by {moving!r}; expected as many partitions of both")
    most = s.limits.moving
    if m > COLUMNS * 2 or n > most * 2 or (not _free(stationary, COLUMNS) or not _free(moving, most)):
        raise refuse(f"nc_matmul of {stationary!r} by {moving!r}; expected at most {COLUMNS} stationary and {most} "
                     f"moving elements a partition (nki.isa.nc_matmul)")
    two = {trellis_name(stationary.dtype) == "f32", trellis_name(moving.dtype) == "f32"}
    if two == {True, False} and not transpose:
        text = (
            f"nc_matmul of {stationary.dtype} by {moving.dtype}; expected f32 of both or of neither (nki.isa.nc_matmul)"
        )
        if s.strict and not s.beta:
            raise refuse(text)
        s.warn("type", text)


def _free(t: Any, most: int) -> bool:
    free = t.size // t.shape[0]
    return bool(free <= most or (t.ndim == 3 and t.shape[1] == 2 and t.shape[2] <= most))


def _product(stationary: Any, moving: Any, double: bool) -> Any:
    a, b = stationary.f32(), moving.f32()
    if double and a.ndim >= 3:
        return np.einsum("ktm,ktn->mn", a.reshape(a.shape[0], a.shape[1], -1), b.reshape(b.shape[0], b.shape[1], -1))
    a, b = a.reshape(a.shape[0], -1), b.reshape(b.shape[0], -1)
    with np.errstate(all="ignore"):
        return a.T @ b


def add_into(dst: Any, values: Any, accumulate: bool | None) -> bool:
    """Adds to what has been written before, and overwrites what has not. Whether anything was added to."""
    written = dst.touched()
    if accumulate is False or (accumulate is None and not written.any()):
        dst.write(values)
        return False
    values = np.asarray(values).reshape(dst.shape)
    before = dst.array.astype(F32)
    dst.write(before + values if written.all() else np.where(written, before + values, values))
    return True


def _added(dst: Any, accumulate: Any, product: Callable[[], Any]) -> bool:
    """Whether a product is added to what `dst` has; it is, where there is arithmetic."""
    if session().compute:
        return add_into(dst, product(), accumulate)
    dst.memory.written = True
    return bool(accumulate) or (accumulate is None and bool(dst.touched().all()))


def _in_sbuf(t: Any) -> Any:
    """neuronxcc's compiler copies an operand that is in PSUM."""
    if t.space != "psum":
        return t
    tile = fresh(t.shape, t.dtype)
    tensor_copy(tile, t)
    return tile


@instruction("nc_matmul")
def nc_matmul(dst: Any, stationary: Any, moving: Any, is_stationary_onezero: bool = False,
              is_moving_onezero: bool = False, is_transpose: bool = False, accumulate: Any = None,
              tile_position: Any = (), tile_size: Any = (), perf_mode: Any = None, name: Any = None) -> Any:
    s = session()
    if s.beta:
        stationary, moving = _in_sbuf(stationary), _in_sbuf(moving)
    _check_operands(dst, stationary, moving, is_transpose)
    if _double(perf_mode) and s.limits.generation < 3:
        s.warn(
            "chip",
            f"nc_matmul in perf_mode double_row on {s.limits.chip}; NeuronCore-v3 and later have it "
            "(nki.isa.nc_matmul)",
        )
    added = _added(dst, accumulate, lambda: _product(stationary, moving, _double(perf_mode)))
    attributes: dict[str, Any] = {"accumulate": int(added)}
    if is_transpose:
        attributes["transpose"] = 1
    if tile_position:
        attributes |= {"tile_row": tile_position[0], "tile_col": tile_position[1]}
    if tile_size:
        attributes |= {"tile_rows": tile_size[0], "tile_cols": tile_size[1]}
    if _double(perf_mode):
        attributes["mode"] = 1
    return emit("nc_matmul", (dst,), (stationary, moving), allowed=(PE,), name="nc_matmul", attributes=attributes)


def transposed(values: Any) -> Any:
    return values.reshape(values.shape[0], -1).T


@instruction("nc_transpose")
def nc_transpose(dst: Any, data: Any, engine: Any = None, name: Any = None) -> Any:
    free = data.size // data.shape[0]
    s = session()
    if free > ROWS:
        raise refuse(f"nc_transpose of {data!r}; expected at most {ROWS} elements a partition (nki.isa.nc_transpose)")
    if s.compute:
        let = let_in(data.shape)
        dst.write(transposed(data.read()), None if let is None else transposed(let))
    small = data.shape[0] <= 32 and free <= 32
    allowed = (PE,) if not small else (V,) if dst.space == "sbuf" else (PE, V)
    if engine is not None and name_of(engine) in ("vector", "vector_engine") and not small:
        text = f"nc_transpose of {data!r} on the vector engine; expected at most 32 x 32 (nki.isa.nc_transpose)"
        if s.strict and not s.beta:
            raise refuse(text)
        s.warn("transpose", text)  # neuronxcc's compiler takes it: a public kernel that was measured does so
        allowed = (V,)
    if dst.space == "sbuf" and not small and s.strict and not s.beta:
        raise refuse(f"nc_transpose of {data!r} into SBUF; expected PSUM beyond 32 x 32 (nki.isa.nc_transpose)")
    return emit("nc_transpose", (dst,), (data,), allowed=allowed, name="nc_transpose", engine=engine)


# Microscaling: a scale for 8 partitions x 4 elements, and four elements in one of the packed type.
GROUP = 8
SCALE_BIAS, NAN_SCALE = 127, 128  # a scale's byte is its exponent and 127; 255 is NaN, of a block that is not finite


def unpacked(t: Any) -> Any:
    """Elements of a packed tensor [P, ..., F] as f32 [P, F * 4]."""
    values = t.read()
    if values.dtype.names:
        part = values[values.dtype.names[0]]
        if part.dtype == np.uint8:
            part = _four_bits(part)
    else:
        part = values
    return part.reshape(t.shape[0], -1).astype(F32)


def _four_bits(pairs: Any) -> Any:
    import ml_dtypes

    both = np.stack([pairs & 15, pairs >> 4], axis=-1)
    return both.view(ml_dtypes.float4_e2m1fn).reshape(*pairs.shape[:-1], -1)


def _scales(t: Any, rows: int) -> Any:
    """One for each row: those of a group of rows stand in one partition of each quadrant."""
    exponents = t.read().reshape(t.shape[0], -1).astype(np.int32) - SCALE_BIAS
    scales = np.where(exponents == NAN_SCALE, np.nan, np.ldexp(1.0, exponents))
    out = np.empty((rows, exponents.shape[1]), F32)
    for row in range(rows):
        quadrant, inside = divmod(row, 32)
        out[row] = scales[min(quadrant * 32 + inside // GROUP, len(scales) - 1)]
    return out


@instruction("nc_matmul_mx")
def nc_matmul_mx(dst: Any, stationary: Any, moving: Any, stationary_scale: Any, moving_scale: Any,
                 tile_position: Any = None, tile_size: Any = None, accumulate: Any = None, name: Any = None) -> Any:
    def product() -> Any:
        k = stationary.shape[0]
        a = unpacked(stationary).reshape(k, -1, 4) * _scales(stationary_scale, k)[:, :, None]
        b = unpacked(moving).reshape(k, -1, 4) * _scales(moving_scale, k)[:, :, None]
        return np.einsum("kmf,knf->mn", a, b, optimize=True)

    added = _added(dst, accumulate, product)
    return emit("nc_matmul_mx", (dst,), (stationary, moving, stationary_scale, moving_scale), allowed=(PE,),
                name="nc_matmul_mx", attributes={"accumulate": int(added)})


@instruction("quantize_mx")
def quantize_mx(dst: Any, src: Any, dst_scale: Any, name: Any = None) -> Any:
    if session().compute:
        x = src.f32().reshape(src.shape[0], -1)
        rows, columns = x.shape
        element = dst.dtype.fields[dst.dtype.names[0]][0].base
        limit = float(finfo(element).max)
        exponent = _exponents(np.abs(x).reshape(rows // GROUP, GROUP, columns // 4, 4).max(axis=(1, 3)), limit)
        each = np.repeat(np.repeat(exponent, GROUP, axis=0), 4, axis=1)
        scaled = np.ldexp(np.where(each == NAN_SCALE, F32.type(0), x).astype(np.float64), -each)
        packed = np.clip(scaled, -limit, limit).astype(element).reshape(rows, columns // 4, 4)
        dst.array[dst.dtype.names[0]] = packed.reshape(*dst.shape, 4)
        dst.memory.written = True
        _store_scales(dst_scale, exponent)
    return emit("quantize_mx", (dst, dst_scale), (src,), allowed=(V,), name="quantize_mx")


def _exponents(largest: Any, limit: float) -> Any:
    """Of the scales of blocks, by the size of their largest number: twice what brings that to the exponent of the
    largest element, so that nothing saturates (nki.isa.quantize_mx)."""
    exponent = np.frexp(largest)[1] - np.frexp(limit)[1] + 1
    exponent = np.where(largest > 0, np.maximum(exponent, -SCALE_BIAS), -SCALE_BIAS)
    return np.where(np.isfinite(largest), exponent, NAN_SCALE)


def _store_scales(t: Any, exponent: Any) -> None:
    out = t.array.reshape(t.shape[0], -1).copy()
    for group, row in enumerate(exponent):
        quadrant, inside = divmod(group, 32 // GROUP)
        place = quadrant * 32 + inside if t.shape[0] > len(exponent) else group
        out[place, : len(row)] = (row + SCALE_BIAS).astype(np.uint8)
    t.write(out)
