"""Module objects under the public names, made from the tables."""

import types
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from trellis.nki.instructions import (  # noqa: F401 (each registers its instructions)
    activation,
    collectives,
    control,
    counted,
    dma,
    elementwise,
    products,
    randoms,
    reductions,
    searches,
    selection,
)
from trellis.nki.instructions.emit import IMPLEMENTATIONS, NkiInstruction
from trellis.nki.instructions.operators import FUNCTIONS
from trellis.nki.kernels.allocation import Place, par_dim, placed, rotating
from trellis.nki.kernels.schedule import labelled
from trellis.nki.kernels.session import NkiError, active, session
from trellis.nki.language import declarations, grids, indices, loops, sizes  # noqa: F401
from trellis.nki.language.arithmetic import install
from trellis.nki.language.functions import LANGUAGE
from trellis.nki.language.results import returning
from trellis.nki.names import constants
from trellis.nki.names.constants import MemoryRegion
from trellis.nki.names.tables import accepting, entries, make, missing, unsupported, with_older
from trellis.nki.rules.chips import limits_of
from trellis.nki.rules.operands import checked
from trellis.nki.tensors.registers import VirtualRegister
from trellis.nki.tensors.tensor import NkiTensor
from trellis.nki.tensors.types import TYPES, to_dtype

install()


class NamedModule(types.ModuleType):
    """A module whose functions are made when they are first asked for; what is missing says who has it."""

    def __init__(self, name: str, tables: tuple[str, ...] = (), works: dict[str, Callable[..., Any]] | None = None,
                 wrap: Callable[[str], Any] | None = None) -> None:
        super().__init__(name)
        self.__dict__["_tables"], self.__dict__["_works"], self.__dict__["_wrap"] = tables, works or {}, wrap
        self.__path__ = []

    @property
    def __all__(self) -> list[str]:
        return [name for name in dir(self) if not name.startswith("_")]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        for table in self._tables:
            entry = entries(table).get(name)
            if entry is not None:
                work = self._wrap(name) if self._wrap and name in self._works else self._works.get(name)
                if work is not None and table == "isa":
                    entry, work = with_older(entry, table), labelled(accepting(work, ("mask", "dtype", "shape")))
                made = make(entry, work or unsupported(entry, self.__name__), self.__name__)
                self.__dict__[name] = made
                return made
        raise missing(self.__name__, name, self._tables)

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *(n for t in self._tables for n in entries(t))})


def get_nc_version() -> constants.nc_version:
    from trellis.nki.kernels.jit import chip_for

    limits = session().limits if active() else limits_of(chip_for())
    return constants.nc_version(limits.generation)


def _isa(name: str, beta: bool) -> Any:
    tables = ("beta1_isa",) if beta else ("isa",)
    m: Any = NamedModule(name, tables, IMPLEMENTATIONS, returning if beta else checked)
    for e in constants.engine:
        setattr(m, f"{e.name}_engine", e)
    for word in (
        "engine",
        "reduce_cmd",
        "dge_mode",
        "oob_mode",
        "matmul_perf_mode",
        "nc_version",
        "dma_engine",
        "dependency",
    ):
        setattr(m, word, getattr(constants, word))
    m.VirtualRegister, m.NkiInstruction, m.NkiValidationError = VirtualRegister, NkiInstruction, NkiError
    m.get_nc_version, m.get_nc_sub_version = get_nc_version, lambda: 0
    m.fp32 = constants.least("fp32")
    return m


def _language(name: str, beta: bool) -> Any:
    tables = ("beta1_language",) if beta else ("language",)
    m: Any = NamedModule(name, tables, LANGUAGE)
    for key, (dtype, _) in TYPES.items():
        setattr(m, key, dtype)
    for region in MemoryRegion:
        setattr(m, region.name, region)
    m.hbm = MemoryRegion.hbm
    m.MemoryRegion, m.tile_size = MemoryRegion, sizes.TileSize()
    m.NKIObject, m.NkiTensor, m.Tensor = sizes.NKIObject, NkiTensor, NkiTensor
    m.fp32, m.bfp16 = constants.least("fp32"), constants.least("bfp16")
    m.par_dim, m.arange, m.mgrid = par_dim, indices.arange, indices.MeshGrid()
    m.nc, m.spmd_dim, m.tensor = loops.nc, loops.spmd_dim, NkiTensor
    m.is_hbm = lambda b: _space(b) == "hbm"
    m.is_sbuf = lambda b: _space(b) == "sbuf"
    m.is_psum = lambda b: _space(b) == "psum"
    m.is_on_chip = lambda b: _space(b) != "hbm"
    m.bool, m.finfo = bool, constants.finfo
    for word in ("average", "prelu", "bypass", "abs_max", "abs_min", "rsqrt", "arith_shift_right"):
        if word not in entries(tables[0]):
            setattr(m, word, word)
    for word in FUNCTIONS:
        if word not in m.__dict__ and word not in entries(tables[0]):
            setattr(m, word, word)
    for word in grids.NAMES:
        setattr(m, word, getattr(grids, word))
    m.__dict__.setdefault("arange", indices.arange)
    m.constants = types.ModuleType(f"{name}.constants")
    m.constants.sizeinbytes = lambda dtype: dtype.itemsize
    return m


