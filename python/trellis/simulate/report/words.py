"""Numbers as people read them."""

__all__ = ["count", "ranks", "seconds", "size"]


def seconds(value: float) -> str:
    for unit, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if value >= unit:
            return f"{value / unit:.4g} {name}"
    return f"{value * 1e9:.3g} ns"


def size(value: float) -> str:
    for unit, name in ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if value >= unit:
            return f"{value / unit:.4g} {name}"
    return f"{value:.0f} B"


def count(value: float) -> str:
    for unit, name in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M")):
        if value >= unit:
            return f"{value / unit:.4g} {name}"
    return f"{value:,.0f}"


def ranks(all_of: list[int]) -> str:
    """ "0-62, 64": ascending ranks."""
    told: list[str] = []
    begin = 0
    for i in range(1, len(all_of) + 1):
        if i == len(all_of) or all_of[i] != all_of[i - 1] + 1:
            first, last = all_of[begin], all_of[i - 1]
            told.append(str(first) if first == last else f"{first}-{last}")
            begin = i
    return ", ".join(told[:6]) + (f" and {len(told) - 6} more stretches" if len(told) > 6 else "")
