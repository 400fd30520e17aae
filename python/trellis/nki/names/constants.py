"""Enumerations and constants that kernels name."""

import enum
from typing import Any

import numpy as np

__all__ = ["environment", "finfo", "MemoryRegion"]


class engine(enum.Enum):  # noqa: N801 (NKI's name)
    tensor = 1
    vector = 5
    scalar = 2
    gpsimd = 3
    dma = 4
    sync = 6
    unknown = 0


class reduce_cmd(enum.Enum):  # noqa: N801
    idle = 0
    reset = 1
    reduce = 2
    reset_reduce = 3
    load_reduce = 4


class dge_mode(enum.Enum):  # noqa: N801
    unknown = 0
    swdge = 1
    hwdge = 2
    none = 3


class oob_mode(enum.Enum):  # noqa: N801
    error = 0
    skip = 1


class matmul_perf_mode(enum.Enum):  # noqa: N801
    none = "none"
    double_row = "double_row"
    double_column = "double_column"
    double_row_gen3 = "double_row_gen3"
    double_pixel = "double_pixel"


class nc_version(enum.IntEnum):  # noqa: N801
    gen2 = 2
    gen3 = 3
    gen4 = 4


class dma_engine(enum.Enum):  # noqa: N801
    dma = 1
    gpsimd_dma = 2


class dependency(enum.Enum):  # noqa: N801
    runtime = "runtime"
    schedule = "schedule"


class MemoryRegion(enum.Enum):
    sbuf = "sbuf"
    psum = "psum"
    hbm = "hbm"
    private_hbm = "private_hbm"
    shared_hbm = "shared_hbm"

    @property
    def space(self) -> str:
        return "hbm" if self.value.endswith("hbm") else self.value


class _Least:
    """What is least in a type, as kernels ask: nl.fp32.min."""

    def __init__(self, dtype: Any) -> None:
        info = finfo(dtype)
        self.min, self.max = float(info.min), float(info.max)


def least(name: str) -> Any:
    import ml_dtypes

    return _Least(np.float32 if name == "fp32" else ml_dtypes.bfloat16)


def environment() -> dict[str, Any]:
    """What the tables' default values may name."""
    return {"engine": engine, "reduce_cmd": reduce_cmd, "dge_mode": dge_mode, "oob_mode": oob_mode,
            "matmul_perf_mode": matmul_perf_mode, "dma_engine": dma_engine, "sbuf": MemoryRegion.sbuf, "np": np,
            "fp32": least("fp32"), "uint8": np.dtype(np.uint8), "equal": "is_equal", "maximum": "max",
            "bfloat16": "bfloat16"}  # fmt: skip


def finfo(dtype: Any) -> Any:
    """What is least and greatest in a type."""
    import ml_dtypes

    return ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
