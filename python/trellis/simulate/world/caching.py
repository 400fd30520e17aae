"""What torch.cuda's caching allocator would have reserved of the device for what a job allocates and frees.

By its rules as PyTorch documents them (CUDA semantics, memory management; `PYTORCH_CUDA_ALLOC_CONF`):

  - sizes are rounded up to 512 B; up to 1 MiB they come from segments of 2 MiB, up to 10 MiB from segments of 20 MiB,
    larger ones from segments of their own size, rounded up to 2 MiB;
  - the smallest free block that is large enough serves, of the same stream and pool; what is left of it is a block of
    its own where that is 512 B (small) or more than 1 MiB (large); free neighbours become one block;
  - with `expandable_segments:True`, a stream's pool is one segment, of which pages of 2 or 20 MiB are added at the end,
    or where none are, as they are needed; the end serves last;
  - with `max_split_size_mb:N`, larger blocks are not split, and serve sizes of their own class alone;
  - nothing is given back before `empty_cache`. The device is taken to have room: no allocation is tried again.
"""

import bisect
import os
from typing import Any

__all__ = ["Caching", "settings"]

MIB = 1 << 20
ROUND, SMALL, LARGE = 512, MIB, 10 * MIB
SMALL_SEGMENT, LARGE_SEGMENT, ROUND_SEGMENT = 2 * MIB, 20 * MIB, 2 * MIB
_NO_LIMIT = 1 << 62


def settings(told: str | None = None) -> dict[str, str]:
    """`expandable_segments:True,max_split_size_mb:512` as a program's environment says it."""
    words = (
        told
        if told is not None
        else os.environ.get("PYTORCH_ALLOC_CONF", os.environ.get("PYTORCH_CUDA_ALLOC_CONF", ""))
    )
    return {key.strip(): value.strip() for key, _, value in (word.partition(":") for word in words.split(",")) if value}


class _Block:
    __slots__ = ("after", "at", "before", "free", "large", "mapped", "segment", "size", "stream")

    def __init__(self, segment: int, at: int, size: int, stream: int, large: bool) -> None:
        self.segment, self.at, self.size, self.stream, self.large = segment, at, size, stream, large
        self.before: _Block | None = None
        self.after: _Block | None = None
        self.free, self.mapped = True, True

    def key(self) -> tuple[int, int, int]:
        return self.size, self.segment, self.at


