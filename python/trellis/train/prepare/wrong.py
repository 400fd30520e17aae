"""What is wrong with the input, in one line."""

import importlib
from typing import Any

__all__ = ["Wrong", "needed"]


class Wrong(Exception):
    """The file, the record and what was expected."""


def needed(module: str, what: str) -> Any:
    """An optional module, or which one to install."""
    try:
        return importlib.import_module(module)
    except ImportError as e:
        raise Wrong(f"{what} needs the package {module}: pip install {module}") from e
