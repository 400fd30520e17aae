"""How long one computation takes a NeuronCore: what each engine has to do of it, and how far the engines overlap.

>>> from trellis import sim
>>> t = sim.operation_time("product", chip="trn1", rows=4096, columns=11008, inner=4096)
>>> t.longest, t.tensor < t.total < t.tensor + t.vector + t.scalar + t.memory
('tensor', True)
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from trellis import _native

__all__ = ["OperationTime", "operation_kinds", "operation_time"]


@dataclass(frozen=True)
class OperationTime:
    """Seconds: of all of it, and of each engine's work alone. overlap: 1 where the longest engine decides, 0 where
    engines take turns."""

    total: float
    tensor: float
    vector: float
    scalar: float
    memory: float
    overlap: float
    longest: str
    bytes: float
    flops: float


def operation_kinds() -> dict[str, str]:
    """The kinds that operation_time knows: what each is, and what rows, columns and so on are of it."""
    return _native.operation_kinds()


def operation_time(
    kind: str,
    *,
    chip: str = "trn1",
    rows: int = 1,
    columns: int = 1,
    inner: int = 1,
    batch: int = 1,
    shared: int = 1,
    type: str = "bf16",
    result: str = "",
    fused: bool = False,
    accumulate: bool = False,
    causal: bool = False,
    flash: bool = False,
    dropout: bool = False,
    inputs: float | None = None,
    outputs: float | None = None,
    vector: float | None = None,
    scalar: float | None = None,
    cores: float = 0,
    what_if: Sequence[str] = (),
) -> OperationTime:
    """The time of one computation of a training step on a rank with so many NeuronCores (0: a logical core's).

    product: rows x inner by inner x columns, batch times; accumulate adds to what is there. attention: rows queries by
    columns keys of batch heads with inner elements, of which shared use one head of keys. Others: rows x columns.
    inputs, outputs, vector, scalar: of elementwise, its arrays and passes. fused: its arrays are its neighbours' and do
    not pass through memory. type, result: of the elements that are read and written, as "f32", or as "mxfp8_e4m3" where
    the chip has MX. what_if: figures of the chip, as in "dma.engine.rate=34GB/s".
    ValueError: an unknown kind, chip, type or figure, MX of a chip without it, an extent of 0, or a number that is
    negative or infinite.
    """
    numbers = {"cores": cores, "inputs": inputs, "outputs": outputs, "vector": vector, "scalar": scalar}
    for name, number in numbers.items():
        if number is not None and not 0 <= number < math.inf:
            raise ValueError(f"{name}={number}: expected a number from 0 on")

    def or_usual(number: float | None) -> float:
        return -1.0 if number is None else float(number)

    return OperationTime(
        **_native.operation_time(
            chip, list(what_if), cores, kind, rows, columns, inner, batch, shared, type, result, fused, accumulate,
            causal, flash, dropout, or_usual(inputs), or_usual(outputs), or_usual(vector), or_usual(scalar),
        )
    )  # fmt: skip
