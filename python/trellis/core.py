"""Programs of one NeuronCore: what they compute, with numpy in and out, and how long they take.

>>> from trellis import core
>>> import numpy as np
>>> p = core.program("softmax", rows=128, columns=64, type="f32")
>>> [b.name for b in p.buffers]
['x', 'y']
>>> x = np.random.default_rng(1).standard_normal((128, 64), dtype=np.float32)
>>> r = p.run({"x": x})
>>> np.allclose(r.outputs["y"].reshape(128, 64).sum(axis=1), 1, atol=1e-5), r.time > 0
(True, True)

Numpy lacks bf16 and fp8. Floats given for such an input are rounded to the nearest; unsigned numbers of its size are
its bits. `outputs` has the bits of such an output, `values` what they mean, as f32:

>>> halves = core.program("softmax", rows=128, columns=64, type="bf16").run({"x": x})
>>> halves.outputs["y"].dtype, halves.values["y"].dtype
(dtype('uint16'), dtype('float32'))
>>> np.allclose(halves.values["y"], r.outputs["y"], rtol=2**-5)
True
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from trellis import _native
from trellis.sim import Timeline

__all__ = ["Buffer", "Program", "Ran", "parse", "program", "programs"]

_PS = 1e-12
_NUMPY = {
    "f64": "float64", "f32": "float32", "f16": "float16", "bf16": "uint16", "tf32": "float32",
    "i8": "int8", "u8": "uint8", "i16": "int16", "u16": "uint16", "i32": "int32", "u32": "uint32",
    "i64": "int64", "u64": "uint64",
}  # fmt: skip
_FLOATS = {"float64": "f64", "float32": "f32", "float16": "f16"}


def _as_bits(kind: str) -> bool:
    return kind == "bf16" or kind.startswith("f8")


@dataclass(frozen=True)
class Buffer:
    """A program's buffer in HBM."""

    name: str
    role: str  # input, output, internal
    type: str
    bytes: int

    @property
    def dtype(self) -> np.dtype[Any]:
        """Numpy's type for it; bits as unsigned numbers where numpy has none (bf16, fp8)."""
        return np.dtype(_NUMPY.get(self.type, "uint8"))

    @property
    def as_bits(self) -> bool:
        """Numpy has no type for it."""
        return _as_bits(self.type)


@dataclass(frozen=True)
class Ran:
    """One run. Times are in seconds. `outputs` are flat; those of types that numpy lacks are bits."""

    time: float
    outputs: dict[str, npt.NDArray[Any]]
    instructions: int
    flops: float
    dma_bytes: float
    hbm_read: float
    hbm_written: float
    engines: list[tuple[int, str, int, float]]  # core, engine, instructions, busy seconds
    timeline: Timeline = field(repr=False)
    types: dict[str, str] = field(repr=False)  # of the outputs

    @property
    def values(self) -> dict[str, npt.NDArray[Any]]:
        """The outputs as numbers: f32 where numpy lacks the type."""
        return {name: _values(self.types[name], array) for name, array in self.outputs.items()}


def _cast(source: npt.NDArray[Any], source_type: str, target: npt.NDArray[Any], target_type: str) -> npt.NDArray[Any]:
    _native.cast(source_type, source.ctypes.data, target_type, target.ctypes.data, source.size)
    return target


