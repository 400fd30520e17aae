"""python -m trellis.nki: see --help."""

import sys

from trellis.nki.command.run import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
