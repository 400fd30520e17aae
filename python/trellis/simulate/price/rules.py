"""How an operator of torch is priced: as a kind of operation that the simulator knows, with its shape."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from typing import Any

from trellis.simulate.record import Operation

__all__ = ["Rule", "rule_of"]

_TYPES = {"bfloat16": "bf16", "float16": "f16", "float32": "f32", "float8_e4m3fn": "f8e4m3", "float8_e5m2": "f8e5m2"}
_BYTES = {"float64": 8, "int64": 8, "int32": 4, "uint8": 1, "int8": 1, "bool": 1, "int16": 2}
_COLUMNS = 4096  # of lists of tensors, whose rows have no one length


@dataclass(frozen=True)
class Rule:
    """`name` is told in the report. `shape` is what trellis.sim.operation_time takes beside the kind."""

    name: str
    kind: str
    shape: dict[str, Any] = field(default_factory=dict)
    default: bool = False  # no rule knows the operator: its bytes alone count


def _product(o: Operation) -> dict[str, Any]:
    """Ahead of the operands stands what is added, behind them an `out`."""
    first = 1 if o.name.split(".")[1].startswith(("addmm", "addbmm", "baddbmm")) else 0
    a, b = o.inputs[first], o.inputs[first + 1]
    return {"batch": a[0] if len(a) == 3 else 1, "rows": a[-2], "inner": a[-1], "columns": b[-1]}


def _grouped(o: Operation) -> dict[str, Any]:
    """A product for each expert, taken to have as many rows as the others. The larger count of axes tells where the
    experts are: in the weights, or, of their gradient, in the result."""
    a, b, out = o.inputs[0], o.inputs[1], o.outputs[0]
    if len(out) == 3 and len(a) == 2:
        return {"batch": out[0], "rows": a[0], "inner": -(-a[1] // out[0]), "columns": b[-1]}
    batch = b[0] if len(b) == 3 else a[0]
    rows = a[-2] if len(a) == 3 else -(-a[0] // batch)
    times = len([shape for shape in o.outputs if shape])
    return {"batch": batch * times, "rows": rows, "inner": a[-1], "columns": b[-1]}


def _of_bytes(shape: Callable[[Operation], dict[str, Any]]) -> Callable[[Operation], dict[str, Any]]:
    """Operands are of a byte each, whatever the result is, whose type the record tells."""
    return lambda o: {**shape(o), "type": "f8e4m3", "result": _TYPES.get(o.type, "f32")}


def _attention(o: Operation) -> dict[str, Any]:
    backward = "backward" in o.name
    query, key, value = o.inputs[1:4] if backward else o.inputs[:3]
    pairs = 2 * query[0] * query[1] * query[2] * key[2]
    whole = pairs * (3 * query[3] + 2 * value[3] if backward else query[3] + value[3])
    return {"batch": query[0] * query[1], "rows": query[2], "columns": key[2], "inner": query[3],
            "causal": o.flops < whole, "flash": True}  # fmt: skip


def _convolution(o: Operation) -> dict[str, Any]:
    """Its FLOPs say how many positions meet the weights: the result's or, of a transposed one, the input's."""
    backward = "backward" in o.name
    weight = o.inputs[2] if backward else o.inputs[1]
    times = sum(shape in o.inputs[1:3] for shape in o.outputs) if backward else 1
    positions = o.flops // max(2 * times * prod(weight), 1)
    return {"batch": times, "rows": positions, "inner": prod(weight[1:]), "columns": weight[0]}


def _of_first_input(o: Operation) -> dict[str, Any]:
    return _extents(o.inputs[0] if o.inputs else o.outputs[0])


def _added_to_zeros(o: Operation) -> dict[str, Any]:
    """Rows are added to those of a table, which is filled with zeros first. They are passes like any others, of which
    each reads a row and one of the table's."""
    rows = _of_first_input(o)
    filled = prod(o.outputs[0]) / (rows["rows"] * rows["columns"])
    return {**rows, "inputs": 2, "outputs": 1 + filled, "vector": 1, "scalar": 0}


def _of_added(o: Operation) -> dict[str, Any]:
    """In place, what is added counts, however large what it is added to is."""
    return _extents(o.inputs[-1]) if o.name.split(".")[1].endswith("_") else _of_first_input(o)