def _values(kind: str, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return _cast(array, kind, np.empty(array.shape, np.float32), "f32") if _as_bits(kind) else array


def _taken(buffer: Buffer, given: npt.ArrayLike) -> npt.NDArray[Any]:
    """The array as the buffer holds it. Nothing is lost but a float's last digits."""
    array = np.asarray(given)
    if buffer.as_bits and array.dtype.name in _FLOATS:
        array = np.ascontiguousarray(array, array.dtype.newbyteorder("="))
        return _cast(array, _FLOATS[array.dtype.name], np.empty(array.shape, buffer.dtype), buffer.type)
    if array.dtype != buffer.dtype and (buffer.as_bits or not np.can_cast(array.dtype, buffer.dtype, "same_kind")):
        bits = f"floats, or {buffer.dtype} with its bits" if buffer.as_bits else f"numbers that become {buffer.dtype}"
        raise ValueError(f"{buffer.name} is of {buffer.type}, and {array.dtype} was given: expected {bits}")
    if array.size and array.dtype.kind in "iu" and array.dtype != buffer.dtype and buffer.dtype.kind in "iu":
        can = np.iinfo(buffer.dtype)
        for given_number in (int(array.min()), int(array.max())):
            if not can.min <= given_number <= can.max:
                raise ValueError(
                    f"{buffer.name} is of {buffer.type}, and {given_number} was given: expected {can.min} to {can.max}"
                )
    return np.ascontiguousarray(array, dtype=buffer.dtype)


class Program:
    """Instructions for the engines of a core, as a value."""

    def __init__(self, native: _native.CoreProgram, chip: str = "trn2") -> None:
        self._native, self.chip = native, chip

    @property
    def name(self) -> str:
        return self._native.name

    @property
    def instructions(self) -> int:
        return self._native.instructions

    @property
    def text(self) -> str:
        """The assembler's form."""
        return self._native.text()

    @property
    def buffers(self) -> list[Buffer]:
        return [Buffer(*each) for each in self._native.buffers]

    def check(self, chip: str = "") -> None:
        """Raises ValueError for the first instruction that breaks a rule of the chip."""
        self._native.check(chip or self.chip)

    def unwritten_reads(self) -> list[str]:
        """Reads of bytes that nothing wrote before, and operands that a register leads out of their buffers."""
        return self._native.unwritten_reads()

    def run(self, inputs: Mapping[str, npt.ArrayLike] | None = None, chip: str = "", compute: bool = True) -> Ran:
        """Runs it. Inputs that are not given are zero; without `compute`, only the time is found.

        Floats for an input of bf16 or fp8 are rounded to the nearest; unsigned numbers of its size are its bits.
        """
        known = {b.name: b for b in self.buffers}
        given = []
        for name, array in (inputs or {}).items():
            if name not in known or known[name].role != "input":
                names = ", ".join(b.name for b in known.values() if b.role == "input")
                raise ValueError(f"{name!r} is no input of {self.name}: expected one of {names}")
            given.append((name, _taken(known[name], array)))
        outputs = {
            b.name: np.zeros(b.bytes // b.dtype.itemsize, b.dtype)
            for b in known.values()
            if b.role == "output" and compute
        }
        raw = self._native.run(chip or self.chip, compute, given if compute else [], list(outputs.items()))
        rows, labels, row, start, end = raw["timeline"]
        return Ran(
            time=raw["time_ps"] * _PS,
            outputs=outputs,
            instructions=raw["instructions"],
            flops=raw["flops"],
            dma_bytes=raw["dma_bytes"],
            hbm_read=raw["hbm_read_bytes"],
            hbm_written=raw["hbm_written_bytes"],
            engines=[(core, engine, count, busy * _PS) for core, engine, count, busy in raw["engines"]],
            timeline=Timeline(rows, labels, row, start * _PS, end * _PS),
            types={name: known[name].type for name in outputs},
        )

    def __repr__(self) -> str:
        return f"<core program {self.name!r}: {self.instructions} instructions>"


def parse(text: str, chip: str = "trn2") -> Program:
    """From the assembler's form."""
    return Program(_native.parse_core_program(text), chip)


def program(name: str, chip: str = "trn2", **settings: Any) -> Program:
    """One that ships, with its settings: see `programs()`."""
    return Program(_native.shipped_core_program(name, chip, [(k, str(v)) for k, v in settings.items()]), chip)


def programs() -> dict[str, dict[str, Any]]:
    """Every program that ships: what it is, and its settings with their meanings and defaults.

    >>> programs()["softmax"]["settings"]["type"]
    ('of all', 'bf16')
    """
    return {
        name: {"summary": summary, "settings": {key: (meaning, value) for key, meaning, value in settings}}
        for name, summary, settings in _native.shipped_core_programs()
    }


def __dir__() -> list[str]:
    return __all__