def _space(buffer: Any) -> str:
    return str((buffer.region if isinstance(buffer, NkiTensor) else buffer).space)


class ArgumentSpec:
    """nt.tensor[[128, 512], nl.bfloat16]: what an argument is; as an argument, an array of zeros."""

    def __init__(self, item: Any) -> None:
        parts = item if isinstance(item, tuple) else (item,)
        shaped = bool(parts) and isinstance(parts[0], (list, tuple))
        self.shape = tuple(parts[0]) if shaped else parts
        self.dtype = to_dtype(parts[1]) if shaped and len(parts) > 1 else to_dtype("float32")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.zeros(self.shape, self.dtype)


class TensorAnnotation:
    """nt.tensor, as an annotation or with what is in brackets."""

    def __class_getitem__(cls, item: Any) -> ArgumentSpec:
        return ArgumentSpec(item)


def _typing(name: str) -> Any:
    m: Any = types.ModuleType(name)
    for word in ("tensor", "mutable_tensor", "Tensor", "scalar"):
        setattr(m, word, type(word, (TensorAnnotation,), {}))
    m.mutable = "mutable"  # nt.tensor[nt.mutable]: an argument that the kernel writes, as any may
    return m


class _Memory(types.ModuleType):
    """nki.compiler.sbuf and .psum: places for tiles."""

    def __init__(self, name: str, region: MemoryRegion) -> None:
        super().__init__(name)
        self.region, self.value = region, region.value

    def alloc(self, function: Any = None, **_: Any) -> Place:
        return placed(Place(self.region, function))

    def mod_alloc(self, **given: Any) -> Place:
        return placed(rotating(self.region, **given))

    def auto_alloc(self, **_: Any) -> Place:
        return Place(self.region)


def _compiler(name: str) -> Any:
    m: Any = types.ModuleType(name)
    m.sbuf, m.psum = _Memory(f"{name}.sbuf", MemoryRegion.sbuf), _Memory(f"{name}.psum", MemoryRegion.psum)

    def kept(func: Any = None, **_: Any) -> Any:
        return kept if func is None else func

    def skip_middle_end_transformations(func: Any = None) -> Any:
        if func is None:
            return skip_middle_end_transformations
        getattr(func, "func", func)._nki_skip_middle_end = True
        return func

    m.enable_stack_allocator, m.force_auto_alloc = kept, kept
    m.skip_middle_end_transformations = skip_middle_end_transformations
    m.no_reorder, m.allocation_scope = LANGUAGE["no_reorder"], LANGUAGE["no_reorder"]
    m.multi_buffer = lambda factor=2: LANGUAGE["no_reorder"]()
    return m


@cache
def modules(beta: bool) -> dict[str, types.ModuleType]:
    """All modules of a dialect, by name."""
    from trellis.nki.modules.top import collectives as collectives_of
    from trellis.nki.modules.top import top

    root = "neuronxcc.nki" if beta else "nki"
    isa, language = _isa(f"{root}.isa", beta), _language(f"{root}.language", beta)
    isa_constants = types.ModuleType(f"{root}.isa.constants")
    vars(isa_constants).update({k: v for k, v in vars(constants).items() if isinstance(v, type)})
    isa.constants = isa_constants
    found: dict[str, types.ModuleType] = {
        f"{root}.isa": isa, f"{root}.isa.constants": isa_constants, f"{root}.language": language,
        f"{root}.language.constants": language.constants, f"{root}.typing": _typing(f"{root}.typing"),
        f"{root}.compiler": _compiler(f"{root}.compiler"), f"{root}.collectives": collectives_of(f"{root}.collectives"),
    }  # fmt: skip
    compiler = found[f"{root}.compiler"]
    found |= {f"{root}.compiler.sbuf": compiler.sbuf, f"{root}.compiler.psum": compiler.psum}
    found[root] = top(root, beta, found)
    found[f"{root}.dtype"] = found[root].dtype
    return found


def everything() -> dict[str, types.ModuleType]:
    """The modules of both dialects, and what stands around them."""
    from trellis.nki.modules.top import neuronxcc

    found = dict(modules(False)) | dict(modules(True))
    found["neuronxcc"] = neuronxcc(found["neuronxcc.nki"])
    for name, module in list(found.items()):
        module.__dict__.setdefault("__path__", [])
        module.__spec__ = None
        parent, _, child = name.rpartition(".")
        if parent in found:
            found[parent].__dict__.setdefault(child, module)
    return found


__all__ = ["NamedModule", "everything", "modules"]
