"""What the device's memory holds, by category, as storages come and go."""

import weakref
from collections.abc import Callable
from typing import Any

import torch

from trellis.simulate.record import Memory
from trellis.simulate.world.caching import Caching

__all__ = ["Allocations"]

CATEGORIES = ("parameters", "gradients", "buckets", "optimizer", "gathered", "activations", "other")


class Allocations:
    """Categories of storages are known late: a gradient is one when an optimizer reads it, a bucket when the reducer of
    DistributedDataParallel waits for its sum. So the step's allocations are kept, and added up at its end."""

    def __init__(self) -> None:
        self._alive: dict[int, tuple[int, int]] = {}  # id of a storage: its number, bytes
        self._log: list[tuple[int, int]] = []  # number, change in bytes; of the step
        self._at: list[int] = []
        self._before: dict[int, int] = {}  # at the step's begin
        self._category: dict[int, str] = {}
        self._first: dict[int, str] = {}  # by when it was made
        self.shards: dict[int, frozenset[int]] = {}  # storages that fully_shard cut: along which families of groups
        self._next = 0
        self.events = 0  # of the step so far
        self.held = 0  # bytes now
        self.most = 0  # since the program asked to forget its peak
        self.caching = Caching()
        self.stream: Callable[[], int] = lambda: 0  # the current one
        self._blocks: dict[int, Any] = {}  # of the caching allocator, by number

    def see(self, tensor: torch.Tensor, phase: str, category: str = "") -> None:
        storage = tensor.untyped_storage()
        key = id(storage)
        if key not in self._alive:
            number = self._next
            self._next += 1
            size = storage.size()
            self._alive[key] = (number, size)
            self._blocks[number] = self.caching.allocate(size, self.stream())
            self._changed(number, size)
            self._first[number] = category or ("activations" if phase in ("forward", "recompute") else "other")
            weakref.finalize(storage, self._gone, key).atexit = False
        elif self._alive[key][1] != storage.size():
            self.resized(storage)
        if category:
            self._category[self._alive[key][0]] = category

    def resized(self, storage: Any) -> None:
        """A storage that was emptied or filled again, as FSDP does."""
        if (known := self._alive.get(id(storage))) is not None:
            number, before = known
            self._alive[id(storage)] = (number, storage.size())
            block = self._blocks[number]
            self._blocks[number] = self.caching.allocate(storage.size(), self.stream())
            self.caching.free(block)
            self._changed(number, storage.size() - before)
            self._category.setdefault(number, "gathered")

    def shard_of(self, tensor: torch.Tensor) -> frozenset[int]:
        known = self._alive.get(id(tensor.untyped_storage()))
        return self.shards.get(known[0], frozenset()) if known else frozenset()

    def is_shard(self, tensor: torch.Tensor, families: frozenset[int]) -> None:
        if families and (known := self._alive.get(id(tensor.untyped_storage()))):
            self.shards[known[0]] = families

    def is_(self, tensor: Any, category: str) -> None:
        local = getattr(tensor, "_local_tensor", tensor)
        if isinstance(local, torch.Tensor) and (known := self._alive.get(id(local.untyped_storage()))):
            self._category[known[0]] = category

    def begin_step(self) -> None:
        self._log.clear()
        self._at.clear()
        self._before = dict(self._alive.values())
        self.events = 0

    def peak(self) -> tuple[Memory, dict[str, dict[str, int]]]:
        """(the peak, and how much of it is shards, by family and category)"""
        now = dict(self._before)
        held = most = sum(now.values())
        where = -1
        for index, (_, change) in enumerate(self._log):
            held += change
            if held > most:
                most, where = held, index
        for number, change in self._log[: where + 1]:
            now[number] = now.get(number, 0) + change
        categories = dict.fromkeys(CATEGORIES, 0)
        sharded: dict[str, dict[str, int]] = {}
        for number, size in now.items():
            category = self._category.get(number) or self._first.get(number, "other")
            categories[category] += size
            for family in self.shards.get(number, ()) if size else ():
                of = sharded.setdefault(str(family), {})
                of[category] = of.get(category, 0) + size
        memory = Memory(most, self._at[where] if where >= 0 else 0, {k: v for k, v in categories.items() if v},
                        self.caching.most_reserved)  # fmt: skip
        return memory, sharded

    def forget_peak(self) -> None:
        self.most = self.held
        self.caching.forget_peak()

    def _changed(self, number: int, change: int) -> None:
        self.held += change
        self.most = max(self.most, self.held)
        self._log.append((number, change))
        self._at.append(self.events)

    def _gone(self, key: int) -> None:
        number, size = self._alive.pop(key)
        self.caching.free(self._blocks.pop(number))
        self._changed(number, -size)
