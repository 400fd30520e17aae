"""The public names, as data: each release's functions and their parameters, in the text files of this folder."""

from trellis.nki.names.tables import accepting, entries

__all__ = ["accepting", "entries"]
