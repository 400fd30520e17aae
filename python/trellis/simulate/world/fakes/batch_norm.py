"""SyncBatchNorm: its operators, and what its host reads."""

from typing import Any

import torch

from trellis.simulate.world.fakes.library import give
from trellis.simulate.world.recorder import Recorder

__all__ = ["install"]


def _of_channels(x: torch.Tensor, kind: torch.dtype, count: int) -> tuple[torch.Tensor, ...]:
    return tuple(x.new_empty(x.shape[1], dtype=kind) for _ in range(count))


def install(recorder: Recorder) -> None:
    """Its host reads which ranks have rows: all have."""
    from torch.nn.modules._functions import SyncBatchNorm

    give({
        "batch_norm_stats": lambda x, eps: _of_channels(x, torch.promote_types(x.dtype, torch.float32), 2),
        "batch_norm_gather_stats_with_counts": lambda x, mean, *_: _of_channels(x, mean.dtype, 2),
        "batch_norm_elemt": lambda x, *_: torch.empty_like(x),
        "batch_norm_backward_reduce": lambda dy, x, mean, *_: _of_channels(x, mean.dtype, 4),
        "batch_norm_backward_elemt": lambda dy, x, *_: torch.empty_like(x),
    })  # fmt: skip
    forward = SyncBatchNorm.forward

    def captures() -> bool:
        recorder.host_waits(recorder.streams.current.number)
        return True

    def without_mask(*args: Any) -> Any:
        """torch selects no rows while a graph is captured, for which it would have to wait."""
        cuda = torch.cuda
        asked = {"is_available": lambda: True, "is_current_stream_capturing": captures}
        before = {name: getattr(cuda, name) for name in asked}
        try:
            cuda.__dict__.update(asked)
            return forward(*args)
        finally:
            cuda.__dict__.update(before)

    SyncBatchNorm.forward = staticmethod(without_mask)  # type: ignore[assignment]
