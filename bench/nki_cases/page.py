"""A table in a page that has other text, too."""

import re
from pathlib import Path

# Lines that a program made: rows, and what is said below them.
MADE = re.compile(r"\||$|Not run: |\d+ kernels: error ")


def put(lines: list[str], path: Path) -> None:
    """In the place of the table there that begins with the same line, and of what was made with it; else alone."""
    old = path.read_text().split("\n") if path.exists() else []
    if lines[0] not in old:
        path.write_text("\n".join(lines) + "\n")
        return
    first = last = old.index(lines[0])
    while last < len(old) and MADE.match(old[last]):
        last += 1
    after = ["", *old[last:]] if last < len(old) else [""]
    path.write_text("\n".join([*old[:first], *lines, *after]))
