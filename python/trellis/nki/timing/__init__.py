"""How long an NKI kernel takes, with an interval, and what it waited for."""

from trellis.nki.timing.ranks import time_of_ranks
from trellis.nki.timing.timing import Timing, time_of

__all__ = ["Timing", "time_of", "time_of_ranks"]
