"""The packages themselves: nki, neuronxcc.nki, and neuronxcc."""

import logging
import types
from typing import Any

from trellis.nki.instructions.emit import IMPLEMENTATIONS
from trellis.nki.kernels.benchmark import Benchmark, Profile
from trellis.nki.kernels.jit import Kernel, decorator
from trellis.nki.language.sizes import NKIObject
from trellis.nki.tensors.types import TYPES

__all__ = ["collectives", "neuronxcc", "top"]


class ReplicaGroup(NKIObject):
    """The ranks of a collective: lists of ranks, one list a group."""

    def __init__(self, replica_groups: Any = None, **more: Any) -> None:
        self.replica_groups = replica_groups
        for key, value in more.items():
            setattr(self, key, value)


def collectives(name: str) -> types.ModuleType:
    from trellis.nki.modules.build import NamedModule

    m: Any = NamedModule(name, ("collectives",), IMPLEMENTATIONS)
    m.ReplicaGroup = ReplicaGroup
    made: types.ModuleType = m
    return made


def simulate(kernel: Any = None, *args: Any, **kwargs: Any) -> Any:
    """nki.simulate(kernel)(args): computes on the host."""
    if kernel is None:
        return simulate
    made = kernel if isinstance(kernel, Kernel) else Kernel(kernel)
    return made(*args, **kwargs) if args or kwargs else made


def simulate_kernel(kernel: Any, *args: Any, **kwargs: Any) -> Any:
    """neuronxcc's: computes at once; arguments that the kernel writes hold its results."""
    made = kernel if isinstance(kernel, Kernel) else Kernel(kernel, beta=True)
    return made(*args, **kwargs)


def timed(beta: bool, kind: type[Kernel]) -> Any:
    """nki.benchmark and nki.profile: with or without options in brackets."""
    return decorator(beta, kind)


def top(name: str, beta: bool, parts: dict[str, types.ModuleType]) -> types.ModuleType:
    from trellis.nki.modules.build import NamedModule

    m: Any = NamedModule(name)
    m.jit = m.trace = m.baremetal = decorator(beta)
    m.benchmark, m.profile = timed(beta, Benchmark), timed(beta, Profile)
    m.simulate, m.simulate_kernel = simulate, simulate_kernel
    m.__version__ = "0.7.0"
    dtype = types.ModuleType(f"{name}.dtype")
    for key, (value, _) in TYPES.items():
        setattr(dtype, key, value)
    m.dtype = dtype
    m.NKIObject = NKIObject
    m.tensor = parts[f"{name}.typing"].tensor
    for full, module in parts.items():
        child = full.removeprefix(f"{name}.")
        if "." not in child:
            setattr(m, child, module)
    made: types.ModuleType = m
    return made


def neuronxcc(nki: types.ModuleType) -> types.ModuleType:
    if not hasattr(logging, "OFF"):
        logging.OFF = logging.CRITICAL + 10  # type: ignore[attr-defined]
    m = types.ModuleType("neuronxcc")
    m.nki, m.__version__ = nki, "2.0"  # type: ignore[attr-defined]
    return m
