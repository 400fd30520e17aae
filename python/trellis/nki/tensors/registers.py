"""A register of an engine's sequencer. While a kernel is traced its value is known."""

from typing import Any

import numpy as np

__all__ = ["number", "VirtualRegister"]


def _wrapped(value: Any, bits: int = 32) -> int:
    low: int = int(value) & ((1 << bits) - 1)
    return low - (1 << bits) if low >> (bits - 1) else low


class VirtualRegister:
    """A whole number of 32 bits, that wraps."""

    __slots__ = ("value",)

    def __init__(self, state: Any = None, frozen: bool = False) -> None:
        self.value = 0 if state is None else _wrapped(number(state))

    def __bool__(self) -> bool:
        return self.value != 0

    def __index__(self) -> int:
        return self.value

    __int__ = __index__

    def __repr__(self) -> str:
        return f"VirtualRegister({self.value})"

    def _with(self, other: Any, f: Any) -> "VirtualRegister":
        return VirtualRegister(f(self.value, number(other)))

    def __add__(self, other: Any) -> "VirtualRegister":
        return self._with(other, lambda a, b: a + b)

    def __sub__(self, other: Any) -> "VirtualRegister":
        return self._with(other, lambda a, b: a - b)

    def __rsub__(self, other: Any) -> "VirtualRegister":
        return self._with(other, lambda a, b: b - a)

    def __mul__(self, other: Any) -> "VirtualRegister":
        return self._with(other, lambda a, b: a * b)

    def __floordiv__(self, other: Any) -> "VirtualRegister":
        return self._with(other, lambda a, b: a // b)

    def __mod__(self, other: Any) -> "VirtualRegister":
        return self._with(other, lambda a, b: a % b)

    __radd__, __rmul__ = __add__, __mul__

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, (int, np.integer, VirtualRegister)) and self.value == number(other)

    def __lt__(self, other: Any) -> bool:
        return self.value < number(other)

    def __le__(self, other: Any) -> bool:
        return self.value <= number(other)

    def __gt__(self, other: Any) -> bool:
        return self.value > number(other)

    def __ge__(self, other: Any) -> bool:
        return self.value >= number(other)

    def __hash__(self) -> int:
        return id(self)


def number(x: Any) -> int:
    """The whole number that a number, a register or a tensor of one element holds."""
    if type(x) is int:
        return x
    if isinstance(x, int):  # a loop's index, too (language/counted.py)
        return int(x)
    if isinstance(x, VirtualRegister):
        return x.value
    if hasattr(x, "memory"):
        return int(x.read().reshape(-1)[0])
    return int(x)
