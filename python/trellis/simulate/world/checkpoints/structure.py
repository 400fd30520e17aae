"""An object with tensors that have no data, as bytes: its structure, and the shape, type and place of each tensor."""

import io
import pickle
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from trellis.simulate.world.names import here
from trellis.simulate.world.recorder import Recorder

__all__ = ["made", "packed"]


class _Writer(pickle.Pickler):
    def __init__(self, stream: io.BytesIO, recorder: Recorder) -> None:
        super().__init__(stream)
        self._recorder = recorder
        self._storages: dict[int, int] = {}

    def persistent_id(self, obj: Any) -> Any:
        """Of a fake tensor: what it is made of again. What is known of its values stays known."""
        if not isinstance(obj, FakeTensor):
            return None
        storage = obj.untyped_storage()
        number = self._storages.setdefault(int(storage._cdata), len(self._storages))
        value = self._recorder.values.of(obj)
        known = None if value is None or not self._recorder.values.travels(obj) else value.detach().clone()
        return (number, storage.size(), tuple(obj.shape), tuple(obj.stride()), int(obj.storage_offset()), obj.dtype,
                obj.device.type == self._recorder.device.type, obj.requires_grad,
                isinstance(obj, torch.nn.Parameter), known)  # fmt: skip


class _Reader(pickle.Unpickler):
    def __init__(self, stream: io.BytesIO, recorder: Recorder, place: Any) -> None:
        super().__init__(stream)
        self._recorder, self._place = recorder, place
        self._wholes: dict[int, torch.Tensor] = {}

    def persistent_load(self, pid: Any) -> torch.Tensor:
        number, size, shape, stride, offset, kind, on_device, needs_gradient, is_parameter, known = pid
        if number not in self._wholes:
            with self._recorder.fake:
                read = torch.empty(size // kind.itemsize, dtype=kind, device="cpu")
            there = _goes_to_device(self._recorder, self._place, on_device)
            self._wholes[number] = read.to(self._recorder.device) if there else read
        whole = self._wholes[number]
        tensor = (whole if whole.dtype == kind else whole.view(kind)).as_strided(shape, stride, offset)
        if is_parameter:
            tensor = torch.nn.Parameter(tensor, needs_gradient)
        else:
            tensor.requires_grad_(needs_gradient)
        if known is not None and isinstance(tensor, FakeTensor):
            self._recorder.values.know(tensor, known)
        return tensor


def _goes_to_device(recorder: Recorder, place: Any, on_device: bool) -> bool:
    """Where a `map_location` puts a storage that was on the device, or on the host."""
    said = "cuda:0" if on_device else "cpu"
    if callable(place):
        storage = place(torch.UntypedStorage(0), said)
        if storage is None:
            return on_device
        return bool(getattr(storage, "is_for_device", False)) or storage.device.type == recorder.device.type
    if isinstance(place, dict):
        place = place.get(said, place.get("neuron:0") if on_device else None)
    return on_device if place is None else str(here(place)).startswith(recorder.device.type)


def packed(recorder: Recorder, obj: Any) -> bytes:
    stream = io.BytesIO()
    _Writer(stream, recorder).dump(obj)
    return stream.getvalue()


def made(recorder: Recorder, data: bytes, place: Any) -> Any:
    return _Reader(io.BytesIO(data), recorder, place).load()
