"""torch's flex_attention, as one operation. What its mask leaves out is a function of data, and is not asked."""

from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.nn.attention import flex_attention as flex

from trellis.simulate.world.names import shared_heads
from trellis.simulate.world.recorder import Recorder

__all__ = ["install"]


def _lengths(mask_mod: Any, rows: int, columns: int) -> flex.BlockMask:
    """A mask of which the job can ask for nothing but its lengths."""
    mask = flex.BlockMask.__new__(flex.BlockMask)
    mask.seq_lengths, mask.mask_mod = (rows, columns), mask_mod
    return mask


def install(recorder: Recorder) -> None:
    plain, make = flex.flex_attention, flex.create_block_mask

    def flex_attention(query: Any, key: Any, value: Any, score_mod: Any = None, block_mask: Any = None,
                       scale: float | None = None, enable_gqa: bool = False, return_lse: bool = False,
                       kernel_options: Any = None, **more: Any) -> Any:  # fmt: skip
        if not isinstance(getattr(query, "_local_tensor", query), FakeTensor):
            return plain(
                query, key, value, score_mod, block_mask, scale, enable_gqa, return_lse, kernel_options, **more
            )
        masked = block_mask is not None
        if masked:
            recorder.assume(
                f"{recorder.places.now()}: flex_attention's mask is taken as causal, whatever else it leaves out"
            )
        if enable_gqa:
            key, value = (shared_heads(t, query.shape[1] // t.shape[1]) for t in (key, value))
        if value.shape[-1] == query.shape[-1]:
            done = torch.ops.aten._scaled_dot_product_flash_attention(query, key, value, 0.0, masked, scale=scale)
        else:
            done = torch.ops.aten._scaled_dot_product_efficient_attention(query, key, value, None, True, 0.0, masked,
                                                                          scale=scale)  # fmt: skip
        if more.get("return_aux") is not None:
            return done[0], flex.AuxOutput(lse=done[1])
        return (done[0], done[1]) if return_lse else done[0]

    def create_block_mask(mask_mod: Any, B: Any, H: Any, Q_LEN: int, KV_LEN: int, device: Any = "cuda", *args: Any,
                          **kwargs: Any) -> Any:  # fmt: skip
        if torch.device(device).type == "cpu":
            return make(mask_mod, B, H, Q_LEN, KV_LEN, device, *args, **kwargs)
        return _lengths(mask_mod, Q_LEN, KV_LEN)

    flex.flex_attention = flex_attention  # type: ignore[assignment]
    flex.create_block_mask = create_block_mask  # type: ignore[assignment]
