"""How torch finds the backend when it is imported: its entry points `torch.backends` name `register`."""

import sys

__all__ = ["register"]


def register() -> None:
    """Does nothing while `trellis.torch` is what imports torch: it will have registered by itself."""
    if "trellis.torch" not in sys.modules:
        import trellis.torch  # noqa: F401
