"""The commands `python3 -m trellis.train prepare`, and `tokens` for `trellis train generate`."""

import sys

from trellis.train import tokens
from trellis.train.prepare import main

__all__ = ["main"]

if __name__ == "__main__":
    if sys.argv[1:2] == ["tokens"] and len(sys.argv) == 3:
        sys.exit(tokens.main(sys.argv[2:]))
    if sys.argv[1:2] != ["prepare"]:
        wanted = sys.argv[1:2] not in ([], ["-h"], ["--help"])
        print(
            (f"no command {sys.argv[1]!r}: " if wanted else "") + "python3 -m trellis.train prepare --help",
            file=sys.stderr if wanted else sys.stdout,
        )
        sys.exit(1 if wanted else 0)
    sys.exit(main(sys.argv[2:]))
