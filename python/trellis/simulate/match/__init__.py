"""Whether what the classes of ranks communicate fits together."""

from trellis.simulate.match.proof import Mismatch, Proof, prove

__all__ = ["Mismatch", "Proof", "prove"]
