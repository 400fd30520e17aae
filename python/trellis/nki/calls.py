"""What a call of a kernel takes and gives, without data: for programs that price a job which calls it.

>>> import trellis.nki as nki
>>> from trellis.nki.calls import price_of
>>> @nki.jit
... def doubled(x):
...     out = nki.language.ndarray(x.shape, dtype=x.dtype, buffer=nki.language.shared_hbm)
...     tile = nki.language.ndarray(x.shape, dtype=x.dtype, buffer=nki.language.sbuf)
...     nki.isa.dma_copy(dst=tile, src=x)
...     nki.isa.tensor_scalar(dst=tile, data=tile, op0=nki.language.multiply, operand0=2.0)
...     nki.isa.dma_copy(dst=out, src=tile)
...     return out
>>> price = price_of(doubled, nki.calls.Absent((128, 512), "float32"))
>>> price.results
(((128, 512), 'f32'),)
>>> 0 < price.low < price.seconds < price.high
True
"""

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from trellis.nki.kernels.arguments import Absent, as_array
from trellis.nki.kernels.jit import Kernel, chip_for
from trellis.nki.tensors.types import to_dtype, trellis_name

__all__ = ["Absent", "CallPrice", "price_of"]


@dataclass(frozen=True)
class CallPrice:
    """Seconds with an interval, the results' shapes and types, and the work."""

    seconds: float
    low: float
    high: float
    results: tuple[tuple[tuple[int, ...], str], ...]
    flops: float
    hbm_bytes: float
    instructions: int


_known: dict[Any, CallPrice] = {}
MOST_KNOWN = 1_000


def absent(x: Any) -> Any:
    """What has a shape and a type, such as a tensor of torch without data, as an argument without data."""
    if isinstance(x, Absent):
        return Absent(tuple(x.shape), to_dtype(x.dtype))
    if isinstance(x, (list, tuple)) and not hasattr(x, "_fields"):
        return type(x)(absent(e) for e in x)
    if isinstance(x, dict):
        return {k: absent(v) for k, v in x.items()}
    if hasattr(x, "shape") and hasattr(x, "dtype") and len(x.shape) > 0:
        return Absent(tuple(int(n) for n in x.shape), to_dtype(str(x.dtype).removeprefix("torch.")))
    return x


class Same:
    """An object in a key: itself alone. The key keeps it, so that no other takes its place in memory."""

    def __init__(self, x: Any) -> None:
        self.x = x

    def __hash__(self) -> int:
        return id(self.x)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.x is self.x


PLAIN = (int, str, bytes, type(None), type, Enum, np.dtype, np.generic, Absent)


def known(x: Any, within: tuple[int, ...] = ()) -> Any:
    """An argument in a key: equal to another that a kernel cannot tell from it. Objects are told by what they hold."""
    if isinstance(x, PLAIN) or id(x) in within:
        return (type(x), within.index(id(x)) if id(x) in within else x)
    inner = (*within, id(x))
    if isinstance(x, float):
        return (float, x.hex())
    if isinstance(x, (list, tuple)):
        return (type(x), *(known(e, inner) for e in x))
    if isinstance(x, dict):
        return (type(x), *((known(k, inner), known(v, inner)) for k, v in x.items()))
    if isinstance(x, (set, frozenset)):
        return (type(x), frozenset(known(e, inner) for e in x))
    if isinstance(x, (complex, range, slice)):
        return (type(x), repr(x))
    try:
        array = as_array(x)
    except (RuntimeError, TypeError, KeyError):  # a tensor of torch without data
        return Same(x)
    if array is not None:
        return (type(x), array.shape, str(array.dtype), array.tobytes())
    held = {} if callable(x) else _attributes(x)
    return (type(x), *((k, known(v, inner)) for k, v in held.items())) if held else Same(x)


def _attributes(x: Any) -> dict[str, Any]:
    slots = [getattr(c, "__slots__", ()) for c in type(x).__mro__]
    names = [n for s in slots for n in ((s,) if isinstance(s, str) else s)]
    return {n: getattr(x, n) for n in names if hasattr(x, n)} | getattr(x, "__dict__", {})


def price_of(kernel: Kernel, *args: Any, chip: str = "", **kwargs: Any) -> CallPrice:
    """Traces the kernel without arithmetic, once for each set of shapes and values."""
    from trellis.nki.timing import time_of

    given, named = tuple(absent(a) for a in args), {k: absent(v) for k, v in kwargs.items()}
    chip = chip or chip_for(kernel.options.get("platform_target"))
    key = (kernel.func, kernel.beta, chip, known(kernel.grid), known(kernel.options), known(given), known(named))
    if key not in _known:
        if len(_known) >= MOST_KNOWN:
            _known.clear()
        results = kernel.launch(given, named, compute=False, chip=chip)
        t = time_of(kernel.trace)  # type: ignore[arg-type]
        several = results if isinstance(results, (tuple, list)) else () if results is None else (results,)
        shapes = tuple((tuple(r.shape), trellis_name(r.dtype)) for r in several)
        _known[key] = CallPrice(
            t.seconds, t.least, t.most, shapes, t.roofline["flops"], t.roofline["hbm_bytes"], t.instructions
        )
    return _known[key]
