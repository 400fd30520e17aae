"""What a kernel may not do, and the figures that say so."""

from trellis.nki.rules.chips import ChipLimits, limits_of

__all__ = ["ChipLimits", "limits_of"]
