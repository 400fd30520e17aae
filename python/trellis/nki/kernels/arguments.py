"""A kernel's arguments and results: arrays become tensors in HBM, and come back as arrays."""

import copy
import dataclasses
from typing import Any

import numpy as np

from trellis.nki.kernels.session import Session
from trellis.nki.names.constants import MemoryRegion
from trellis.nki.tensors.memory import allocate
from trellis.nki.tensors.tensor import NkiTensor
from trellis.nki.tensors.types import TYPES, to_dtype

__all__ = ["Absent", "Arguments"]


def as_array(x: Any) -> Any:
    """The numpy array of an array of numpy, torch or jax; None for what is none."""
    if isinstance(x, np.ndarray):
        return x
    kind = type(x)
    if kind.__module__.split(".")[0] == "torch" and hasattr(x, "detach"):
        return _from_torch(x.detach().cpu().contiguous())
    if hasattr(x, "__array__") and hasattr(x, "shape") and hasattr(x, "dtype") and not isinstance(x, np.generic):
        return np.asarray(x)
    return None


def _from_torch(x: Any) -> Any:
    import torch  # type: ignore[import-not-found, unused-ignore]

    name = str(x.dtype).removeprefix("torch.")
    try:
        return x.numpy()
    except TypeError:
        bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32}[x.element_size()]
        return x.view(bits).numpy().view(TYPES[name][0])


@dataclasses.dataclass(frozen=True)
class Absent:
    """An array of which only the shape and the type are known. Where its numbers are asked for, they are 0."""

    shape: tuple[int, ...]
    dtype: Any

    @property
    def ndim(self) -> int:
        return len(self.shape)


class Arguments:
    """Arguments as a kernel sees them, and the arrays that they came from."""

    def __init__(self, s: Session) -> None:
        self.session = s
        self.given: list[tuple[NkiTensor, Any, Any]] = []  # the tensor, its array, and the caller's object
        self.torch = False

    def tensor(self, array: Any, owner: Any, name: str) -> NkiTensor:
        for t, _, known in self.given:
            if known is owner:
                return t
        kind = to_dtype(array.dtype)
        memory, strides = allocate(self.session, array.shape, kind, "hbm", name=name, role="input")
        if isinstance(array, Absent):
            memory.written = True
        else:
            memory.adopt(np.array(array, order="C", ndmin=1))
        t = NkiTensor(memory, kind, tuple(array.shape), strides, 0, name=name, region=MemoryRegion.shared_hbm)
        self.given.append((t, array, owner))
        return t

    def convert(self, x: Any, name: str) -> Any:
        array: Any = x if isinstance(x, Absent) else as_array(x)
        if array is not None and array.ndim > 0:
            self.torch = self.torch or not isinstance(x, np.ndarray) and type(x).__module__.startswith("torch")
            return self.tensor(array, x, name)
        if array is not None:
            return array.item()
        if isinstance(x, (list, tuple)) and not hasattr(x, "_fields"):
            return type(x)(self.convert(e, f"{name}{k}") for k, e in enumerate(x))
        if isinstance(x, dict):
            return {k: self.convert(e, str(k)) for k, e in x.items()}
        if dataclasses.is_dataclass(x) and not isinstance(x, type) or hasattr(x, "_nki_object"):
            return self._object(x)
        return x

    def _object(self, x: Any) -> Any:
        """A copy of an object whose attributes are arrays."""
        changed = {k: self.convert(v, k) for k, v in vars(x).items()} if hasattr(x, "__dict__") else {}
        if all(changed[k] is vars(x)[k] for k in changed):
            return x
        other = copy.copy(x)
        for k, v in changed.items():
            object.__setattr__(other, k, v)
        return other

    def written_back(self) -> None:
        """Arrays of the caller that the kernel wrote to have its results."""
        trace = self.session.trace
        written = {trace.views[v].buffer for views in trace.outputs for v in views}
        for t, array, _ in self.given:
            if t.memory.buffer in written and isinstance(array, np.ndarray) and array.flags.writeable:
                trace.buffers[t.memory.buffer].role = "output"
                if self.session.compute and array.shape == t.shape and array.dtype == t.dtype:
                    array[...] = t.array

    def results(self, x: Any) -> Any:
        if isinstance(x, NkiTensor):
            if self.session.trace.buffers[x.memory.buffer].role == "internal":
                self.session.trace.buffers[x.memory.buffer].role = "output"
            x.memory.read = True
            return self._as_given(np.array(x.array) if self.session.compute else x.array)
        if isinstance(x, (list, tuple)) and not hasattr(x, "_fields"):
            return type(x)(self.results(e) for e in x)
        if isinstance(x, dict):
            return {k: self.results(e) for k, e in x.items()}
        return x

    def _as_given(self, out: Any) -> Any:
        if not self.torch:
            return out
        import torch

        try:
            return torch.from_numpy(out)
        except TypeError:
            name = next(k for k, (d, _) in TYPES.items() if d == out.dtype)
            bits = {1: np.uint8, 2: np.int16, 4: np.int32}[out.dtype.itemsize]
            return torch.from_numpy(out.view(bits)).view(getattr(torch, name))
