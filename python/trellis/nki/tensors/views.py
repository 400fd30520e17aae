"""Other shapes, orders and types of a tensor's elements. Nothing is copied."""

from math import prod
from typing import Any

import numpy as np

from trellis.nki.kernels.session import active, broken, refuse, session
from trellis.nki.tensors.types import to_dtype

__all__ = ["Reshaping"]


def _positive(dim: int, ndim: int) -> int:
    if not -ndim <= dim < ndim:
        raise refuse(f"dimension {dim} of a tensor that has {ndim}")
    return dim % ndim


def reshaped_strides(shape: tuple[int, ...], strides: tuple[int, ...], to: tuple[int, ...]) -> tuple[int, ...] | None:
    """The strides of a new shape over the same elements in the same order; None where there are none."""
    old = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    groups: list[list[int]] = []  # count, innermost stride
    for n, s in old:
        if groups and groups[-1][1] == n * s:
            groups[-1] = [groups[-1][0] * n, s]
        else:
            groups.append([n, s])
    out: list[int] = []
    for n in reversed(to):
        if n == 1:
            out.append(1)
            continue
        if not groups or groups[-1][0] % n:
            return None
        count, stride = groups[-1]
        out.append(stride)
        if count == n:
            groups.pop()
        else:
            groups[-1] = [count // n, stride * n]
    return None if groups else tuple(reversed(out))


class Reshaping:
    """The methods of a tensor that give other views of it."""

    __slots__ = ()
    memory: Any
    dtype: Any
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    partition: int
    flat: Any
    valid: Any
    like: Any

    @property
    def T(self) -> Any:  # noqa: N802 (numpy's name)
        return self.permute(tuple(range(len(self.shape)))[::-1])

    def is_contiguous(self) -> bool:
        dims = list(zip(self.shape, self.strides, strict=True))
        if self.memory.space != "hbm":
            dims = dims[1:]
        step = 1
        for n, s in reversed(dims):
            if n != 1 and s != step:
                return False
            step *= n
        return True

    def get_pattern(self) -> list[list[int]]:
        return [[s, n] for n, s in zip(self.shape, self.strides, strict=True)]

    def is_indirect(self) -> bool:
        return self.flat is not None

    def _gathered(self, shape: tuple[int, ...], transform: Any) -> Any:
        """The same change made to the places of elements that have no strides."""
        t = self.like(shape, (0,) * len(shape), self.offset)
        t.flat = transform(np.broadcast_to(self.flat, self.shape))
        t.valid = None if self.valid is None else transform(np.broadcast_to(self.valid, self.shape))
        return t

    def _viewed(self, shape: tuple[int, ...], strides: tuple[int, ...], transform: Any) -> Any:
        """By strides; where there are none, what the transform makes of the places."""
        return self.like(shape, strides, self.offset) if self.flat is None else self._gathered(shape, transform)

    def _keep_partitions(self, kept: bool, what: str) -> None:
        """On chip nki's views leave the first dimension, that of partitions, as it is."""
        if not kept and self.memory.space != "hbm" and not (active() and session().beta):
            broken("view", f"{what} of {self!r}, whose first dimension is of partitions; expected another, or a copy "
                   "that moves elements between them (nki.language.NkiTensor)")  # fmt: skip

    def reshape(self, *sizes: Any, shape: Any = ()) -> Any:
        sizes = sizes or (tuple(shape),)
        to = tuple(sizes[0]) if len(sizes) == 1 and not isinstance(sizes[0], (int, np.integer)) else sizes
        total = prod(self.shape)
        to = tuple(int(n) for n in to)
        if -1 in to:
            rest = prod(n for n in to if n != -1)
            to = tuple(total // rest if n == -1 else n for n in to)
        if prod(to) != total:
            raise refuse(f"reshape of {list(self.shape)} ({total} elements) to {list(to)} ({prod(to)} elements)")
        self._keep_partitions(to[:1] == tuple(self.shape[:1]), f"reshape to {list(to)}")
        if self.flat is not None:
            return self._gathered(to, lambda a: a.reshape(to))
        strides = reshaped_strides(self.shape, self.strides, to)
        if strides is None:
            raise refuse(f"reshape of {list(self.shape)} to {list(to)}: its elements do not lie so (strides "
                         f"{list(self.strides)})")
        return self.like(to, strides, self.offset, partition=0)

    def permute(self, *dims: Any) -> Any:
        order = tuple(dims[0]) if len(dims) == 1 and not isinstance(dims[0], int) else dims
        if sorted(order) != list(range(len(self.shape))):
            raise refuse(f"permute by {list(order)}; expected each of 0 to {len(self.shape) - 1} once")
        self._keep_partitions(tuple(order[:1]) in ((0,), ()), f"permute by {list(order)}")
        shape = tuple(self.shape[d] for d in order)
        if self.flat is not None:
            return self._gathered(shape, lambda a: a.transpose(order))
        strides = tuple(self.strides[d] for d in order)
        return self.like(shape, strides, self.offset, partition=order.index(self.partition))

    def transpose(self, *dims: Any) -> Any:
        return self.permute(*dims) if dims else self.T

    def broadcast(self, dim: int, size: int) -> Any:
        dim = _positive(dim, len(self.shape))
        if self.shape[dim] != 1:
            raise refuse(f"broadcast of dimension {dim}, which has {self.shape[dim]} elements; expected 1")
        self._keep_partitions(dim > 0, "broadcast of dimension 0")
        shape = (*self.shape[:dim], int(size), *self.shape[dim + 1:])
        strides = (*self.strides[:dim], 0, *self.strides[dim + 1:])
        return self._viewed(shape, strides, lambda a: np.broadcast_to(a, shape))

    def broadcast_to(self, shape: Any) -> Any:
        shape = tuple(shape)
        lead = len(shape) - len(self.shape)
        strides = [0] * lead
        for n, s, to in zip(self.shape, self.strides, shape[lead:], strict=True):
            if n not in (1, to):
                raise refuse(f"broadcast of {list(self.shape)} to {list(shape)}")
            strides.append(s if n == to else 0)
        return self._viewed(shape, tuple(strides), lambda a: np.broadcast_to(a, shape))

    def expand_dim(self, dim: int) -> Any:
        dim = dim % (len(self.shape) + 1)
        self._keep_partitions(dim > 0, "expand_dim before dimension 0")
        shape = (*self.shape[:dim], 1, *self.shape[dim:])
        return self._viewed(shape, (*self.strides[:dim], 1, *self.strides[dim:]), lambda a: a.reshape(shape))

    expand_dims = expand_dim

    def squeeze_dim(self, dim: int) -> Any:
        dim = _positive(dim, len(self.shape))
        if self.shape[dim] != 1:
            raise refuse(f"squeeze of dimension {dim}, which has {self.shape[dim]} elements; expected 1")
        self._keep_partitions(dim > 0, "squeeze of dimension 0")
        shape = (*self.shape[:dim], *self.shape[dim + 1:])
        return self._viewed(shape, (*self.strides[:dim], *self.strides[dim + 1:]), lambda a: a.reshape(shape))

    def reshape_dim(self, dim: int, shape: Any) -> Any:
        dim = _positive(dim, len(self.shape))
        return self.reshape((*self.shape[:dim], *self._completed(dim, tuple(shape)), *self.shape[dim + 1:]))

    def _completed(self, dim: int, shape: tuple[int, ...]) -> tuple[int, ...]:
        rest = prod(n for n in shape if n != -1)
        if self.shape[dim] % max(rest, 1):
            raise refuse(f"dimension {dim} of {self.shape[dim]} elements as {list(shape)}")
        return tuple(self.shape[dim] // rest if n == -1 else n for n in shape)

    def flatten_dims(self, start_dim: int, end_dim: int) -> Any:
        start, end = _positive(start_dim, len(self.shape)), _positive(end_dim, len(self.shape))
        return self.reshape((*self.shape[:start], prod(self.shape[start:end + 1]), *self.shape[end + 1:]))

    def rearrange(self, src_pattern: Any, dst_pattern: Any, fixed_sizes: dict[str, int] | None = None) -> Any:
        """Splits, orders and merges dimensions by their names."""
        sizes = dict(fixed_sizes or {})
        split: list[int] = []
        names: list[str] = []
        for part, n in zip(src_pattern, self.shape, strict=True):
            group = [part] if isinstance(part, str) else list(part)
            known = prod(sizes[g] for g in group if g in sizes)
            for g in group:
                sizes.setdefault(g, n // known)
            split += [sizes[g] for g in group]
            names += group
        groups = [[p] if isinstance(p, str) else list(p) for p in dst_pattern]
        order = [names.index(g) for group in groups for g in group]
        return self.reshape(tuple(split)).permute(tuple(order)).reshape(
            tuple(prod(sizes[g] for g in group) for group in groups))

    def reinterpreted(self, dtype: Any) -> Any:
        dtype = to_dtype(dtype)
        old, new = self.dtype.itemsize, dtype.itemsize
        if old == new:
            if self.flat is not None:
                t = self._gathered(self.shape, lambda a: a)
                t.dtype = dtype
                return t
            return self.like(self.shape, self.strides, self.offset, dtype=dtype)
        if self.flat is not None:
            raise refuse(f"{self!r} as {dtype}, of another size: its elements are reached by indices")
        if self.strides[-1] != 1 and self.shape[-1] != 1:
            raise refuse(f"{self!r} as {dtype}: the last dimension is not contiguous")
        if (self.shape[-1] * old) % new or (self.offset * old) % new:
            raise refuse(f"{self!r} as {dtype}: {self.shape[-1]} elements of {old} bytes are no whole number of {new}")
        strides = tuple(s * old // new for s in self.strides[:-1]) + (1,)
        shape = (*self.shape[:-1], self.shape[-1] * old // new)
        return self.like(shape, strides, self.offset * old // new, dtype=dtype)

    def reinterpret_cast(self, dtype: Any) -> Any:
        return self.reinterpreted(dtype)