class Caching:
    """Bytes. `allocate` gives what `free` takes."""

    def __init__(self, told: dict[str, str] | None = None) -> None:
        told = settings() if told is None else told
        self.expandable = told.get("expandable_segments", "").lower() == "true"
        self._most_split = int(told["max_split_size_mb"]) * MIB if "max_split_size_mb" in told else _NO_LIMIT
        self.allocated = self.reserved = 0
        self.most_allocated = self.most_reserved = 0
        self._segments = 0
        self._free: dict[tuple[int, bool], list[tuple[tuple[int, int, int], int, _Block]]] = {}
        self._ends: dict[tuple[int, bool], _Block] = {}  # of expandable segments: what is not mapped yet

    def allocate(self, size: int, stream: int = 0) -> Any:
        if size <= 0:
            return None
        size = -(-size // ROUND) * ROUND
        pool = (stream, size > SMALL)
        block = self._found(pool, size) or (
            self._expanded(pool, size) if self.expandable else self._segment(pool, size)
        )
        self._split(block, size)
        block.free = False
        self.allocated += block.size
        self.most_allocated = max(self.most_allocated, self.allocated)
        return block

    def free(self, block: Any) -> None:
        if block is None:
            return
        self.allocated -= block.size
        block.free = True
        self._put(self._absorbed(block))

    def empty(self) -> None:
        """Segments of which nothing is used are given back; of expandable ones, pages."""
        for blocks in self._free.values():
            for _, _, block in list(blocks):
                if self.expandable:
                    self._unmap(block)
                elif block.before is None and block.after is None:
                    self._take(block)
                    self.reserved -= block.size

    def forget_peak(self) -> None:
        self.most_allocated, self.most_reserved = self.allocated, self.reserved

    # Free blocks, in the order in which they serve

    def _put(self, block: _Block) -> None:
        bisect.insort(self._free.setdefault((block.stream, block.large), []), (block.key(), id(block), block))

    def _take(self, block: _Block) -> None:
        blocks = self._free[block.stream, block.large]
        blocks.pop(bisect.bisect_left(blocks, (block.key(), id(block))))

    def _found(self, pool: tuple[int, bool], size: int) -> _Block | None:
        blocks = self._free.get(pool, [])
        first = bisect.bisect_left(blocks, ((size, -1, -1),))
        if first == len(blocks):
            return None
        block = blocks[first][2]
        if self.expandable:
            if block.after is not None and not block.after.mapped:  # counts with all that can follow it
                block = min((b for _, _, b in blocks[first:]), key=_extent)
        else:
            oversize = size >= self._most_split
            if (not oversize and block.size >= self._most_split) or (oversize and block.size >= size + LARGE_SEGMENT):
                return None
        self._take(block)
        return block

    # Segments

    def _segment(self, pool: tuple[int, bool], size: int) -> _Block:
        if size <= SMALL:
            whole = SMALL_SEGMENT
        else:
            whole = LARGE_SEGMENT if size < LARGE else -(-size // ROUND_SEGMENT) * ROUND_SEGMENT
        self._segments += 1
        self._reserve(whole)
        return _Block(self._segments, 0, whole, *pool)

    def _reserve(self, size: int) -> None:
        self.reserved += size
        self.most_reserved = max(self.most_reserved, self.reserved)

    def _expanded(self, pool: tuple[int, bool], size: int) -> _Block:
        """Pages are mapped where as many as are missing have room among free blocks, at the lowest address."""
        hole = self._ends.get(pool)
        if hole is None:
            self._segments += 1
            hole = self._ends[pool] = _Block(self._segments, 0, _NO_LIMIT, *pool)
            hole.mapped = False
        near = hole.before
        while near is not None:
            if not near.mapped and _usable(near.before) + near.size + _usable(near.after) >= size:
                hole = near
            near = near.before
        return self._mapped(hole, size - _usable(hole.before))

    def _mapped(self, hole: _Block, missing: int) -> _Block:
        """As many pages of the hole as are missing, with what is free beside them."""
        page = LARGE_SEGMENT if hole.large else SMALL_SEGMENT
        taken = min(-(-missing // page) * page, hole.size)
        block = _Block(hole.segment, hole.at, taken, hole.stream, hole.large)
        block.before, hole.before = hole.before, block
        if block.before is not None:
            block.before.after = block
        hole.at, hole.size = hole.at + taken, hole.size - taken
        block.after = hole if hole.size else hole.after
        if not hole.size and hole.after is not None:
            hole.after.before = block
        self._reserve(taken)
        return self._absorbed(block)

    def _unmap(self, block: _Block) -> None:
        """The pages that lie whole in a free block become a hole, with holes beside it."""
        page = LARGE_SEGMENT if block.large else SMALL_SEGMENT
        begin, end = -(-block.at // page) * page, (block.at + block.size) // page * page
        if end <= begin:
            return
        self._take(block)
        self.reserved -= end - begin
        for cut in (end, begin):
            if block.at < cut < block.at + block.size:
                self._cut(block, cut - block.at)
                assert block.after is not None
                if cut == end:
                    self._put(block.after)
                else:
                    self._put(block)
                    block = block.after
        block.mapped = False
        for first in (block, block.before):  # the later one stays, so that the end does
            after = first.after if first is not None else None
            if first is not None and after is not None and not first.mapped and not after.mapped:
                after.at, after.size, after.before = first.at, first.size + after.size, first.before
                if first.before is not None:
                    first.before.after = after

    # Blocks of a segment

    def _split(self, block: _Block, size: int) -> None:
        left = block.size - size
        small = not block.large or self.expandable
        if left >= ROUND if small else size < self._most_split and left > SMALL:
            self._cut(block, size)
            assert block.after is not None
            self._put(block.after)

    def _cut(self, block: _Block, size: int) -> None:
        rest = _Block(block.segment, block.at + size, block.size - size, block.stream, block.large)
        rest.before, rest.after = block, block.after
        if block.after is not None:
            block.after.before = rest
        block.after, block.size = rest, size

    def _absorbed(self, block: _Block) -> _Block:
        """One block with its free neighbours."""
        if (before := block.before) is not None and _usable(before):
            self._take(before)
            block = self._joined(before, block)
        if (after := block.after) is not None and _usable(after):
            self._take(after)
            block = self._joined(block, after)
        return block

    def _joined(self, first: _Block, second: _Block) -> _Block:
        first.size += second.size
        first.after = second.after
        if second.after is not None:
            second.after.before = first
        return first


def _usable(block: _Block | None) -> int:
    return block.size if block is not None and block.free and block.mapped else 0


def _extent(block: _Block) -> tuple[int, int]:
    after = block.after
    return block.size + (after.size if after is not None and not after.mapped else 0), block.at
