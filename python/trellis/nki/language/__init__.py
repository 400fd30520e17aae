"""nki.language: functions of one or several instructions, loops, declarations."""

from trellis.nki.language.sizes import NKIObject

__all__ = ["NKIObject"]
