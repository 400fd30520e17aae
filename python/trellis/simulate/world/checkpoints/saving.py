"""Checkpoints: what a rank would write of the device's tensors is counted, and nothing is written. What is read for the
device is read on the host, and has no data there."""

import functools
import pickle
from concurrent.futures import Future
from math import prod
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.distributed.checkpoint import state_dict_saver as saver
from torch.utils._pytree import tree_leaves

from trellis.simulate.world.checkpoints import structure
from trellis.simulate.world.checkpoints.files import Files
from trellis.simulate.world.communication import Communication
from trellis.simulate.world.names import here
from trellis.simulate.world.recorder import Recorder

__all__ = ["install"]

_NOT_WRITTEN = (
    "trellis simulate writes no checkpoint of the device's tensors. A rank loads what it saved itself, and what rank 0 "
    "saved before a barrier that both were in: let rank 0 save, call torch.distributed.barrier(), then load"
)


def _counted(plan: Any) -> tuple[int, int]:
    """(bytes of this rank's shards, bytes of whole tensors, which one of the ranks that have them writes)"""
    from torch.distributed.checkpoint.planner import WriteItemType

    own = whole = 0
    for item in plan.items:
        if item.tensor_data is not None:
            size = prod(item.tensor_data.chunk.sizes) * item.tensor_data.properties.dtype.itemsize
            if item.type == WriteItemType.SHARD:
                own += size
            else:
                whole += size
    return own, whole


def _held(given: Any) -> int:
    """Bytes of the device's tensors that an object holds."""
    leaves = tree_leaves(given)
    for module in [x for x in leaves if isinstance(x, torch.nn.Module)]:
        leaves += [*module.parameters(), *module.buffers()]
    tensors = [getattr(x, "_local_tensor", x) for x in leaves if isinstance(x, torch.Tensor)]
    storages = {id(s): s.size() for t in tensors if isinstance(t, FakeTensor) for s in [t.untyped_storage()]}
    return sum(storages.values())


def _alone(recorder: Recorder, files: Files) -> None:
    """torch.save, where there are tensors without data, and torch.load of what it saved."""
    plain, load_plain = torch.save, torch.load

    def save(obj: Any, f: Any, *args: Any, **kwargs: Any) -> None:
        size = _held(obj)
        if size:
            try:
                files.save(f, structure.packed(recorder, obj))
            except (TypeError, AttributeError, NotImplementedError, pickle.PicklingError) as error:
                recorder.assume(f"{recorder.places.now()} saves what cannot be loaded again here ({error})")
            recorder.saved(0, size)
        else:
            plain(obj, f, *args, **kwargs)
            files.forget(f)

    @functools.wraps(load_plain)
    def load(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        if (data := files.load(f)) is not None:
            return structure.made(recorder, data, map_location)
        try:
            return load_plain(f, map_location, *args, **kwargs)
        except FileNotFoundError as error:
            error.add_note(_NOT_WRITTEN)
            raise

    torch.save, torch.load = save, load
    files.install()


def _loaded(recorder: Recorder) -> None:
    """torch.load: a storage whose place is the device is one of the host, and the tensors that are made on it move
    there, onto one storage."""
    from torch import _utils as utils

    def placed(storage: Any, location: str) -> Any:
        if not str(here(location)).startswith(recorder.device.type):
            return None
        storage.is_for_device = True
        return storage

    def on_device(real: torch.Tensor, storage: Any) -> torch.Tensor:
        if not getattr(storage, "is_for_device", False):
            return real
        whole = getattr(storage, "on_device", None)
        if whole is None:
            every = real.detach().as_strided((storage.nbytes() // real.element_size(),), (1,), 0)
            alone = real.is_contiguous() and real.numel() == every.numel()
            storage.on_device = whole = (real if alone else every).to(recorder.device)
            if getattr(storage, "_torch_load_uninitialized", False):  # of files as they were before 1.6
                recorder.values.forget(whole)
            if alone:
                return whole
        return whole.as_strided(real.shape, real.stride(), real.storage_offset())

    make, make_typed = utils._rebuild_tensor, utils._rebuild_tensor_v3

    def _rebuild_tensor(storage: Any, *rest: Any) -> torch.Tensor:
        return on_device(make(storage, *rest), storage._untyped_storage)

    @functools.wraps(make_typed)
    def _rebuild_tensor_v3(storage: Any, *rest: Any, **more: Any) -> torch.Tensor:
        return on_device(make_typed(storage, *rest, **more), storage._untyped_storage)

    def to(self: Any, *, device: Any, non_blocking: bool = False) -> Any:
        mine = placed(self, str(device))
        return move(self, device=device, non_blocking=non_blocking) if mine is None else mine

    move = torch.UntypedStorage.to
    torch.UntypedStorage.to = to  # type: ignore[method-assign]  # as a `map_location` that is a function does
    utils._rebuild_tensor, utils._rebuild_tensor_v3 = _rebuild_tensor, _rebuild_tensor_v3
    torch.serialization.register_package(0, lambda storage: None, placed)


def install(recorder: Recorder, communication: Communication) -> None:
    _alone(recorder, Files(communication))
    if recorder.settings.device != "cpu":
        _loaded(recorder)
    from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
    from torch.distributed.checkpoint.metadata import Metadata

    def save(state_dict: Any, storage_writer: Any = None, process_group: Any = None, coordinator_rank: int = 0,
             no_dist: bool = False, planner: Any = None, *_: Any, **__: Any) -> Metadata:  # fmt: skip
        planner = planner or DefaultSavePlanner()
        planner.set_up_planner(state_dict, None, recorder.settings.rank == coordinator_rank)
        recorder.saved(*_counted(planner.create_local_plan()))
        return Metadata(state_dict_metadata={})

    def async_save(state_dict: Any, *, planner: Any = None, **_: Any) -> Any:
        done: Future[Any] = Future()
        done.set_result(save(state_dict, planner=planner))
        return done

    saver._save_state_dict = save
    saver.async_save = async_save
    import torch.distributed.checkpoint as dcp

    dcp.async_save = async_save
