"""What `python -m trellis.nki` does."""

from trellis.nki.command.run import main

__all__ = ["main"]
