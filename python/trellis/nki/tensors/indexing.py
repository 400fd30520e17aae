"""What a tensor's brackets mean: whole numbers, slices, nl.ds, arrays of indices, and tensors as indices."""

from typing import Any, NamedTuple

import numpy as np

from trellis.nki.kernels.session import broken, refuse, session
from trellis.nki.tensors.affine import Affine, as_affine, from_affine
from trellis.nki.tensors.registers import VirtualRegister, number


class DynSlice(NamedTuple):
    """nl.ds(start, size): a slice whose start may be a register."""

    start: Any
    size: int
    step: int = 1


def _expanded(t: Any, key: Any) -> list[Any]:
    """One index for each dimension, None where a new one is wanted."""
    parts = list(key) if isinstance(key, tuple) else [key]
    used = sum(1 for p in parts if p is not None and p is not Ellipsis)
    missing = t.ndim - used
    if missing < 0:
        raise refuse(f"{used} indices of {t!r}, which has {t.ndim} dimensions")
    out: list[Any] = []
    dotted = False
    for p in parts:
        if p is Ellipsis:
            out += [slice(None)] * (0 if dotted else missing)
            dotted = True
        else:
            out.append(p)
    if not dotted:
        out += [slice(None)] * missing
    return out


def _simple(p: Any) -> Any:
    """An index without registers; arrays stay arrays."""
    if type(p) is int or type(p) is slice or p is None:
        return p
    if isinstance(p, DynSlice):
        start = p.start if isinstance(p.start, np.ndarray) and p.start.ndim else number(p.start)
        return slice(start, start + int(p.size) * int(p.step), int(p.step))
    if isinstance(p, (int, np.integer, VirtualRegister)):
        return int(p)
    if isinstance(p, np.ndarray):
        return int(p) if p.ndim == 0 else p.view(np.ndarray)
    if isinstance(p, (list, range)):
        return np.asarray(p)
    if hasattr(p, "memory"):
        return p
    try:
        return int(p)
    except (TypeError, ValueError):
        raise refuse(f"{p!r} ({type(p).__name__}) as an index; expected a number, a slice, nl.ds or indices") from None


def view_at(t: Any, key: Any) -> Any:
    """t[key]."""
    if isinstance(key, (bool, np.bool_, np.ndarray)) and np.asarray(key).dtype == bool and session().beta:
        return _under_mask(t, np.asarray(key))
    parts = [_simple(p) for p in _expanded(t, key)]
    if t.flat is not None:
        return _gathered_at(t, parts)
    if any(isinstance(p, np.ndarray) or hasattr(p, "memory") for p in parts):
        return _by_arrays(t, parts)
    return _by_slices(t, parts)


def _under_mask(t: Any, mask: Any) -> Any:
    """neuronxcc's tile[predicate]: the same tile, of which an instruction takes what the predicate lets through."""
    if mask.all():
        return t
    try:
        inside = np.broadcast_to(mask, t.shape)
    except ValueError:
        raise refuse(f"a predicate of {list(mask.shape)} on {t!r}; expected one that broadcasts to its shape") from None
    other = t.like(t.shape, t.strides, t.offset, partition=t.partition)
    other.flat, other.index = t.flat, t.index
    if other.flat is None:
        other.flat = t.offset + sum(np.indices(t.shape, sparse=True)[d] * stride for d, stride in enumerate(t.strides))
    other.valid = inside if t.valid is None else inside & t.valid
    return other


