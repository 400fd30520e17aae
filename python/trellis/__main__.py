"""The program `trellis` of this package: `trellis` and `python -m trellis` start it. `trellis nki` is Python's own."""

import os
import sys

from trellis._where import PROGRAM

__all__ = ["main"]


def main() -> None:
    if sys.argv[1:2] == ["nki"]:
        from trellis.nki.command.run import main as nki

        sys.exit(nki(sys.argv[2:]))
    os.environ.setdefault("TRELLIS_PYTHON", sys.executable)  # `trellis simulate` uses this interpreter's packages
    os.execv(PROGRAM, [PROGRAM, *sys.argv[1:]])


if __name__ == "__main__":
    main()
