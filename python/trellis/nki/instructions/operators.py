"""The operators and functions that instructions take, by whatever name a kernel calls them: nl.add, np.add, "add"."""

from collections.abc import Callable
from typing import Any

import numpy as np

from trellis.nki.kernels.session import refuse

__all__ = [
    "ALU", "alu", "apply", "BITS", "evaluate", "function_name", "FUNCTIONS", "name_of", "reduce", "TIMED_AS",
    "UNARY",
]  # fmt: skip

Function = Callable[..., Any]


def _logical(f: Function) -> Function:
    return lambda a, b: f(a != 0, b != 0)


def _shift_right(a: Any, b: Any) -> Any:
    unsigned = np.asarray(a)
    if unsigned.dtype.kind == "i":
        unsigned = unsigned.view(f"u{unsigned.dtype.itemsize}")
    return np.right_shift(unsigned, np.asarray(b).astype(unsigned.dtype))


# By sim/core's name.
BINARY: dict[str, Function] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "max": np.maximum,
    "min": np.minimum, "pow": np.power, "mod": np.mod, "fmod": np.fmod,
    "abs_max": lambda a, b: np.maximum(np.abs(a), np.abs(b)), "abs_min": lambda a, b: np.minimum(np.abs(a), np.abs(b)),
    "average": lambda a, b: (a + b) * np.float32(0.5),
    "is_equal": np.equal, "not_equal": np.not_equal, "is_gt": np.greater, "is_ge": np.greater_equal,
    "is_lt": np.less, "is_le": np.less_equal,
    "logical_and": _logical(np.logical_and), "logical_or": _logical(np.logical_or),
    "logical_xor": _logical(np.logical_xor),
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
    "shift_left": np.left_shift, "shift_right": _shift_right, "arith_shift_right": np.right_shift,
    "bypass": lambda a, b: a,
}  # fmt: skip
UNARY: dict[str, Function] = {
    "logical_not": lambda a, b=None: a == 0, "bitwise_not": lambda a, b=None: np.invert(a),
    "abs": lambda a, b=None: np.abs(a), "square": lambda a, b=None: a * a, "relu": lambda a, b=None: np.maximum(a, 0),
    "reciprocal": lambda a, b=None: 1 / a, "rsqrt": lambda a, b=None: 1 / np.sqrt(a),
}  # fmt: skip
ALU: dict[str, Function] = BINARY | UNARY
BITS = {"bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "shift_left", "shift_right", "arith_shift_right"}

_NAMES = {
    "maximum": "max", "amax": "max", "fmax": "max", "minimum": "min", "amin": "min", "fmin": "min", "sum": "add",
    "power": "pow", "float_power": "pow", "remainder": "mod", "prod": "multiply", "true_divide": "divide",
    "equal": "is_equal", "greater": "is_gt", "greater_equal": "is_ge", "less": "is_lt", "less_equal": "is_le",
    "invert": "bitwise_not", "left_shift": "shift_left", "right_shift": "shift_right", "absolute": "abs",
    "fabs": "abs", "sub": "subtract", "mul": "multiply", "div": "divide", "and_": "bitwise_and", "or_": "bitwise_or",
    "xor": "bitwise_xor", "lshift": "shift_left", "rshift": "shift_right", "eq": "is_equal", "ne": "not_equal",
    "lt": "is_lt", "le": "is_le", "gt": "is_gt", "ge": "is_ge", "truediv": "divide", "any": "max", "all": "min",
    "negative": "negative", "mean": "mean", "arith_shift_left": "shift_left", "logical_shift_left": "shift_left",
    "logical_shift_right": "shift_right", "bitwise_left_shift": "shift_left", "bitwise_right_shift": "shift_right",
    "arithmetic_shift_right": "arith_shift_right", "rsqrt": "rsqrt", "bitwise_invert": "bitwise_not",
}  # fmt: skip


def name_of(op: Any) -> str:
    """The word by which a function or an enumeration is called."""
    return op if isinstance(op, str) else str(getattr(op, "__name__", None) or getattr(op, "name", None) or op)


def alu(op: Any, what: str = "op") -> str:
    """sim/core's name of an operator."""
    word = name_of(op)
    word = _NAMES.get(word, word)
    if word not in ALU:
        raise refuse(f"{what}={word}, which is no operator of the engines; expected one of {', '.join(sorted(ALU))}")
    return word


def apply(op: str, a: Any, b: Any = None) -> Any:
    with np.errstate(all="ignore"):
        return ALU[op](a, b)


def reduce(op: str, values: Any, axes: tuple[int, ...]) -> Any:
    """Along axes, which stay with one element each."""
    f = ALU[op]
    if not isinstance(f, np.ufunc):
        if op.startswith("logical"):
            return getattr(np, op).reduce(values != 0, axis=axes, keepdims=True)
        if op in ("abs_max", "abs_min"):
            return (np.max if op == "abs_max" else np.min)(np.abs(values), axis=axes, keepdims=True)
        raise refuse(f"op={op} reduces nothing")
    with np.errstate(all="ignore"):
        if f is np.add:
            return np.add.reduce(values, axis=axes, keepdims=True)
        return f.reduce(values, axis=axes, keepdims=True)


_ERF = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429, 0.3275911)


