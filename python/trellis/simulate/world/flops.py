"""FLOPs of products, from the shapes of operands."""

from collections.abc import Callable
from math import prod
from typing import Any

__all__ = ["of"]

Shapes = tuple[tuple[int, ...], ...]


def _product(inputs: Shapes, _: Shapes) -> int:
    """An `out`, where one is given, comes after the operands."""
    return 2 * prod(inputs[0]) * inputs[1][-1]


def _added_product(inputs: Shapes, outputs: Shapes) -> int:
    return _product(inputs[1:], outputs)


def _grouped(inputs: Shapes, outputs: Shapes) -> int:
    """Each row meets one expert's matrix; of two matrices, as for the weights' gradient, all rows count."""
    a, b = inputs[0], inputs[1]
    return 2 * prod(a) * b[-1]


def _grouped_backward(inputs: Shapes, _: Shapes) -> int:
    """Of the rows, and of the weights."""
    return 2 * 2 * prod(inputs[0]) * inputs[1][-1]


def _convolution(inputs: Shapes, outputs: Shapes) -> int:
    return 2 * prod(outputs[0]) * prod(inputs[1][1:])


def _transposed(inputs: Shapes, _: Shapes) -> int:
    """Each element of the input meets a row of the weights, which are (channels of the input, of the output, ...)."""
    return 2 * prod(inputs[0]) * prod(inputs[1][1:])


def _convolution_backward(inputs: Shapes, outputs: Shapes) -> int:
    """Gradients of the input and of the weights are a convolution each; those that are not asked for are no outputs."""
    return _convolution(inputs[1:], inputs[:1]) * sum(shape in inputs[1:3] for shape in outputs)


def _transposed_backward(inputs: Shapes, outputs: Shapes) -> int:
    return _transposed(inputs[1:], ()) * sum(shape in inputs[1:3] for shape in outputs)


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
    "aten.mm": _product, "aten.addmm": _added_product, "aten.bmm": _product, "aten.baddbmm": _added_product,
    "aten.addbmm": _added_product, "aten._scaled_mm": _product, "aten._scaled_mm_v2": _product,
    "aten._int_mm": _product,
    "aten._scaled_grouped_mm": _grouped, "aten._scaled_grouped_mm_v2": _grouped,
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
_OF_TRANSPOSED = {"aten.convolution": _transposed, "aten.convolution_backward": _transposed_backward}
_FLAGS_BEFORE = {  # bools among the arguments ahead of is_causal
    "aten._scaled_dot_product_efficient_attention": 1, "aten._scaled_dot_product_cudnn_attention": 1,
    "aten._scaled_dot_product_efficient_attention_backward": 4,
}  # fmt: skip


def of(name: str, flat: list[Any], inputs: Shapes, outputs: Shapes) -> int:
    base = name.partition(".")[0] + "." + name.split(".")[1]
    rule = _RULES.get(base)
    if rule is None:
        return 0
    flags = [x for x in flat if isinstance(x, bool)][_FLAGS_BEFORE.get(base, 0) :]
    if flags[:1] == [True]:
        rule = _OF_TRANSPOSED.get(base, rule)
    count = rule(inputs, outputs)
    causal = "_scaled_dot_product" in base and flags[:1] == [True]  # half of the scores are left out
    return count // 2 if causal else count