def _slice_of(p: slice, n: int, t: Any, d: int) -> tuple[int, int, int]:
    """First, count and step."""
    step = 1 if p.step is None else number(p.step)
    first = 0 if p.start is None else number(p.start)
    stop = n if p.stop is None else number(p.stop)
    first = first + n if first < 0 else first
    stop = stop + n if stop < 0 else stop
    if first < 0 or (stop > n and session().beta is False):
        raise refuse(f"[{first}:{stop}] of dimension {d} of {t!r}, which has {n} elements: out of bounds")
    if session().beta is False and (step < 1 or first >= stop) and n:
        broken("slice", f"[{first}:{stop}{f':{step}' if step != 1 else ''}] of dimension {d} of {t!r}; expected a "
               "start before the end, and a step of 1 or more (nki.language.NkiTensor.slice)")  # fmt: skip
    count = max(0, -(-(stop - first) // step))
    return first, count, step


def _by_slices(t: Any, parts: list[Any]) -> Any:
    shape: list[int] = []
    strides: list[int] = []
    offset, d, partition, beyond = t.offset, 0, 0, False
    chip = t.on_chip
    for p in parts:
        if p is None:
            shape.append(1)
            strides.append(1)
            continue
        n, s = t.shape[d], t.strides[d]
        if type(p) is int:
            p = p + n if p < 0 else p
            if p >= n or p < 0:
                raise refuse(f"index {p} of dimension {d} of {t!r}, which has {n} elements: out of bounds")
            offset += p * s
            if chip and d == t.partition:
                partition = len(shape)
                shape.append(1)
                strides.append(s)
        else:
            first, count, step = _slice_of(p, n, t, d)
            beyond = beyond or first + (count - 1) * step >= n
            offset += first * s
            if d == t.partition:
                partition = len(shape)
            shape.append(count)
            strides.append(s * step)
        d += 1
    if chip and len(shape) == 1:
        shape.append(1)
        strides.append(1)
    if not shape:
        shape, strides = [1], [1]
    found = t.like(tuple(shape), tuple(strides), offset, partition=partition)
    found.element = all(type(p) is int for p in parts)
    if beyond:
        return _beyond(t, parts, found)
    return found


def _beyond(t: Any, parts: list[Any], found: Any) -> Any:
    """A slice that leaves the tensor, which a mask must close (neuronxcc's dialect)."""
    indices = []
    rank = sum(1 for p in parts if type(p) is slice)
    axis = 0
    for d, p in enumerate(q for q in parts if q is not None):
        if type(p) is int:
            indices.append(np.asarray(p))
        else:
            first, count, step = _slice_of(p, t.shape[d], t, d)
            indices.append(
                (first + np.arange(count) * step).reshape(tuple(count if a == axis else 1 for a in range(rank)))
            )
            axis += 1
    flat, valid = _places(t, indices)
    found.flat, found.valid = flat.reshape(found.shape), valid.reshape(found.shape) if valid is not None else None
    return found


def _places(t: Any, indices: list[Any]) -> tuple[Any, Any]:
    """Places in memory, and which are inside; of indices that broadcast together."""
    flat: Any = np.asarray(t.offset, np.int64)
    valid: Any = None
    for i, n, s in zip(indices, t.shape, t.strides, strict=True):
        i = i.astype(np.int64) if isinstance(i, np.ndarray) else np.asarray(i, np.int64)
        flat = flat + i * s
        if i.size and (int(i.min()) < 0 or int(i.max()) >= n):
            inside = (i >= 0) & (i < n)
            valid = inside if valid is None else valid & inside
    shape = np.broadcast_shapes(flat.shape, *(np.shape(i) for i in indices))
    return np.broadcast_to(flat, shape), None if valid is None else np.broadcast_to(valid, shape)


def _arrays_of(t: Any, parts: list[Any]) -> tuple[list[Any], Any]:
    """Every index as an array, slices along axes of their own behind the arrays' axes; and the tensor among them."""
    chosen, index = [], None
    for p in parts:
        if hasattr(p, "memory"):
            index = p
            values = p.read().astype(np.int64)
            chosen.append(values.reshape(()) if p.element else values)
        else:
            chosen.append(p)
    parts = chosen
    rank = max((np.ndim(p) for p in parts if isinstance(p, np.ndarray)), default=0)
    slices = [k for k, p in enumerate(parts) if type(p) is slice]
    out = []
    for d, p in enumerate(parts):
        if type(p) is slice:
            first, count, step = _slice_of(p, t.shape[d], t, d)
            axis = slices.index(d)
            line = first + np.arange(count) * step
            place = [1] * (rank + len(slices))
            place[_axis(parts, rank, slices, axis)] = count
            out.append(line.reshape(place))
        elif isinstance(p, np.ndarray):
            out.append(_beside(p, parts, rank, slices))
        else:
            out.append(np.asarray(p))
    return out, index


def _axis(parts: list[Any], rank: int, slices: list[int], axis: int) -> int:
    """Where a slice's axis stands: before the arrays' axes if it is left of them all, else behind."""
    first = next(k for k, p in enumerate(parts) if isinstance(p, np.ndarray))
    return axis if slices[axis] < first else rank + axis


def _beside(p: Any, parts: list[Any], rank: int, slices: list[int]) -> Any:
    if not slices:
        return p
    first = next(k for k, q in enumerate(parts) if isinstance(q, np.ndarray))
    before = sum(1 for k in slices if k < first)
    own = (1,) * (rank - p.ndim) + p.shape
    return p.reshape((1,) * before + own + (1,) * (len(slices) - before))


def _reach(index: Any, found: Affine | None) -> tuple[int, int]:
    """The least and the greatest of an array of indices."""
    if found is None:
        return (int(index.min()), int(index.max())) if index.size else (0, 0)
    ends = [step * (n - 1) for step, n in zip(found.steps, index.shape, strict=True)]
    return found.base + sum(e for e in ends if e < 0), found.base + sum(e for e in ends if e > 0)


def _by_arrays(t: Any, parts: list[Any]) -> Any:
    if any(p is None for p in parts):
        raise refuse("a new dimension beside arrays of indices")
    indices, index = _arrays_of(t, parts)
    shape = np.broadcast_shapes(*(i.shape for i in indices))
    steps, offset, affine, inside = [0] * len(shape), t.offset, index is None, True
    for i, n, s in zip(indices, t.shape, t.strides, strict=True):
        found = as_affine(i)
        low, high = _reach(i, found)
        inside = inside and low >= 0 and high < n
        if found is None or not affine:
            affine = False
            continue
        offset += found.base * s
        for k, step in enumerate(found.steps):
            steps[len(shape) - i.ndim + k] += step * s
    shape = tuple(shape) or (1,)
    steps = steps or [0]
    out = t.like(shape, tuple(steps), offset, partition=0)
    if not affine or not inside:
        flat, valid = _places(t, indices)
        out.flat, out.valid = flat.reshape(shape), None if valid is None else valid.reshape(shape)
        out.index = index
    if t.on_chip and len(shape) == 1:
        out = out.expand_dim(1) if out.flat is None else out.reshape((shape[0], 1))
    return out


def _gathered_at(t: Any, parts: list[Any]) -> Any:
    """Brackets of what has no strides: numpy's."""
    key = tuple(p.read().astype(np.int64) if hasattr(p, "memory") else p for p in parts)
    if t.on_chip:
        key = tuple(slice(p, p + 1) if k == 0 and type(p) is int else p for k, p in enumerate(key))
    flat = np.broadcast_to(t.flat, t.shape)[key]
    shape = flat.shape or (1,)
    return t._gathered(shape, lambda a: a[key].reshape(shape))


def _whole(t: Any) -> str:
    """The buffer that a tensor is a part of, in words."""
    buffer = session().trace.buffers[t.memory.buffer]
    return f"{buffer.name}({list(buffer.shape)} {t.dtype} in {buffer.space})"


def under(t: Any, mask: Any) -> Any:
    """The tensor, with the box of what a mask lets through noted for the trace; refuses what is outside and
    unmasked."""
    outside = t.valid is not None and not bool(t.valid.all())
    if mask is None:
        if outside:
            raise refuse(f"indices of {list(t.shape)} elements reach outside of {_whole(t)}, and there is no mask")
        return t
    if outside and bool((np.broadcast_to(mask, t.shape) & ~t.valid).any()):
        raise refuse(f"the mask lets indices of {list(t.shape)} elements outside of {_whole(t)} through")
    mask = np.broadcast_to(mask, t.shape)
    bounds = []
    for axis in range(t.ndim):
        kept = mask.any(axis=tuple(a for a in range(t.ndim) if a != axis)).nonzero()[0]
        bounds.append((int(kept[0]), int(kept[-1]) - int(kept[0]) + 1) if len(kept) else (0, 0))
    if any(n != count for (_, count), n in zip(bounds, t.shape, strict=True)):
        t.bounds = bounds
    return t


__all__ = ["DynSlice", "from_affine", "under", "view_at"]
