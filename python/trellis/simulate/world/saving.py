"""Checkpoints: what a rank would write of the device's tensors is counted, and nothing is written."""

from concurrent.futures import Future
from math import prod
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.distributed.checkpoint import state_dict_saver as saver
from torch.utils._pytree import tree_leaves

from trellis.simulate.world.recorder import Recorder

__all__ = ["install"]


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


def _alone(recorder: Recorder) -> None:
    """torch.save, where there are tensors without data."""
    plain = torch.save

    def save(obj: Any, *args: Any, **kwargs: Any) -> None:
        size = _held(obj)
        if size:
            recorder.saved(0, size)
        else:
            plain(obj, *args, **kwargs)

    torch.save = save


def install(recorder: Recorder) -> None:
    _alone(recorder)
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
