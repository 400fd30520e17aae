"""The program `trellis` of this package: `trellis` and `python -m trellis` start it."""

import os
import sys

from trellis._where import PROGRAM

__all__ = ["main"]


def main() -> None:
    os.execv(PROGRAM, [PROGRAM, *sys.argv[1:]])


if __name__ == "__main__":
    main()
