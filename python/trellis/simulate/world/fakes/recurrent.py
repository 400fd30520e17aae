"""Recurrent layers: the cell of a GRU, and sequences of several lengths that are packed into one tensor."""

from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from trellis.simulate.world.fakes.library import give

if TYPE_CHECKING:
    from trellis.simulate.world.recorder import Recorder

__all__ = ["install", "packed"]

_GATES, _KEPT = 3, 5  # the parts of a hidden state's width that gates have, and that the backward pass is left


def _cell(gates: torch.Tensor, hidden_gates: torch.Tensor, state: torch.Tensor, *_: Any) -> tuple[torch.Tensor, ...]:
    return torch.empty_like(state), state.new_empty(state.shape[0], state.shape[1] * _KEPT)


def _cell_backward(state: torch.Tensor, kept: torch.Tensor, has_bias: bool) -> tuple[torch.Tensor | None, ...]:
    rows, width = kept.shape[0], kept.shape[1] // _KEPT * _GATES
    biases = [kept.new_empty(width) if has_bias else None for _ in range(2)]
    return kept.new_empty(rows, width), kept.new_empty(rows, width), torch.empty_like(state), *biases


def packed(mode: FakeTensorMode, rows: torch.Tensor, lengths: torch.Tensor, batch_first: bool = False) -> Any:
    """What _pack_padded_sequence gives of lengths that are known: rows, and how many of them each step has, which the
    host reads. torch itself counts them, of narrow rows."""
    narrow = torch.empty((*rows.shape[:2], 1))
    told, steps = torch.ops.aten._pack_padded_sequence(narrow, lengths, batch_first)
    with mode:
        return rows.new_empty((told.shape[0], *rows.shape[2:])), steps


def install(recorder: "Recorder") -> None:
    give({"_thnn_fused_gru_cell": _cell, "_thnn_fused_gru_cell_backward": _cell_backward})
    from torch.nn.utils import rnn

    invert = rnn.invert_permutation

    def inverted(permutation: torch.Tensor | None) -> torch.Tensor | None:
        """Its every element is written, so that it is known if what is inverted is."""
        told = invert(permutation)
        if isinstance(told, FakeTensor) and (value := recorder.values.of(permutation)) is not None:
            recorder.values.know(told, value.argsort())
        return told

    rnn.invert_permutation = inverted
