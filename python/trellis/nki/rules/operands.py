"""What nki.isa's pages ask of an instruction's operands and chip, by the names of its parameters."""

import functools
from collections.abc import Callable
from typing import Any

from trellis.nki.instructions.emit import IMPLEMENTATIONS
from trellis.nki.kernels.session import broken, session
from trellis.nki.tensors.tensor import NkiTensor
from trellis.nki.tensors.types import F32

__all__ = ["checked"]

# Operands with as many partitions, and as many elements in each.
ALIKE = {
    "activate2": ("dst", "data"), "activation": ("dst", "data"), "affine_select": ("dst", "on_true_tile"),
    "exponential": ("dst", "src"), "reciprocal": ("dst", "data"), "scalar_tensor_tensor": ("dst", "data", "operand1"),
    "select_reduce": ("dst", "on_true", "predicate"), "sendrecv": ("dst", "src"), "tensor_copy": ("dst", "src"),
    "tensor_copy_predicated": ("dst", "src", "predicate"), "tensor_tensor": ("dst", "data1", "data2"),
    "tensor_tensor_scan": ("data0", "data1"),
}  # fmt: skip
# The NeuronCore that first has an instruction.
SINCE = {"activate2": 4, "core_barrier": 3, "exponential": 4, "nc_matmul_mx": 4, "nonzero_with_count": 3,
         "quantize_mx": 4, "rand2": 4, "rand_get_state": 3, "rand_set_state": 3, "range_select": 3,
         "sendrecv": 3}  # fmt: skip


def _size(t: NkiTensor) -> tuple[int, int]:
    return t.shape[0], t.size // max(t.shape[0], 1)


def _alike(name: str, given: dict[str, Any]) -> None:
    tiles = [(key, given[key]) for key in ALIKE[name] if isinstance(given.get(key), NkiTensor)]
    for key, t in tiles[1:]:
        first, (rows, elements) = tiles[0], _size(tiles[0][1])
        if _size(t) != (rows, elements):
            broken("shape", f"{name} with {first[0]} {first[1]!r} and {key} {t!r}; expected as many partitions and as "
                   f"many elements in each (nki.isa.{name})")  # fmt: skip


def _product(dst: NkiTensor, stationary: NkiTensor, moving: NkiTensor, double: bool) -> None:
    (m, n), depth = (t.size // max(t.shape[0], 1) for t in (stationary, moving)), 2 if double else 1
    if _size(dst) != (m // depth, n // depth):
        broken("shape", f"nc_matmul of {stationary!r} by {moving!r} into {dst!r}; expected {m // depth} partitions of "
               f"{n // depth} elements (nki.isa.nc_matmul)")  # fmt: skip


def _types(name: str, given: dict[str, Any]) -> None:
    dst = given["dst"]
    if name == "nc_transpose" and dst.dtype != given["data"].dtype:
        broken("type", f"nc_transpose of {given['data']!r} into {dst!r}; expected one type (nki.isa.nc_transpose)")
    if name == "nc_matmul" and dst.dtype != F32 and not given["is_transpose"] and session().limits.generation < 4:
        broken("type", f"nc_matmul into {dst!r} on {session().limits.chip}; expected float32, and from NeuronCore-v4 "
               "on bfloat16 as well (nki.isa.nc_matmul)")  # fmt: skip


@functools.cache
def checked(name: str) -> Callable[..., Any]:
    """An instruction's work behind the checks of its operands."""
    work = IMPLEMENTATIONS[name]
    if name not in ALIKE and name not in SINCE and name not in ("nc_matmul", "nc_transpose"):
        return work

    @functools.wraps(work)
    def call(**given: Any) -> Any:
        s = session()
        if s.limits.generation < SINCE.get(name, 0):
            later = " and later" if SINCE[name] < 4 else ""
            s.warn("chip", f"{name} on {s.limits.chip}; NeuronCore-v{SINCE[name]}{later} has it (nki.isa.{name})")
        if name in ALIKE:
            _alike(name, given)
        elif name == "nc_matmul":
            double = given["perf_mode"] is not None and str(getattr(given["perf_mode"], "name", "")).startswith(
                "double_row"
            )
            _product(given["dst"], given["stationary"], given["moving"], double)
        if name in ("nc_matmul", "nc_transpose"):
            _types(name, given)
        return work(**given)

    return call
