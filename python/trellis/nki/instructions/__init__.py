"""nki.isa: what each instruction computes, and its record."""

from trellis.nki.instructions.operators import FUNCTIONS, alu

__all__ = ["FUNCTIONS", "alu"]
