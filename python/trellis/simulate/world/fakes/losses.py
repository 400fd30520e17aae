"""Losses: gradients that torch gives no shapes of, and CTC, the shape of whose states depends on lengths."""

from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from trellis.simulate.world.fakes.library import give

if TYPE_CHECKING:
    from trellis.simulate.world.recorder import Recorder

__all__ = ["ctc", "install"]


def ctc(recorder: "Recorder", log_probs: torch.Tensor, targets: torch.Tensor, lengths: Any) -> Any:
    """What _ctc_loss gives: a loss for each sequence, and its states, with blanks around each of the longest target's
    labels. Where only data says the lengths, targets are taken to fill their rows; none: they have no rows."""
    known = recorder.values.of(lengths) if isinstance(lengths, torch.Tensor) else torch.tensor(lengths)
    if known is None and targets.dim() != 2:
        return None
    if known is None:
        recorder.assume(f"{recorder.places.now()} has a CTC loss whose longest target is taken to fill its row of "
                        f"{targets.shape[1]}")  # fmt: skip
    longest = targets.shape[1] if known is None else int(known.max()) if known.numel() else 0
    steps, rows, _ = log_probs.shape
    with recorder.fake:
        return log_probs.new_empty(rows), log_probs.new_empty(rows, steps, 2 * longest + 1)


def _like_input(grad: torch.Tensor, x: torch.Tensor, *_: object) -> torch.Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _on_one_device(log_probs: torch.Tensor, lengths: list[Any]) -> list[Any]:
    """torch makes lists of lengths on the host itself, but not where a tensor has a class of its own, as fakes do."""
    if any(isinstance(x, FakeTensor) for x in lengths):
        return [x.to(log_probs.device) for x in lengths]
    return [x.reshape(-1).tolist() if isinstance(x, torch.Tensor) else x for x in lengths]


def install() -> None:
    give(dict.fromkeys(("_ctc_loss_backward", "_ctc_loss_backward.Tensor", "multi_margin_loss_backward",
                        "multilabel_margin_loss_backward"), _like_input))  # fmt: skip
    ctc_loss = torch.ctc_loss

    def of_lengths(log_probs: torch.Tensor, targets: Any, input_lengths: Any, target_lengths: Any, *how: Any,
                   **named: Any) -> Any:  # fmt: skip
        lengths = _on_one_device(log_probs, [input_lengths, target_lengths])
        return ctc_loss(log_probs, targets, *lengths, *how, **named)

    torch.ctc_loss = of_lengths
