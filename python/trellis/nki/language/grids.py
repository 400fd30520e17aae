"""Grids of tiles and blocks over a tensor (nki 0.7): views, nothing is moved."""

from math import prod
from typing import Any

from trellis.nki.kernels.allocation import declare
from trellis.nki.language.functions import function

__all__ = ["alloc_blocks", "alloc_tiles", "blocks", "NAMES", "NkiBlockGrid", "NkiTileGrid", "tiles"]

NAMES = ("NkiTileGrid", "NkiBlockGrid")


class NkiTileGrid:
    """The tiles of a tensor, by their place; those at the edges are smaller."""

    def __init__(self, data: Any, tile_shape: Any) -> None:
        self.data, self.tile_shape = data, tuple(tile_shape)
        self.element_shape = data.shape
        self.shape = tuple(-(-n // t) for n, t in zip(data.shape, self.tile_shape, strict=True))

    def _slices(self, key: Any) -> tuple[slice, ...]:
        place = key if isinstance(key, tuple) else (key,)
        return tuple(slice(int(k) * t, min((int(k) + 1) * t, n))
                     for k, t, n in zip(place, self.tile_shape, self.data.shape, strict=True))

    def __getitem__(self, key: Any) -> Any:
        return self.data[self._slices(key)]

    def is_remainder(self, *key: int) -> bool:
        place = key[0] if len(key) == 1 and isinstance(key[0], tuple) else key
        return any((int(k) + 1) * t > n for k, t, n in zip(place, self.tile_shape, self.data.shape, strict=True))

    def __len__(self) -> int:
        return prod(self.shape)


class NkiBlockGrid(NkiTileGrid):
    """Blocks of tiles: each element is a grid of tiles."""

    def __init__(self, data: Any, tile_shape: Any, block_shape: Any) -> None:
        super().__init__(data, tuple(t * b for t, b in zip(tile_shape, block_shape, strict=True)))
        self.inner, self.block_shape = tuple(tile_shape), tuple(block_shape)

    def __getitem__(self, key: Any) -> NkiTileGrid:
        return NkiTileGrid(super().__getitem__(key), self.inner)


@function("tiles")
def tiles(x: Any, tile_shape: Any) -> NkiTileGrid:
    return NkiTileGrid(x, tile_shape)


@function("blocks")
def blocks(x: Any, tile_shape: Any, block_shape: Any) -> NkiBlockGrid:
    return NkiBlockGrid(x, tile_shape, block_shape)


@function("alloc_tiles")
def alloc_tiles(shape: Any, tile_shape: Any, dtype: Any, buffer: Any = None) -> NkiTileGrid:
    return NkiTileGrid(declare(shape, dtype, buffer), tile_shape)


@function("alloc_blocks")
def alloc_blocks(shape: Any, tile_shape: Any, block_shape: Any, dtype: Any, buffer: Any = None) -> NkiBlockGrid:
    return NkiBlockGrid(declare(shape, dtype, buffer), tile_shape, block_shape)
