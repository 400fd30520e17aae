"""A loop's index that knows what it was asked: whether other iterations may go another way than those that are
traced."""

from typing import Any

__all__ = ["Counted", "LoopWatch"]


class LoopWatch:
    """Of one loop: which of its iterations are traced, and whether its index was asked for more than they tell."""

    def __init__(self, count: int, traced: set[int]) -> None:
        self.count, self.traced, self.now, self.step, self.asked = count, traced, 0, 1, False

    def index(self, k: int, values: range) -> "Counted":
        self.now, self.step = k, values.step
        return Counted.of(values[k], {self: values.step})

    def meets(self, steps: int) -> None:
        """An equality that holds so many iterations from now."""
        at = self.now + steps
        self.asked = self.asked or (0 <= at < self.count and at not in self.traced)


class Counted(int):
    """A whole number that grows evenly with loops.

    Comparisons by < and > change at most once along a loop, so they are the same for all iterations if they are for the
    first ones and the last. Equality holds at one place, which must be traced. Remainders, digits and keys ask the
    loop."""

    slopes: dict[LoopWatch, int]  # by how much it grows with an iteration of each loop

    @staticmethod
    def of(value: int, slopes: dict[LoopWatch, int]) -> "Counted":
        made = Counted(value)
        made.slopes = slopes
        return made

    def _sum(self, o: Any, sign: int) -> Any:
        if not isinstance(o, int):
            return NotImplemented
        slopes = dict(self.slopes)
        for watch, slope in getattr(o, "slopes", {}).items():
            slopes[watch] = slopes.get(watch, 0) + sign * slope
        return Counted.of(int(self) + sign * int(o), slopes)

    def __add__(self, o: Any) -> Any:
        return self._sum(o, 1)

    def __radd__(self, o: Any) -> Any:
        return self._sum(o, 1)

    def __sub__(self, o: Any) -> Any:
        return self._sum(o, -1)

    def __rsub__(self, o: Any) -> Any:
        return (-self)._sum(o, 1)

    def __neg__(self) -> Any:
        return self * -1

    def __mul__(self, o: Any) -> Any:
        if type(o) is int:
            return Counted.of(int(self) * o, {watch: slope * o for watch, slope in self.slopes.items()})
        self._ask(o)
        return int.__mul__(self, o)

    __rmul__ = __mul__

    def _ask(self, *others: Any) -> None:
        for watch in {w for each in (self, *others) for w in getattr(each, "slopes", ())}:
            watch.asked = True

    def __eq__(self, o: Any) -> bool:
        moving = [(watch, slope) for watch, slope in self.slopes.items() if slope]
        if len(moving) > 1 or isinstance(o, Counted) or not isinstance(o, int):
            self._ask(o)
        elif moving:
            ((watch, slope),) = moving
            steps, rest = divmod(int(o) - int(self), slope)
            if rest == 0:
                watch.meets(steps)
        return int.__eq__(self, o) is True

    def __ne__(self, o: Any) -> bool:
        return not self == o

    def __bool__(self) -> bool:
        return self != 0


def _asking(name: str) -> Any:
    plain = getattr(int, name)

    def method(self: Counted, *others: Any) -> Any:
        self._ask(*others)
        return plain(self, *others)

    return method


for _name in ("abs", "and", "divmod", "float", "floordiv", "format", "hash", "invert", "lshift", "mod", "or", "pow",
              "rand", "rdivmod", "repr", "rfloordiv", "rlshift", "rmod", "ror", "rpow", "rrshift", "rshift", "rtruediv",
              "rxor", "truediv", "xor"):  # fmt: skip
    setattr(Counted, f"__{_name}__", _asking(f"__{_name}__"))
