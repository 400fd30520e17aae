"""What a kernel may use of each chip's core: data, in limits.txt."""

import os
from functools import cache
from typing import NamedTuple

__all__ = ["ChipLimits", "limits_of", "PARTITIONS"]

PARTITIONS = 128


class ChipLimits(NamedTuple):
    chip: str
    generation: int
    sbuf_bytes: int  # in a partition
    psum_bytes: int
    psum_banks: int
    moving: int  # elements of a partition that one matmul streams
    source: str

    @property
    def bank_bytes(self) -> int:
        return self.psum_bytes // self.psum_banks


@cache
def all_limits() -> dict[str, ChipLimits]:
    found = {}
    with open(os.path.join(os.path.dirname(__file__), "limits.txt")) as file:
        lines = file.read().splitlines()
    for line in lines:
        if line.strip() and not line.startswith("#"):
            chip, *numbers, source = [word.strip() for word in line.split("|")]
            generation, sbuf, psum, banks, moving = map(int, numbers)
            found[chip] = ChipLimits(chip, generation, sbuf, psum, banks, moving, source)
    return found


def limits_of(chip: str) -> ChipLimits:
    try:
        return all_limits()[chip]
    except KeyError:
        raise ValueError(f"{chip!r} is no chip; expected one of {', '.join(all_limits())}") from None
