"""What operators should give, in plain numpy."""

from typing import Any

import numpy as np


def softmax(x: Any, axis: int = -1) -> Any:
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def attention(q: Any, k: Any, v: Any, scale: float = 1.0, causal: bool = False) -> Any:
    """q, k [d, n], v [d, n] transposed: the tutorials' layout. [n, d]."""
    scores = scale * (q.astype(np.float32).T @ k.astype(np.float32))
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape, bool)), scores, -np.inf)
    return softmax(scores) @ v.astype(np.float32)


def mamba(delta: Any, u: Any, a: Any, b: Any, c: Any) -> Any:
    """[batch, channels, n] of [batch, channels, n] twice, [channels, states], [batch, states, n] twice."""
    state = np.zeros((delta.shape[0], delta.shape[1], a.shape[1]), np.float32)
    out = np.empty(delta.shape, np.float32)
    for i in range(delta.shape[2]):
        state = np.exp(delta[:, :, i, None] * a) * state + (delta * u)[:, :, i, None] * b[:, None, :, i]
        out[:, :, i] = (state * c[:, None, :, i]).sum(-1)
    return out


def rmsnorm(x: Any, g: Any, eps: float = 0.0) -> Any:
    x = x.astype(np.float32)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * g


def layernorm(x: Any, eps: float, g: Any, b: Any) -> Any:
    m, v = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - m) / np.sqrt(v + eps) * g + b


def pooled(x: Any, k: int, f: Any) -> Any:
    """Windows of k x k, moved by one, of the last two dimensions."""
    w = np.lib.stride_tricks.sliding_window_view(x, (k, k), axis=(-2, -1))
    return f(w, axis=(-2, -1))


def average_pool(x: Any, k: int) -> Any:
    c, h, w = x.shape
    return x.reshape(c, h // k, k, w // k, k).mean(axis=(2, 4))


def convolved(x: Any, w: Any, bias: Any) -> Any:
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(2, 3))
    return np.einsum("nchwij,ocij->nohw", windows, w, optimize=True) + bias[None, :, None, None]


def max_pool(x: Any, k: int) -> Any:
    n, c, h, w = x.shape
    return x.reshape(n, c, h // k, k, w // k, k).max(axis=(3, 5))


def doubled(x: Any, axes: tuple[int, ...]) -> Any:
    """Twice as many elements along axes, by linear interpolation between centres."""
    for axis in axes:
        n = x.shape[axis]
        at = np.clip((np.arange(2 * n) + 0.5) / 2 - 0.5, 0, n - 1)
        low = np.floor(at).astype(int)
        high = np.minimum(low + 1, n - 1)
        part = (at - low).reshape([-1 if a == axis else 1 for a in range(x.ndim)])
        x = np.take(x, low, axis) * (1 - part) + np.take(x, high, axis) * part
    return x
