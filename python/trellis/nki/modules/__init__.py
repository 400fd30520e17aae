"""The modules that kernels import, of each dialect, as objects."""

from trellis.nki.modules.build import everything

__all__ = ["everything"]
