"""Sizes in bytes, as numbers or as text.

>>> in_bytes("64KiB"), in_bytes("1.5MB"), in_bytes(8)
(65536, 1500000, 8)
"""

import re

__all__ = ["Size", "in_bytes"]

Size = int | float | str

_UNITS = {"": 1, "B": 1}
for _power, _letter in enumerate("KMGT", 1):
    _UNITS[f"{_letter}iB"] = _UNITS[_letter] = 1024**_power
    _UNITS[f"{_letter}B"] = 1000**_power


def in_bytes(size: Size) -> int:
    """K, M, G and KiB, MiB, GiB are of 1024; KB, MB, GB of 1000."""
    if not isinstance(size, str):
        if size < 0:
            raise ValueError(f"{size} is no size: expected 0 or more")
        return int(size)
    found = re.fullmatch(r"\s*([0-9.]+)\s*([A-Za-z]*)\s*", size)
    if not found or found[2] not in _UNITS:
        raise ValueError(f"{size!r} is no size: expected a number and one of {', '.join(filter(None, _UNITS))}")
    return int(float(found[1]) * _UNITS[found[2]])
