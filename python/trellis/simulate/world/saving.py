"""Distributed checkpoints: what a rank would write is counted, and nothing is written."""

from concurrent.futures import Future
from math import prod
from typing import Any

from torch.distributed.checkpoint import state_dict_saver as saver

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


def install(recorder: Recorder) -> None:
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
