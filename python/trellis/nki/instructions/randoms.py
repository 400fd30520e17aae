"""Random numbers. The hardware's own sequences are not published; these are numpy's, from a seed."""

from typing import Any

import numpy as np

from trellis.nki.instructions.emit import G, V, emit, instruction, operand, scalar_attribute, session

__all__ = ["dropout", "generator"]


def generator() -> Any:
    s = session()
    if s.random is None:
        s.random = np.random.default_rng(0)
    return s.random


@instruction("rng")
def rng(dst: Any, engine: Any = None, name: Any = None) -> Any:
    if session().compute:
        bits = generator().integers(0, 1 << 32, dst.shape, dtype=np.uint32)
        dst.write(bits.astype(dst.dtype))
    return emit("rng", (dst,), (), allowed=(V, G), name="rng", engine=engine)


@instruction("rand2")
def rand2(dst: Any, min: Any, max: Any, name: Any = None) -> Any:
    if session().compute:
        u = generator().random(dst.shape, dtype=np.float32)
        low, high = operand(min, u), operand(max, u)
        dst.write(low + u * (high - low))
    return emit("rand2", (dst,), (min, max), allowed=(V,), name="rand2",
                attributes=scalar_attribute("value", min) | scalar_attribute("value1", max))


@instruction("dropout")
def dropout(dst: Any, data: Any, prob: Any, name: Any = None) -> Any:
    if session().compute:
        x = data.f32()
        dst.write(np.where(generator().random(x.shape, dtype=np.float32) < operand(prob, x), np.float32(0), x))
    return emit(
        "dropout", (dst,), (data, prob), allowed=(V,), name="dropout", attributes=scalar_attribute("rate", prob)
    )


@instruction("set_rng_seed")
def set_rng_seed(src_seeds: Any, name: Any = None) -> Any:
    session().random = np.random.default_rng(np.abs(src_seeds.read().reshape(-1).astype(np.int64)))
    return emit("set_rng_seed", (), (src_seeds,), allowed=(V,), name="set_rng_seed")


@instruction("rand_set_state")
def rand_set_state(src_seeds: Any, engine: Any = None, name: Any = None) -> Any:
    session().random = np.random.default_rng(np.abs(src_seeds.read().reshape(-1).astype(np.int64)))
    return emit("rand_set_state", (), (src_seeds,), allowed=(G, V), name="rand_set_state", engine=engine)


@instruction("rand_get_state")
def rand_get_state(dst: Any, engine: Any = None, name: Any = None) -> Any:
    if session().compute:
        dst.write(generator().integers(0, 1 << 32, dst.shape, dtype=np.uint32))
    return emit("rand_get_state", (dst,), (), allowed=(G, V), name="rand_get_state", engine=engine)
