"""NKI kernels without hardware: run unmodified, computed with numpy, and traced to records that are timed.

    import trellis.nki as nki                       # the API of nki 0.7, and what earlier releases have besides
    with trellis.nki.as_nki(): import my_kernels    # files that import nki, or neuronxcc.nki
    python -m trellis.nki script.py                 # the same for a script

>>> import numpy as np
>>> import trellis.nki as nki
>>> @nki.jit
... def twice(x):
...     tile = nki.language.ndarray(x.shape, x.dtype)
...     out = nki.language.ndarray(x.shape, x.dtype, buffer=nki.language.shared_hbm)
...     nki.isa.dma_copy(dst=tile, src=x)
...     nki.isa.tensor_scalar(dst=tile, data=tile, op0=nki.language.multiply, operand0=2.0)
...     nki.isa.dma_copy(dst=out, src=tile)
...     return out
>>> twice(np.ones((2, 3), np.float32))
array([[2., 2., 2.],
       [2., 2., 2.]], dtype=float32)
>>> twice.trace.summary()
{'dma_copy': 2, 'tensor_scalar': 1}
"""

import sys
from typing import Any

from trellis.nki.imports import as_nki
from trellis.nki.kernels.jit import settings
from trellis.nki.kernels.ranks import RankedRun, on_ranks
from trellis.nki.kernels.session import NkiError, NkiWarning
from trellis.nki.modules.build import modules

_parts = modules(False)
_top = _parts["nki"]
for _name, _module in _parts.items():
    if _name != "nki":
        sys.modules[f"{__name__}.{_name.removeprefix('nki.')}"] = _module
jit, benchmark, profile, simulate, baremetal = _top.jit, _top.benchmark, _top.profile, _top.simulate, _top.baremetal
isa, language, typing, collectives, compiler = (_parts[f"nki.{_n}"] for _n in
                                                ("isa", "language", "typing", "collectives", "compiler"))

__all__ = ["NkiError", "NkiWarning", "RankedRun", "as_nki", "baremetal", "benchmark", "collectives", "compiler", "isa",
           "jit", "language", "on_ranks", "profile", "settings", "simulate", "typing"]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(_top, name)
