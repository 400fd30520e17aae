"""FLOPs of products, from the shapes of operands."""

from collections.abc import Callable
from math import prod
from typing import Any

__all__ = ["of"]

Shapes = tuple[tuple[int, ...], ...]


def _mm(inputs: Shapes, _: Shapes) -> int:
    return 2 * inputs[-2][0] * inputs[-2][1] * inputs[-1][1]


def _bmm(inputs: Shapes, _: Shapes) -> int:
    batch, rows, inner = inputs[-2]
    return 2 * batch * rows * inner * inputs[-1][2]


def _grouped(inputs: Shapes, outputs: Shapes) -> int:
    """Each row meets one expert's matrix; of two matrices, as for the weights' gradient, all rows count."""
    a, b = inputs[0], inputs[1]
    return 2 * prod(a) * b[-1]


def _grouped_backward(inputs: Shapes, _: Shapes) -> int:
    """Of the rows, and of the weights."""
    return 2 * 2 * prod(inputs[0]) * inputs[1][-1]


def _convolution(inputs: Shapes, outputs: Shapes) -> int:
    return 2 * prod(outputs[0]) * prod(inputs[1][1:])


def _convolution_backward(inputs: Shapes, outputs: Shapes) -> int:
    """Gradients of the input and of the weights are a convolution each."""
    forward = 2 * prod(inputs[0]) * prod(inputs[2][1:])
    return forward * sum(bool(shape) for shape in outputs[:2])


def _attention(inputs: Shapes, _: Shapes) -> int:
    batch, heads, rows, width = inputs[0]
    columns, values = inputs[1][2], inputs[2][3]
    return 2 * batch * heads * rows * columns * (width + values)


def _attention_backward(inputs: Shapes, _: Shapes) -> int:
    """Scores again, then four products."""
    batch, heads, rows, width = inputs[1]
    columns, values = inputs[2][2], inputs[3][3]
    return 2 * batch * heads * rows * columns * (3 * width + 2 * values)


_RULES: dict[str, Callable[[Shapes, Shapes], int]] = {
    "aten.mm": _mm, "aten.addmm": _mm, "aten.bmm": _bmm, "aten.baddbmm": _bmm, "aten._scaled_mm": _mm,
    "aten._grouped_mm": _grouped, "transformers.grouped_mm_fallback": _grouped,
    "transformers.grouped_mm_fallback_backward": _grouped_backward,
    "aten.convolution": _convolution, "aten.convolution_backward": _convolution_backward,
    "aten._scaled_dot_product_flash_attention": _attention,
    "aten._scaled_dot_product_efficient_attention": _attention,
    "aten._scaled_dot_product_cudnn_attention": _attention,
    "aten._scaled_dot_product_flash_attention_for_cpu": _attention,
    "aten._scaled_dot_product_flash_attention_backward": _attention_backward,
    "aten._scaled_dot_product_efficient_attention_backward": _attention_backward,
    "aten._scaled_dot_product_cudnn_attention_backward": _attention_backward,
    "aten._scaled_dot_product_flash_attention_for_cpu_backward": _attention_backward,
}  # fmt: skip
_FLAGS_BEFORE = {  # bools among the arguments ahead of is_causal
    "aten._scaled_dot_product_efficient_attention": 1, "aten._scaled_dot_product_cudnn_attention": 1,
    "aten._scaled_dot_product_efficient_attention_backward": 4,
}  # fmt: skip


def of(name: str, flat: list[Any], inputs: Shapes, outputs: Shapes) -> int:
    base = name.partition(".")[0] + "." + name.split(".")[1]
    rule = _RULES.get(base)
    if rule is None:
        return 0
    if base == "aten._scaled_mm":
        inputs = inputs[:2]
    count = rule(inputs, outputs)
    flags = [x for x in flat if isinstance(x, bool)][_FLAGS_BEFORE.get(base, 0) :]
    causal = "_scaled_dot_product" in base and flags[:1] == [True]  # half of the scores are left out
    return count // 2 if causal else count
