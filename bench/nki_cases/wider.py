"""Kernels of other people's libraries, from checkouts that are named owner+repository."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from nki_cases import answers
from nki_cases.case import KernelCase, load, random

Make = Callable[[Path, Any], tuple[Any, Any]]  # of a checkout and random numbers: what came out, and what should
CASES: dict[str, list[tuple[str, Make]]] = {}


def wider(root: Path) -> Iterator[KernelCase]:
    for repository, cases in CASES.items():
        for name, make in cases if (root / repository).exists() else ():

            def run(make: Make = make, folder: Path = root / repository) -> Any:
                return [make(folder, Numbers())]

            yield KernelCase("wider", f"{repository}: {name}", run)


class Numbers:
    """Normal, in f32."""

    def __init__(self) -> None:
        self.made = random()

    def __call__(self, *shape: int, scale: float = 1) -> Any:
        return (scale * self.made.standard_normal(shape)).astype(np.float32)


def case(repository: str, name: str) -> Callable[[Make], Make]:
    def add(make: Make) -> Make:
        CASES.setdefault(repository, []).append((name, make))
        return make

    return add


def _lower(n: int) -> Any:
    return np.tril(np.ones((n, n), np.float32))


def _attended(scores: Any, seen: Any, values: Any) -> Any:
    return answers.softmax(np.where(seen, scores, -1e9)) @ values


def _recent(n: int, window: int) -> Any:
    """Whom each of n places sees: itself and the window's places before it."""
    at = np.arange(n)
    return (at[None] <= at[:, None]) & (at[:, None] - at[None] < window)


@case("RichardYin21+Trainium-Quantum-Simulator", "gate")
def _gate(folder: Path, some: Numbers) -> Any:
    gate, state = some(2, 128, 128), some(2, 128, 1024)
    wanted = (gate[0] + 1j * gate[1]) @ (state[0] + 1j * state[1])
    return load(folder / "nki_gate_apply.py").nki_gate_apply(gate, state), np.stack([wanted.real, wanted.imag])


