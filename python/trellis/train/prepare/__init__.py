"""Arrow, Parquet and lines of JSON made into tokens that the trainer reads: NAME.bin, NAME.idx and NAME.mask."""

from trellis.train.prepare.command import main

__all__ = ["main"]
