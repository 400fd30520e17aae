"""Declarations of tensors: their memory, place and first contents."""

import inspect
from typing import Any

from trellis.nki.kernels.session import NkiError, active, refuse, session
from trellis.nki.names.constants import MemoryRegion
from trellis.nki.rules.chips import PARTITIONS
from trellis.nki.tensors.memory import allocate
from trellis.nki.tensors.registers import number
from trellis.nki.tensors.tensor import NkiTensor
from trellis.nki.tensors.types import to_dtype


class par_dim(int):  # noqa: N801 (NKI's name)
    """The dimension of partitions in a shape."""


class Place:
    """A memory and where in it: what ncc.sbuf.mod_alloc and ncc.sbuf.alloc give."""

    def __init__(self, region: MemoryRegion, function: Any = None) -> None:
        self.region, self.function, self.value = region, function, region.value

    def address(self, block: tuple[int, ...], partitions: int, each: int) -> tuple[int, int]:
        """Of a block, by its indices."""
        named = {"idx": block or (0,), "pdim_size": partitions, "fdim_size": each}  # as the compiler calls it
        if not named.keys() <= inspect.signature(self.function).parameters.keys():
            got = [int(n) for n in self.function(*named.values())]
        else:
            got = [int(n) for n in self.function(**named)]
        if self.region is MemoryRegion.psum and len(got) == 3:
            return got[1], got[0] * session().limits.bank_bytes + got[2]
        return got[0], got[-1]


class LoopPlaces:
    """The places that a loop's first iteration asked for: the others have them again."""

    def __init__(self) -> None:
        self.places: list[Place] = []
        self.outer = False  # there are loops in it
        self.next: int | None = None  # in a later iteration: the index of the next place

    def turn(self) -> None:
        self.next = 0

    def again(self, place: Place) -> Place:
        if self.next is None:
            self.places.append(place)
            return place
        self.next += 1
        return self.places[self.next - 1] if self.next <= len(self.places) else place


def placed(place: Place) -> Place:
    """A place, or the one that the outermost loop's first iteration had in its stead."""
    for loop in reversed(session().loops if active() else []):
        place = loop.again(place)
    return place


def rotating(region: MemoryRegion, base_addr: int = 0, base_bank: int = 0, num_bank_tiles: Any = (),
             base_partition: int = 0, num_par_tiles: Any = (), num_free_tiles: Any = ()) -> Place:
    """ncc's mod_alloc: blocks take turns in a number of places."""

    def turn(block: tuple[int, ...], counts: Any) -> int:
        total = 0
        for i, n in zip(block, tuple(counts) or (1,) * len(block), strict=False):
            total = total * n + i % n
        return total

    def place(block: tuple[int, ...], partitions: int, each: int) -> tuple[int, ...]:
        at = base_partition + turn(block, num_par_tiles) * partitions, base_addr + turn(block, num_free_tiles) * each
        return (base_bank + turn(block, num_bank_tiles), *at) if region is MemoryRegion.psum else at

    return Place(region, place)


def region_of(buffer: Any) -> MemoryRegion:
    if buffer is None:
        return MemoryRegion.sbuf
    if isinstance(buffer, MemoryRegion):
        return buffer
    if isinstance(buffer, Place):
        return buffer.region
    if isinstance(buffer, str):
        return MemoryRegion(buffer)
    if hasattr(buffer, "region"):
        found: MemoryRegion = buffer.region
        return found
    raise refuse(f"buffer={buffer!r}; expected nl.sbuf, nl.psum, nl.hbm, nl.shared_hbm or nl.private_hbm")


def _partition(shape: Any, chip: bool) -> int:
    for d, n in enumerate(shape):
        if isinstance(n, par_dim):
            return d
    return 0


def declare(shape: Any, dtype: Any, buffer: Any = None, name: str = "", address: Any = None,
            role: str = "internal") -> NkiTensor:
    """A new tensor of undefined contents."""
    s = session()
    region = region_of(buffer)
    dims = (shape,) if isinstance(shape, int) else tuple(shape)
    chip = region.space != "hbm"
    partition = _partition(dims, chip)
    sizes = tuple(number(n) for n in dims)
    if any(n < 0 for n in sizes):
        raise refuse(f"a tensor of {list(sizes)}; expected dimensions of no less than 0")
    kind = to_dtype(dtype)
    if chip:
        if len(sizes) == 1:
            sizes = (*sizes, 1)
        check_shape(sizes, partition, kind, region.space)
    if region.value in ("shared_hbm", "hbm") and s.grid != (1,):
        found: NkiTensor = s.shared(lambda: _placed(sizes, kind, region, partition, name, role, None))
        return found
    if isinstance(buffer, Place) and buffer.function is not None and address is None:
        return _placed(sizes, kind, region, partition, name, role, buffer.address)
    return _placed(sizes, kind, region, partition, name, role,
                   None if address is None else (number(address[0]), number(address[1])))


def _placed(sizes: tuple[int, ...], kind: Any, region: MemoryRegion, partition: int, name: str, role: str,
            address: Any) -> NkiTensor:
    memory, strides = allocate(session(), sizes, kind, region.space, partition=partition, name=name, role=role,
                               address=address)
    return NkiTensor(memory, kind, sizes, strides, 0, partition=partition, name=name, region=region)


def check_shape(sizes: tuple[int, ...], partition: int, kind: Any, space: str) -> None:
    s = session()
    if sizes[partition] > PARTITIONS and not s.beta:
        raise refuse(
            f"a tile of {list(sizes)} in {space}: {sizes[partition]} partitions; expected at most {PARTITIONS} "
            f"(nki.language.tile_size.pmax)"
        )
    if sizes[partition] > PARTITIONS:
        raise refuse(
            f"a tile of {list(sizes)} in {space}: {sizes[partition]} partitions; expected at most {PARTITIONS}, "
            f"in the first dimension or that of nl.par_dim"
        )
    free = kind.itemsize
    for d, n in enumerate(sizes):
        if d >= partition and d != partition:
            free *= n
    most = s.limits.psum_bytes if space == "psum" else s.limits.sbuf_bytes
    if free > most:
        text = (f"a tile of {list(sizes)} {kind} in {space}: {free:,} bytes a partition; expected at most {most:,} on "
                f"{s.limits.chip} ({s.limits.source})")
        if s.strict:
            raise refuse(text)
        s.warn("capacity", text)


def fresh(shape: tuple[int, ...], dtype: Any, space: str = "sbuf") -> NkiTensor:
    """A tile for a result, as neuronxcc's dialect returns them."""
    if len(shape) == 1:
        shape = (shape[0], 1)
    region = MemoryRegion.psum if space == "psum" else MemoryRegion.sbuf
    if shape[0] > PARTITIONS:
        raise refuse(f"a result of {list(shape)}: {shape[0]} partitions; expected at most {PARTITIONS} "
                     f"(nki.language.tile_size.pmax)")
    memory, strides = allocate(session(), shape, dtype, space)
    return NkiTensor(memory, dtype, shape, strides, 0, region=region)


__all__ = ["LoopPlaces", "NkiError", "Place", "declare", "fresh", "par_dim", "placed", "region_of"]
