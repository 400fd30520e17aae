"""Which of two kernels is faster, and why."""

from dataclasses import dataclass
from typing import Any

from trellis.nki.timing import words
from trellis.nki.timing.timing import Timing

__all__ = ["Comparison"]


@dataclass(frozen=True)
class Comparison:
    first: Timing
    second: Timing

    @property
    def verdict(self) -> str:
        """first or second, where the intervals are apart; likely first, likely second, where each end is faster;
        draw."""
        a, b = self.first, self.second
        if a.high < b.low:
            return "first"
        if b.high < a.low:
            return "second"
        if a.seconds < b.seconds and a.low < b.low and a.high < b.high:
            return "likely first"
        if b.seconds < a.seconds and b.low < a.low and b.high < a.high:
            return "likely second"
        return "draw"

    @property
    def ratio(self) -> float:
        """How many times as long the slower one takes."""
        return max(self.first.seconds, self.second.seconds) / min(self.first.seconds, self.second.seconds)

    def reasons(self) -> list[str]:
        """What differs by a tenth or more, the largest difference first."""
        a, b = self.first, self.second
        pairs = {
            "moves {} MB by DMA": (a.dma["bytes"] / 1e6, b.dma["bytes"] / 1e6),
            "has descriptors of {} bytes": (a.dma["bytes_per_descriptor"], b.dma["bytes_per_descriptor"]),
            "has {} instructions": (float(a.instructions), float(b.instructions)),
            "keeps {} bytes of a partition of SBUF": (float(a.memory["sbuf"]), float(b.memory["sbuf"])),
            "does {} GFLOP": (a.roofline["flops"] / 1e9, b.roofline["flops"] / 1e9),
        }
        for engine in sorted(a.engines.keys() | b.engines.keys()):
            pairs[f"keeps {engine} busy for {{}} us"] = (
                a.engines.get(engine, 0.0) * a.seconds * 1e6, b.engines.get(engine, 0.0) * b.seconds * 1e6)  # fmt: skip
        said = []
        for text, (one, other) in pairs.items():
            if max(one, other) >= 1.1 * min(one, other) and max(one, other) > 0:
                size = max(one, other) / max(min(one, other), 1e-9)
                said.append((size, f"the first {text.format(f'{one:.4g}')}, the second {other:.4g}"))
        return [text for _, text in sorted(said, key=lambda each: -each[0])]

    def json(self) -> dict[str, Any]:
        return {"faster": self.verdict, "ratio": round(self.ratio, 4), "reasons": self.reasons()[: words.MOST],
                "first": self.first.json(), "second": self.second.json()}  # fmt: skip

    def __str__(self) -> str:
        lines = [f"{label:7} {t.name} on {t.chip}: {words.time(t.seconds)}, "
                 f"between {words.time(t.low)} and {words.time(t.high)}"
                 for label, t in (("first", self.first), ("second", self.second))]  # fmt: skip
        verdicts = {"draw": "a draw: the intervals meet, and neither is faster at both ends"}
        for name in ("first", "second"):
            verdicts[name] = f"the {name} is faster, {self.ratio:.3g} times"
            verdicts[f"likely {name}"] = (
                f"the {name} is likely faster, {self.ratio:.3g} times: at both ends, though the intervals meet"
            )
        lines.append(verdicts[self.verdict])
        lines += [f"  why           {each}" for each in self.reasons()[: words.MOST]]
        return "\n".join(lines)
