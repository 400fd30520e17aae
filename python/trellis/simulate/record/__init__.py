"""What a job's ranks do in one step, as a value and as a file."""

from trellis.simulate.record.job import Family, JobRecord, RankClass, read, write
from trellis.simulate.record.resize import data_axis, resize
from trellis.simulate.record.steps import Memory, Operation, Place, RankRecord

__all__ = ["Family", "JobRecord", "Memory", "Operation", "Place", "RankClass", "RankRecord", "data_axis", "read",
           "resize", "write"]  # fmt: skip