@case("biquando+trainium-quantum-sim", "circuit of 10 qubits")
def _circuit(folder: Path, some: Numbers) -> Any:
    circuit = load(folder / "src/circuit.py").QuantumCircuit
    size, batch, count = 128, 8, 1 << 10
    gates = [np.linalg.qr(some(size, size) + 1j * some(size, size))[0] for _ in range(2)]
    moves = np.stack([np.asarray(circuit.get_perm(10, q)) for q in ([9, 1, 4, 3, 7, 5, 0], [2, 3, 8, 0, 1, 6, 5])])
    base = np.arange(size * batch, dtype=np.uint32).reshape(batch, size).T
    made = np.asarray(circuit.kernel(np.stack([np.stack([g.real, g.imag]) for g in gates]).astype(np.float32), moves,
                                     count, size, count // size, batch, base))  # fmt: skip
    state, places = np.eye(1, count, dtype=complex)[0], np.arange(count)
    for gate, bits in zip(gates, moves.astype(int), strict=True):
        to = sum(((places >> a) & 1) << b for a, b, *_ in bits)
        new = state.copy()
        new[to] = (state[to].reshape(-1, size) @ gate.T).ravel()
        state = new
    return made[..., 0], np.stack([state.real, state.imag])


WILLY = "Willy-Chan+trainium-linear-attention"


@case(WILLY, "based attention")
def _based(folder: Path, some: Numbers) -> Any:
    kernel, n, d = load(folder / "kernels/nki_attention.py").get_based_attn_kernel(256, 128, 2, 64)
    q, k, v = (some(2, n, d, scale=0.1) for _ in range(3))
    a = q @ k.transpose(0, 2, 1)
    p = (1 + a + 0.5 * a * a) * _lower(n)
    return np.concatenate(kernel(q, k, v), -1), np.concatenate([p @ v, p.sum(-1, keepdims=True)], -1)


@case(WILLY, "chunked linear attention")
def _chunked(folder: Path, some: Numbers) -> Any:
    kernel, n, features, values = load(folder / "kernels/nki_attention_chunked.py").get_chunked_attn_kernel(256, 200, 64, 2, 64)
    q, k, v = some(2, n, features, scale=0.1), some(2, n, features, scale=0.1), some(2, n, values)
    return kernel(q, k, v), (q @ k.transpose(0, 2, 1) * _lower(n)) @ v


@case(WILLY, "sliding window")
def _window(folder: Path, some: Numbers) -> Any:
    kernel, n, d, padded, mask = load(folder / "kernels/nki_attention_sliding.py").get_sliding_window_kernel(256, 128, 2, 64, 64)
    q, k, v = some(2, n, d, scale=0.1), some(2, padded, d, scale=0.1), some(2, padded, d)
    first = padded - n
    k[:, :first] = v[:, :first] = 0
    return kernel(q, k, v, mask), _attended(q @ k[:, first:].transpose(0, 2, 1), _recent(n, 64), v[:, first:])


@case(WILLY, "state in PSUM")
def _state(folder: Path, some: Numbers) -> Any:
    kernel, n, d = load(folder / "old/identity_linear_attn_nki_CHUNKED.py").get_chunked_attn_kernel(256, 128, 64)
    q, k, v = (some(n, d, scale=0.1) for _ in range(3))
    return kernel(q, k, v), (q @ k.T * _lower(n)) @ v


EMILY = "EmilyWebber+nki-helpers"


@case(EMILY, "addition on two cores")
def _addition(folder: Path, some: Numbers) -> Any:
    a, b = some(512, 2048), some(512, 2048)
    return load(folder / "tensor_add/tensor_add_spmd_nc2.py").nki_tensor_add_nc(a, b), a + b


@case(EMILY, "product")
def _product(folder: Path, some: Numbers) -> Any:
    a, b = some(128, 128), some(128, 128)
    return load(folder / "matmul/nki_matmul_spmd.py").nki_matmul_basic_[1, 1](a, b), a.T @ b


def _large_d(window: int) -> Make:
    def make(folder: Path, some: Numbers) -> Any:
        n, d = 1024, 256
        q, k, v, out = some(1, d, n, scale=0.2), some(1, d, n, scale=0.2), some(1, n, d), np.zeros((1, d, n), np.float32)
        file = load(folder / "optimum/neuron/models/inference/backend/modules/attention/flash_attention_nki.py")
        file.flash_fwd_large_d[1](q, k, v, 1.0, out, True, window)
        return out, _attended(q.transpose(0, 2, 1) @ k, _recent(n, window or n), v).transpose(0, 2, 1)

    return make


case("huggingface+optimum-neuron", "flash attention of 256")(_large_d(0))
case("huggingface+optimum-neuron", "flash attention of 256, window")(_large_d(512))

NXDI = "aws-neuron+neuronx-distributed-inference"
GDN = "contrib/models/Qwen3.5-2B/src/nki_kernels"


@case(NXDI, "sliding window attention")
def _sliding(folder: Path, some: Numbers) -> Any:
    n, d = 2048, 128
    q, k, v = some(1, 2, d, n, scale=0.3), some(1, 1, d, n, scale=0.3), some(1, 1, n, d)
    file = load(folder / "src/neuronx_distributed_inference/modules/sliding_window/attention.py")
    made = file.flash_fwd[1, 1](q, k, v, None, True, (511, -1))
    return made, _attended(q.transpose(0, 1, 3, 2) @ k / np.sqrt(d), _recent(n, 512), v)


@case(NXDI, "rolling buffer")
@case("whn09+neuronx-distributed-inference", "rolling buffer")
def _rolling(folder: Path, some: Numbers) -> Any:
    buffer, states = some(4, 8, 256), some(2, 256)
    wanted = buffer.copy()
    wanted[3, 5], wanted[1, 0] = states
    file = load(folder / "src/neuronx_distributed_inference/modules/eagle/hidden_state.py")
    return file.rolling_buffer_set_state(buffer, states, np.array([3, 1], np.int32), np.array([5, 0], np.int32)), wanted


def _delta(q: Any, k: Any, v: Any, decay: Any, beta: Any, state: Any) -> tuple[Any, Any]:
    """The gated delta rule, token by token."""
    state, out = state.astype(np.float64), np.zeros(v.shape)
    for t in range(len(q)):
        state = state * np.exp(decay[t])
        state = state + beta[t] * np.outer(k[t], v[t] - k[t] @ state)
        out[t] = q[t] @ state
    return out, state


def _tokens(n: int, some: Numbers) -> Any:
    q, k, v = some(n, 128), some(n, 128), some(n, 128, scale=0.5)
    q, k = (x / np.linalg.norm(x, axis=-1, keepdims=True) for x in (q, k))
    return q / np.float32(np.sqrt(128)), k, v, -0.15 * np.log1p(np.exp(some(n))), 1 / (1 + np.exp(-some(n)))


def _chunk_step(file: str) -> Make:
    def make(folder: Path, some: Numbers) -> Any:
        (q, k, v, decay, beta), state, eye = _tokens(128, some), some(128, 128, scale=0.1), np.eye(128, dtype=np.float32)
        wide = [np.repeat(x[:, None], 128, 1) for x in (beta, np.cumsum(decay), np.full(128, decay.sum(), np.float32))]
        made = load(folder / file).deltanet_chunk_step(q, k, v, *wide, state, _lower(128) - eye, eye, _lower(128))
        return np.concatenate(made), np.concatenate(_delta(q, k, v, decay, beta, state))

    return make


def _fused_chunks(file: str, scale: float = 1, stated: bool = True) -> Make:
    def make(folder: Path, some: Numbers) -> Any:
        (q, k, v, decay, beta), eye = _tokens(256, some), np.eye(128, dtype=np.float32)
        state = some(128, 128, scale=0.1 if stated else 0)
        made = load(folder / file).deltanet_fused_chunked_fwd(
            scale * q, scale * k, v, decay[:, None], beta[:, None], *([state] if stated else []), _lower(128) - eye, eye, _lower(128)
        )
        wanted = _delta(q, k, v, decay, beta, state)
        return (np.concatenate(made), np.concatenate(wanted)) if stated else (made[0], wanted[0])

    return make


QWEN = "KevGomes1403+trainium-model-translation"
PREFILL = "models/qwen3_6_moe/nki_kernels/deltanet/prefill"
case(QWEN, "delta rule, a chunk")(_chunk_step(f"{PREFILL}/chunked_step.py"))
case(QWEN, "delta rule, fused")(_fused_chunks(f"{PREFILL}/chunked_fused.py", stated=False))
case(NXDI, "delta rule, a chunk")(_chunk_step(f"{GDN}/nki_deltanet_chunked.py"))
case(NXDI, "delta rule, fused, first")(_fused_chunks(f"{GDN}/nki_deltanet_fused_legacy.py"))
case(NXDI, "delta rule, fused, which scales itself")(_fused_chunks(f"{GDN}/nki_deltanet_fused.py", scale=2))


@case(NXDI, "delta rule, by tokens")
def _recurrent(folder: Path, some: Numbers) -> Any:
    q, k, v, decay, beta = _tokens(128, some)
    wide = [np.repeat(x[:, None], 128, 1) for x in (decay, beta)]
    made = load(folder / GDN / "nki_deltanet.py").deltanet_recurrent_fwd(q, k, v, *wide)
    return made, _delta(q, k, v, decay, beta, np.zeros((128, 128)))[0]


@case(NXDI, "masked cross attention, bf16")
def _cross(folder: Path, some: Numbers) -> Any:
    import ml_dtypes

    q, k, v = (x.astype(ml_dtypes.bfloat16) for x in (some(2, 256, 128, scale=0.1), some(2, 1024, 128), some(2, 1024, 128)))
    mask = np.where(some(2, 1024) > 0, 0, -1e4).astype(ml_dtypes.bfloat16)
    made = load(folder / "contrib/models/ltx2-video-audio/src/nki_cross_attention_kernel.py").cross_attn_kernel(q, k, v, mask)
    q, k, v, mask = (x.astype(np.float32) for x in (q, k, v, mask))
    return made, answers.softmax(q @ k.transpose(0, 2, 1) + mask[:, None]) @ v


@case(NXDI, "latent attention of one token, bf16")
def _latent(folder: Path, some: Numbers) -> Any:
    import ml_dtypes

    shapes = ((2, 64), (2, 512), (1, 1024, 576), (2, 256, 512))
    rope, nope, cache, absorb = (some(*shape, scale=0.1).astype(ml_dtypes.bfloat16) for shape in shapes)
    kernel = load(folder / "contrib/models/GLM-5.2/src/mla_attention_nki_kernel.py").mla_attention_tkg
    made = kernel(rope, nope, cache, absorb, np.ones((2, 1024), np.uint8), softmax_scale=0.0625, seq_len=1024)
    rope, nope, cache, absorb = (x.astype(np.float32) for x in (rope, nope, cache[0], absorb))
    weights = answers.softmax(0.0625 * (rope @ cache[:, :64].T + nope @ cache[:, 64:].T))
    return made, np.einsum("hc,hvc->hv", weights @ cache[:, 64:], absorb)
