"""nl's declarations, constants, random numbers and prints."""

from collections.abc import Callable
from typing import Any

import numpy as np

from trellis.nki.instructions.elementwise import memset
from trellis.nki.instructions.emit import G, V, emit, session
from trellis.nki.instructions.randoms import dropout as drop
from trellis.nki.instructions.randoms import generator
from trellis.nki.instructions.searches import nc_n_gather
from trellis.nki.kernels.allocation import declare, fresh, region_of
from trellis.nki.language.arithmetic import finish
from trellis.nki.language.assign import assign
from trellis.nki.language.functions import function, load
from trellis.nki.language.indices import mask_of
from trellis.nki.tensors.tensor import NkiTensor
from trellis.nki.tensors.types import to_dtype

__all__ = [
    "device_print", "dropout", "empty_like", "full", "gather_flattened", "ndarray", "ones", "rand",
    "random_seed", "shared_constant", "shared_identity_matrix", "zeros", "zeros_like",
]  # fmt: skip


@function("ndarray")
def ndarray(shape: Any, dtype: Any, buffer: Any = None, name: str = "", address: Any = None, **_: Any) -> Any:
    return declare(shape, dtype, buffer, name, address)


def _filled(shape: Any, dtype: Any, value: Any, buffer: Any, name: str) -> Any:
    tile = declare(shape, dtype, buffer, name)
    s = session()
    if tile.space == "psum" and s.beta and value == 0:
        tile.memory.written = True  # the first product overwrites
        return tile
    if tile.on_chip:
        memset(tile, value)
    elif s.compute or value:
        tile.write(np.asarray(value))
    return tile


@function("zeros")
def zeros(shape: Any, dtype: Any, buffer: Any = None, name: str = "", **_: Any) -> Any:
    return _filled(shape, dtype, 0, buffer, name)


@function("ones")
def ones(shape: Any, dtype: Any, buffer: Any = None, name: str = "", **_: Any) -> Any:
    return _filled(shape, dtype, 1, buffer, name)


@function("full")
def full(shape: Any, fill_value: Any, dtype: Any, buffer: Any = None, name: str = "", **_: Any) -> Any:
    return _filled(shape, dtype, fill_value, buffer, name)


@function("zeros_like")
def zeros_like(x: Any = None, dtype: Any = None, buffer: Any = None, name: str = "", a: Any = None, **_: Any) -> Any:
    x = a if x is None else x
    return _filled(x.shape, dtype or x.dtype, 0, buffer or region_of(x), name)


@function("empty_like")
def empty_like(x: Any = None, dtype: Any = None, buffer: Any = None, name: str = "", a: Any = None, **_: Any) -> Any:
    x = a if x is None else x
    return declare(x.shape, dtype or x.dtype, buffer or region_of(x), name)


@function("shared_constant")
def shared_constant(constant: Any, dtype: Any = None, **_: Any) -> Any:
    values = np.load(constant) if isinstance(constant, str) else np.asarray(constant)
    kind = to_dtype(dtype) if dtype is not None else to_dtype(values.dtype)
    tensor = declare(values.shape, kind, "shared_hbm", "constant", role="input")
    tensor.write(values)
    return tensor


@function("shared_identity_matrix")
def shared_identity_matrix(n: int, dtype: Any = np.uint8, dst: Any = None, **_: Any) -> Any:
    made = shared_constant(np.eye(n), dtype)
    if dst is not None:
        assign(dst, (slice(None), slice(None)), load(made))
        return dst
    return made if session().beta else load(made)


@function("rand")
def rand(shape: Any, dtype: Any = np.float32, buffer: Any = None, name: str = "", **_: Any) -> Any:
    tile = declare(shape, dtype, buffer, name)
    tile.write(generator().random(tile.shape, dtype=np.float32))
    emit("rng", (tile,), (), allowed=(V, G), name="rand")
    return tile


@function("random_seed")
def random_seed(seed: Any, mask: Any = None, **_: Any) -> None:
    value = int(seed.read().reshape(-1)[0]) if isinstance(seed, NkiTensor) else int(seed)
    session().random = np.random.default_rng(abs(value))


def _masked(dst: NkiTensor, mask: Any, work: Callable[..., Any], *operands: Any) -> NkiTensor:
    """The result of an instruction under a mask."""
    s = session()
    s.mask = let = mask_of(mask)
    try:
        made = work(dst, *operands)
    finally:
        s.mask = None
    return finish(dst, made, let)


@function("dropout")
def dropout(x: Any, rate: Any, dtype: Any = None, mask: Any = None, **_: Any) -> Any:
    dst = fresh(x.shape, to_dtype(dtype) if dtype else x.dtype)
    return _masked(dst, mask, drop, x, rate)


@function("gather_flattened")
def gather_flattened(data: Any, indices: Any, axis: int = 0, dtype: Any = None, mask: Any = None, **_: Any) -> Any:
    dst = fresh(indices.shape, to_dtype(dtype) if dtype else data.dtype)
    return _masked(dst, mask, nc_n_gather, data, indices)


@function("device_print")
def device_print(print_prefix: Any = "", tensor: Any = None, mask: Any = None, prefix: Any = None, x: Any = None,
                 **_: Any) -> None:
    shown = tensor if tensor is not None else x
    if session().prints:
        print(print_prefix or prefix or "", shown.array if isinstance(shown, NkiTensor) else shown)
