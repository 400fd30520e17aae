"""The command: `python3 -m trellis.train prepare`."""

import sys

from trellis.train.prepare import main

__all__ = ["main"]

if __name__ == "__main__":
    if sys.argv[1:2] != ["prepare"]:
        wanted = sys.argv[1:2] not in ([], ["-h"], ["--help"])
        print(
            (f"no command {sys.argv[1]!r}: " if wanted else "") + "python3 -m trellis.train prepare --help",
            file=sys.stderr if wanted else sys.stdout,
        )
        sys.exit(1 if wanted else 0)
    sys.exit(main(sys.argv[2:]))
