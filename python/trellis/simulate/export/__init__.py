"""A job for other simulators: workloads of `trellis sim`."""

from trellis.simulate.export.workload import workload as as_workload

__all__ = ["as_workload"]
