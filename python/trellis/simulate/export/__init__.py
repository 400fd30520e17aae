"""A job for other simulators: workloads of `trellis sim`, Chakra traces."""

from trellis.simulate.export.chakra import chakra as as_chakra
from trellis.simulate.export.workload import workload as as_workload

__all__ = ["as_chakra", "as_workload"]
