"""Decorated functions, and the session in which one runs."""

from trellis.nki.kernels.session import NkiError, NkiWarning

__all__ = ["NkiError", "NkiWarning"]
