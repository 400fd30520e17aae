"""Samples of one's own: anything that can be indexed or iterated and gives numbers, as torch.utils.data has it.

An item is a dict with input_ids and perhaps labels, as Hugging Face has them (a label is its token's, -100 leaves it
out); a pair of tokens and labels, where a label is the token that comes next; or tokens alone. Rows of a 2-D item are
samples one after the other, so that a DataLoader's batches serve. Shorter samples are filled up.
"""

import zlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["DataModule", "Samples"]

NO_LABEL = -100
Row = npt.NDArray[np.int32]
Pair = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]


class DataModule:
    """The shape of Lightning's: what is not overridden is left to the configuration."""

    def setup(self, stage: str = "fit") -> None:
        """Called before the loaders."""

    def train_dataloader(self) -> Any:
        return None

    def val_dataloader(self) -> Any:
        return None


def _pairs(item: Any, where: str) -> Iterator[Pair]:
    if isinstance(item, Mapping):
        tokens = np.asarray(item["input_ids"])
        labels = np.asarray(item["labels"]) if item.get("labels") is not None else tokens
        # A token's label is predicted by the token before.
        after = np.full(labels.shape[:-1] + (1,), NO_LABEL, labels.dtype)
        labels = np.concatenate([labels[..., 1:], after], axis=-1)
    elif isinstance(item, (tuple, list)) and len(item) == 2 and np.ndim(item[0]) > 0:
        tokens, labels = np.asarray(item[0]), np.asarray(item[1])
    else:
        row = np.asarray(item)
        tokens, labels = row[..., :-1], row[..., 1:]
    if tokens.shape != labels.shape or tokens.ndim not in (1, 2):
        shapes = f"tokens are {tokens.shape} and labels {labels.shape}"
        raise ValueError(f"{where}: {shapes}: expected one shape, 1-D or 2-D")
    for kind, array in (("tokens", tokens), ("labels", labels)):
        if array.dtype.kind not in "iu":
            raise ValueError(f"{where}: {kind} are {array.dtype}: expected whole numbers")
    yield from zip(np.atleast_2d(tokens), np.atleast_2d(labels), strict=True)


class Samples:
    """Sample number n of the whole training, a function of n: what a run that was ended goes on with."""

    def __init__(self, items: Any, length: int, name: str = "") -> None:
        if not hasattr(items, "__getitem__") and not isinstance(items, Iterable):
            raise TypeError(f"data is {type(items).__name__}: expected something to index or to iterate over")
        self._items, self._length = items, length
        self._indexed = hasattr(items, "__getitem__") and hasattr(items, "__len__")
        self.samples = len(items) if hasattr(items, "__len__") else 1 << 40
        if self.samples == 0:
            raise ValueError("data has no samples")
        self._rows: Iterator[Pair] = iter(())
        self._next, self._at_once = 0, 1
        words = name or f"{type(items).__module__}.{type(items).__qualname__}"
        first = list(_pairs(next(iter(items)), "sample 0")) if self._indexed else []
        self._batches = len(first) != 1
        self.identity = (words, zlib.crc32(b"".join(t.tobytes() + s.tobytes() for t, s in first)))

    def count(self, most: int | None) -> None:
        """Makes `samples` those of one pass, of which `most` are needed: the length may be that of batches, or
        missing."""
        if self._batches:
            if not hasattr(self._items, "__len__") and iter(self._items) is self._items:
                raise ValueError(
                    "validation data can be iterated over once: expected something that can be iterated over again"
                )
            self.samples = sum(1 for _ in islice(self._pass(), most))

    def _pass(self) -> Iterator[Pair]:
        items = self._items
        if not hasattr(items, "__iter__") and hasattr(items, "__len__"):
            items = (self._items[i] for i in range(len(self._items)))  # an index past the end need not raise
        for number, item in enumerate(items):
            yield from _pairs(item, f"item {number}")

    def _stream(self) -> Iterator[Pair]:
        while True:
            some = False
            for pair in self._pass():
                some = True
                yield pair
            if not some:
                raise ValueError("data gave no samples: expected something that can be iterated over again")

    def _pair(self, number: int) -> Pair:
        if self._indexed:
            index = number % self.samples
            pairs = list(_pairs(self._items[index], f"sample {index}"))
            if len(pairs) == 1:
                return pairs[0]
            self._indexed = False  # batches: they are taken one after the other
        if number < self._next or self._next == 0:
            self._rows, self._next = self._stream(), 0
        while True:
            pair = next(self._rows)
            self._next += 1
            if self._next > number:
                return pair

    def read(self, number: int, tokens: Row, labels: Row, starts: Row | None) -> None:
        given, predicted = self._pair(number)
        if len(given) > self._length:
            raise ValueError(
                f"sample {number} has {len(given)} tokens: expected at most data.seq_length, {self._length}"
            )
        for kind, row in (("tokens", given), ("labels", predicted)):
            for value in (row.min(initial=0), row.max(initial=0)):
                if not -(1 << 31) <= value < 1 << 31:
                    raise ValueError(f"sample {number}: {kind} have {value}: expected numbers of 32 bits")
        tokens[: len(given)], tokens[len(given) :] = given, 0
        labels[: len(given)], labels[len(given) :] = predicted, NO_LABEL
        if starts is not None:
            starts[:] = 0
