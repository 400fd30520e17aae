"""Trellis: collectives as values, written down, proved, priced and run.

    trellis.schedule   schedules: build, prove, draw, run on arrays
    trellis.sim        prices and workloads on simulated machines
    trellis.core       programs of one NeuronCore
    trellis.simulate   a PyTorch job's step on a machine that isn't there
    trellis.nki        NKI kernels, computed and timed without hardware
    trellis.train      the trainer; tokens of data sets
    trellis.torch      torch.distributed's backend "trellis", and an optimizer
    trellis.gallery    pictures of the above

The first four come with `import trellis`; the others by an import of their own.

>>> import trellis
>>> s = trellis.schedule.algorithm("ring", "all_reduce", 4)
>>> trellis.sim.price(s, "trn2.48xlarge", "1MiB").time > 0
True
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trellis import core, schedule, sim

    def simulate(machine: Any, **how: Any) -> Any:
        """The module can be called. Its types are torch's, which need not be installed."""

__version__ = "0.1.0"
__all__ = ["core", "schedule", "sim", "simulate"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return importlib.import_module(f"trellis.{name}")
    raise AttributeError(f"module 'trellis' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
