"""An unmodified PyTorch job on a machine that isn't there: how long a step takes, what is exposed, does it fit.

As a command: `python -m trellis.simulate --help`. In Python:

    with trellis.simulate("trn2.48xlarge x 4") as s:
        train_step()                       # device="neuron"; tensors have no data
    print(s.report())
"""

import sys
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trellis.simulate.here import Simulation

__all__ = ["Simulation"]


class _Module(types.ModuleType):
    def __call__(self, machine: Any, **how: Any) -> "Simulation":
        from trellis.simulate.here import Simulation

        return Simulation(machine, **how)


def __getattr__(name: str) -> Any:
    if name == "Simulation":
        from trellis.simulate.here import Simulation

        return Simulation
    raise AttributeError(f"module 'trellis.simulate' has no attribute {name!r}")


sys.modules[__name__].__class__ = _Module