def erf(x: Any) -> Any:
    """The error function; in f64 by scipy if it is there, else by Abramowitz and Stegun 7.1.26, to 1.5e-7."""
    try:
        from scipy.special import erf as exact  # type: ignore[import-untyped, unused-ignore]
        return exact(x)
    except ImportError:
        a1, a2, a3, a4, a5, p = _ERF
        magnitude = np.abs(x).astype(np.float64)
        t = 1 / (1 + p * magnitude)
        return np.sign(x) * (1 - ((((a5 * t + a4) * t + a3) * t + a2) * t + a1) * t * np.exp(-magnitude * magnitude))


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _gelu(x: Any) -> Any:
    return x * 0.5 * (1 + erf(x * np.sqrt(0.5)))


def _gelu_dx(x: Any) -> Any:
    return 0.5 * (1 + erf(x * np.sqrt(0.5))) + x * np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi)


def _gelu_tanh(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def _gelu_sigmoid(x: Any) -> Any:
    return x * _sigmoid(1.702 * x)


def _gelu_sigmoid_dx(x: Any) -> Any:
    s = _sigmoid(1.702 * x)
    return s + 1.702 * x * s * (1 - s)


def _silu_dx(x: Any) -> Any:
    s = _sigmoid(x)
    return s * (1 + x * (1 - s))


def _softplus(x: Any) -> Any:
    return np.logaddexp(x, np.zeros((), np.asarray(x).dtype))


# Scalar's functions, by sim/core's name.
FUNCTIONS: dict[str, Function] = {
    "copy": lambda x: x, "identity": lambda x: x, "square": lambda x: x * x, "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x), "exp": np.exp, "log": np.log, "reciprocal": lambda x: 1 / x,
    "relu": lambda x: np.maximum(x, 0), "lrelu": lambda x: np.where(x > 0, x, 0.01 * x), "sigmoid": _sigmoid,
    "tanh": np.tanh, "softplus": _softplus, "silu": lambda x: x * _sigmoid(x), "silu_dx": _silu_dx, "gelu": _gelu,
    "gelu_dx": _gelu_dx, "gelu_apprx_tanh": _gelu_tanh, "gelu_apprx_sigmoid": _gelu_sigmoid,
    "gelu_apprx_sigmoid_dx": _gelu_sigmoid_dx, "mish": lambda x: x * np.tanh(_softplus(x)), "erf": erf,
    "erf_dx": lambda x: 2 / np.sqrt(np.pi) * np.exp(-x * x), "sin": np.sin, "arctan": np.arctan, "abs": np.abs,
    "sign": np.sign, "is_finite": lambda x: np.isfinite(x).astype(np.float32), "tanh_dx": lambda x: 1 - np.tanh(x) ** 2,
    "sigmoid_dx": lambda x: _sigmoid(x) * (1 - _sigmoid(x)),
    "abs_reciprocal_sqrt": lambda x: 1 / np.sqrt(np.abs(x)), "ln1p": np.log1p,
    "cos": np.cos, "tan": np.tan, "ceil": np.ceil, "floor": np.floor, "trunc": np.trunc, "negative": np.negative,
    "prelu": lambda x: x,
}  # fmt: skip
# Functions and operators of nl that sim/core lacks, and those of one pass that stand for them in timing.
TIMED_AS: dict[Any, str] = {"cos": "sin", "tan": "sin", "ceil": "copy", "floor": "copy", "trunc": "copy",
                            "negative": "copy", "fmod": "mod"}  # fmt: skip
_FUNCTION_NAMES = {"absolute": "abs", "square_dx": "square", "bypass": "copy", "atan": "arctan", "log1p": "ln1p",
                   "swish": "silu", "isfinite": "is_finite"}  # fmt: skip


def function_name(op: Any) -> str:
    """sim/core's name of one of Scalar's functions."""
    word = name_of(op)
    word = _FUNCTION_NAMES.get(word, word)
    if word not in FUNCTIONS:
        raise refuse(f"op={word}, which is no function of the scalar engine; expected one of "
                     f"{', '.join(sorted(FUNCTIONS))}")
    return word


def evaluate(word: str, x: Any) -> Any:
    with np.errstate(all="ignore"):
        return FUNCTIONS[word](x)