def _of_touched(o: Operation) -> dict[str, Any]:
    """In place: what indices do not name stays where it is. Of the first operand, as much as each index tensor names,
    on the axes that have none; what is put there is the last operand."""
    if not o.name.split(".")[1].endswith("_"):
        return _of_first_input(o)
    into, given = o.inputs[0], o.inputs[1:]
    indices = max(len(given) - 1, 1)
    named = max((prod(shape) for shape in given[:indices]), default=1) * prod(into[indices:])
    touched = min(max(named, prod(given[-1])), prod(into))
    columns = into[-1] if into and touched % into[-1] == 0 else 1
    return {"rows": touched // columns, "columns": columns}


def _of_output(o: Operation) -> dict[str, Any]:
    return _extents(o.outputs[0] if o.outputs else o.inputs[0])


def _extents(shape: tuple[int, ...]) -> dict[str, Any]:
    columns = shape[-1] if shape else 1
    return {"rows": max(prod(shape[:-1]), 1), "columns": max(columns, 1)}


def _elementwise(vector: float, scalar: float) -> Callable[[Operation], dict[str, Any]]:
    """Passes over the largest operand or result: the one that a reduction reads, or that a gradient fills."""

    def shape(o: Operation) -> dict[str, Any]:
        element = _element(o.type)
        largest = max([*o.inputs, *o.outputs], key=prod, default=())
        moved = max(o.read, o.written, element)
        if prod(largest) * element * 2 > moved:
            extents = _extents(largest)
        else:  # a list of tensors; of a norm, what is read counts
            count = max((o.written if 8 * o.written >= o.read else o.read) // element, 1)
            extents = {"rows": -(-count // _COLUMNS), "columns": min(count, _COLUMNS)}
        size = extents["rows"] * extents["columns"] * element
        return {**extents, "inputs": o.read / size, "outputs": o.written / size, "vector": vector, "scalar": scalar}

    return shape


def _of_rows(o: Operation) -> dict[str, Any]:
    """One element of each row is read."""
    return {"rows": 1, "columns": max(prod(o.inputs[0][:-1]), 1), "inputs": 2, "outputs": 1, "vector": 1, "scalar": 0}


def _fills(o: Operation) -> dict[str, Any]:
    """Of its inputs hardly anything is read."""
    return {**_of_output(o), "inputs": 0, "outputs": 1, "vector": 0, "scalar": 0}


def _element(kind: str) -> int:
    return _BYTES.get(kind) or {"bf16": 2, "f16": 2, "f32": 4}.get(_TYPES.get(kind, ""), 1)


_Shape = Callable[[Operation], dict[str, Any]]
_RULES: dict[str, tuple[str, _Shape]] = {}


def _rules(kind: str, shape: _Shape, *names: str) -> None:
    for name in names:
        _RULES[name] = (kind, shape)


_rules("product", _product, "mm", "addmm", "bmm", "baddbmm", "addbmm")
_rules("product", _of_bytes(_product), "_scaled_mm", "_scaled_mm_v2", "_int_mm")
_rules("product", _of_bytes(_grouped), "_scaled_grouped_mm", "_scaled_grouped_mm_v2")
_rules("product", _grouped, "_grouped_mm", "grouped_mm_fallback", "grouped_mm_fallback_backward")
_rules("product", _convolution, "convolution", "convolution_backward")
_ATTENTION = ("flash_attention", "efficient_attention", "cudnn_attention", "flash_attention_for_cpu")
_rules("attention", _attention, *(f"_scaled_dot_product_{name}" for name in _ATTENTION))
_rules("attention_gradient", _attention, *(f"_scaled_dot_product_{name}_backward" for name in _ATTENTION))
_rules("softmax", _of_output, "_softmax")
_rules("softmax_gradient", _of_output, "_softmax_backward_data")
_rules("cross_entropy", _of_first_input, "_log_softmax")
_rules("cross_entropy_gradient", _of_output, "_log_softmax_backward_data")
_rules("layer_norm", _of_first_input, "native_layer_norm", "native_group_norm")
_rules("layer_norm_gradient", _of_first_input, "native_layer_norm_backward", "native_group_norm_backward")
_rules("rms_norm", _of_first_input, "_fused_rms_norm")
_rules("rms_norm_gradient", _of_first_input, "_fused_rms_norm_backward")
_rules("gelu", _of_output, "gelu", "silu", "tanh", "sigmoid", "relu", "exp", "log", "sin", "cos", "erf", "softplus")
_rules("gelu_gradient", _of_output, "gelu_backward", "silu_backward", "tanh_backward", "sigmoid_backward",
       "threshold_backward")  # fmt: skip
_rules("embedding", _of_output, "embedding", "index_select", "gather", "index")
_rules("elementwise", _of_rows, "nll_loss_forward")
_rules("elementwise", _fills, "nll_loss_backward")
_rules("elementwise", _added_to_zeros, "embedding_dense_backward")
_rules("embedding_gradient", _of_added, "index_add", "scatter_add")
_rules("embedding_gradient", _of_touched, "index_put")
_rules("elementwise", _elementwise(1, 0), "add", "sub", "rsub", "mul", "div", "neg", "pow", "where", "maximum",
       "minimum", "eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_not", "bitwise_and",
       "bitwise_or",
       "bitwise_not", "abs", "clamp", "clamp_min", "clamp_max", "lerp", "addcmul", "addcdiv", "masked_fill",
       "triu", "tril", "_foreach_add", "_foreach_sub", "_foreach_mul", "_foreach_div", "_foreach_lerp",
       "_foreach_addcmul", "_foreach_addcdiv", "_foreach_neg", "_foreach_pow", "native_dropout",
       "native_dropout_backward", "isnan", "isinf", "sign", "fmod", "remainder", "sgn", "_foreach_clamp_max",
       "_foreach_maximum", "mse_loss", "mse_loss_backward", "fill",
       "_weight_norm_interface", "view_as_real", "view_as_complex", "polar", "roll", "cumsum")  # fmt: skip
_rules("elementwise", _elementwise(1, 1), "sqrt", "rsqrt", "reciprocal", "_foreach_sqrt", "_foreach_reciprocal",
       "_foreach_rsqrt")  # fmt: skip
# Twelve passes over a parameter; three lists of elements are counted: it and two moments, which are written.
_rules("elementwise", _elementwise(4, 1 / 3), "_fused_adamw", "_fused_adam")
_rules("elementwise", _elementwise(2, 0), "_fused_sgd", "normal", "uniform", "bernoulli", "random")
_rules("elementwise", _elementwise(1, 0), "sum", "mean", "amax", "amin", "max", "min", "prod", "any", "all", "var",
       "linalg_vector_norm", "_foreach_norm", "var_mean", "argmax", "topk", "sort")  # fmt: skip
_rules("elementwise", _elementwise(0, 0), "_to_copy", "clone", "copy", "cat", "stack", "split_with_sizes_copy",
       "chunk_cat", "_foreach_copy", "slice_backward", "select_backward", "slice_scatter", "constant_pad_nd",
       "contiguous", "repeat", "all_gather_copy_in", "flip", "expand_copy", "_pack", "unfold_backward", "diagonal_copy",
       "select_scatter", "split_copy", "view_copy", "_reshape_copy", "resize")  # fmt: skip
_rules("elementwise", _elementwise(0, 0), "zeros", "ones", "full", "zero", "arange", "zeros_like", "ones_like",
       "full_like", "new_zeros", "new_ones", "new_full", "scalar_tensor", "_foreach_zero", "eye", "linspace", "rand",
       "randn", "randint", "empty_like", "lift_fresh_copy")  # fmt: skip


def rule_of(operation: Operation) -> Rule:
    name = operation.name.split(".")[1]
    if operation.times:
        return Rule(operation.name, "kernel")
    known = _RULES.get(name) or _RULES.get(name.rstrip("_"))
    if operation.name.startswith("triton."):
        known = None
    kind, shape = known or ("elementwise", _elementwise(0, 0))
    # Numbers of a type that engines do not compute in move as floats of their size.
    word = _TYPES.get(operation.type) or {1: "f8e4m3", 2: "bf16"}.get(_element(operation.type), "f32")
    try:
        told = {"type": word, **shape(operation)}
    except (IndexError, ZeroDivisionError):
        kind, known, told = "elementwise", None, {"type": word, **_elementwise(0, 0)(operation)}
    return Rule(name if known else f"{operation.name}, by its bytes", kind, told, known is None)
