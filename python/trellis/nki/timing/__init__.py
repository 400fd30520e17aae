"""How long an NKI kernel takes, with an interval, and what it waited for. Needs the package's native part, when
asked."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trellis.nki.timing.ranks import time_of_ranks
    from trellis.nki.timing.timing import Timing, time_of

__all__ = ["Timing", "time_of", "time_of_ranks"]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in __all__:
        return getattr(import_module(f"{__name__}.{'ranks' if name == 'time_of_ranks' else 'timing'}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
