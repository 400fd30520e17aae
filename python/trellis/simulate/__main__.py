"""The command: `python -m trellis.simulate` and `trellis simulate`."""

from trellis.simulate.command import main

if __name__ == "__main__":
    main()
