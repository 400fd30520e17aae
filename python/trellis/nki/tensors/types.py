"""Types of elements: numpy's own, those of ml_dtypes, and four small floats packed in one element (x4)."""

import contextlib
from typing import Any

import ml_dtypes
import numpy as np

__all__ = [
    "BF16", "bits_type", "convert", "F32", "is_float", "is_integer", "through_f32", "to_dtype", "trellis_name", "TYPES",
    "U8",
]  # fmt: skip


def _packed(name: str, element: Any) -> np.dtype[Any]:
    return np.dtype([(name, element, (4,))])


# By NKI's name: numpy's type, and Trellis's name.
TYPES: dict[str, tuple[np.dtype[Any], str]] = {
    "bool_": (np.dtype(np.bool_), "u8"),
    "int8": (np.dtype(np.int8), "i8"),
    "int16": (np.dtype(np.int16), "i16"),
    "int32": (np.dtype(np.int32), "i32"),
    "int64": (np.dtype(np.int64), "i64"),
    "uint8": (np.dtype(np.uint8), "u8"),
    "uint16": (np.dtype(np.uint16), "u16"),
    "uint32": (np.dtype(np.uint32), "u32"),
    "uint64": (np.dtype(np.uint64), "u64"),
    "float16": (np.dtype(np.float16), "f16"),
    "float32": (np.dtype(np.float32), "f32"),
    "float64": (np.dtype(np.float64), "f64"),
    "bfloat16": (np.dtype(ml_dtypes.bfloat16), "bf16"),
    "tfloat32": (np.dtype(np.float32), "tf32"),
    "float8_e4m3": (np.dtype(ml_dtypes.float8_e4m3), "f8e4m3"),
    "float8_e4m3fn": (np.dtype(ml_dtypes.float8_e4m3fn), "f8e4m3fn"),
    "float8_e5m2": (np.dtype(ml_dtypes.float8_e5m2), "f8e5m2"),
    "float8_e8m0fnu": (np.dtype(ml_dtypes.float8_e8m0fnu), "u8"),
    "float8_e4m3fn_x4": (_packed("float8_e4m3fn_x4", ml_dtypes.float8_e4m3fn), "u32"),
    "float8_e5m2_x4": (_packed("float8_e5m2_x4", ml_dtypes.float8_e5m2), "u32"),
    "float4_e2m1fn_x4": (np.dtype([("float4_e2m1fn_x4", np.uint8, (2,))]), "u16"),
}

F32 = np.dtype(np.float32)
BF16 = TYPES["bfloat16"][0]
U8 = np.dtype(np.uint8)
_TRELLIS = {dtype: name for key, (dtype, name) in TYPES.items() if key != "tfloat32"}
_FLOATS = {
    dtype for key, (dtype, _) in TYPES.items() if key.startswith(("float", "bfloat", "tfloat")) and not dtype.names
}
_known: dict[Any, np.dtype[Any]] = {}


def to_dtype(given: Any) -> np.dtype[Any]:
    """Numpy's type for a type, its name, or what numpy takes for one (torch's and jax's by their names)."""
    try:
        known: np.dtype[Any] = _known[given]
        return known
    except (KeyError, TypeError):
        pass
    found: np.dtype[Any] = given if isinstance(given, np.dtype) else _by_name(given)
    with contextlib.suppress(TypeError):
        _known[given] = found
    return found


def _by_name(given: Any) -> np.dtype[Any]:
    if given is bool:
        return np.dtype(np.bool_)
    name = given if isinstance(given, str) else str(given)
    name = name.removeprefix("torch.").removeprefix("jnp.")
    name = {"bool": "bool_", "float": "float32", "half": "float16"}.get(name, name)
    if name in TYPES:
        known: np.dtype[Any] = TYPES[name][0]
        return known
    try:
        return _plain(given)
    except TypeError:
        raise TypeError(f"{given!r} is no type of elements; expected one of {', '.join(TYPES)}") from None


def _plain(given: Any) -> np.dtype[Any]:
    made: np.dtype[Any] = np.dtype(given)
    return made


def trellis_name(dtype: np.dtype[Any]) -> str:
    return _TRELLIS.get(dtype, "u8")


def bits_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The unsigned numbers of a type's size."""
    return np.dtype(f"u{dtype.itemsize}")


def is_float(dtype: np.dtype[Any]) -> bool:
    return dtype in _FLOATS


def is_integer(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "iub"


def through_f32(values: Any, dtype: np.dtype[Any]) -> Any:
    """What a copy reads, by an engine or by DMA, for elements of a type: itself where the types are alike, else f32.
    Integers of 64 bits, which NKI lacks, stay exact."""
    if values.dtype == dtype or values.dtype.names or dtype.names:
        return values
    wide = 8 in (values.dtype.itemsize, dtype.itemsize) and is_integer(values.dtype) and is_integer(dtype)
    return values if wide else values.astype(F32, copy=False)


def convert(values: Any, dtype: np.dtype[Any]) -> Any:
    """Values as elements of a type: floats to the nearest; to integers the nearest even, and no further than they
    go."""
    if values.dtype == dtype:
        return values
    if dtype.kind in "iu" and values.dtype.kind not in "iub":
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        wide = np.rint(np.nan_to_num(values.astype(np.float64), posinf=high, neginf=low))
        if dtype.itemsize < 8:
            return np.clip(wide, low, high).astype(dtype)
        # As an f64 the highest is rounded up, out of the type.
        inside = np.clip(wide, low, np.nextafter(float(high), 0))
        return np.where(wide < float(high), inside.astype(dtype), dtype.type(high))
    if dtype.kind == "b":
        return values != 0
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(dtype)
