"""Times of kernels, kept in a file; a kernel that has become slower fails."""

import json
import pathlib
from typing import Any

from trellis.nki.timing.timing import Timing

__all__ = ["key", "read", "SLOWER", "verdicts", "write"]

SLOWER = 1.05


def read(path: pathlib.Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        known = json.loads(path.read_text())
        return {name: float(us) for name, us in known["us"].items()}
    except (ValueError, KeyError, AttributeError, TypeError) as e:
        raise ValueError(f"{path}: {e!r}; expected a file that `check --write` made") from e


def key(which: str, timing: Timing) -> str:
    return f"{which} on {timing.chip}"


def write(path: pathlib.Path, timings: dict[str, Timing]) -> None:
    known = read(path)
    known.update({key(which, t): round(t.seconds * 1e6, 3) for which, t in timings.items()})
    path.write_text(json.dumps({"us": dict(sorted(known.items()))}, indent=1) + "\n")


def verdicts(path: pathlib.Path, timings: dict[str, Timing]) -> tuple[list[str], bool]:
    """A line for each kernel, and whether all are within their budgets."""
    known, lines, good = read(path), [], True
    for which, t in timings.items():
        name, us = key(which, t), t.seconds * 1e6
        if name not in known:
            lines.append(f"{name}: {us:.3f} us, and {path} has none for it (--write adds it)")
            good = False
            continue
        slower = us > SLOWER * known[name]
        good = good and not slower
        change = round(100 * (us / known[name] - 1), 1) or 0.0  # no -0.0
        lines.append(f"{name}: {us:.3f} us, {change:+.1f}% of {known[name]:.3f} us{': too slow' if slower else ''}")
    return lines, good
