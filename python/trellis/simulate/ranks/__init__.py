"""Which ranks of the world are run, their processes, and what they tell each other for real."""

from trellis.simulate.ranks.record_job import record_job as record

__all__ = ["record"]
