"""What tensors have after collectives: every rank is taken to have what this one has. Of fake ones it is kept if it is
known; otherwise what was known of them before is forgotten. Real ones, of the host, are written."""

import torch
from torch._subclasses.fake_tensor import FakeTensor

from trellis.simulate.world.groups import Groups
from trellis.simulate.world.values import Values

__all__ = ["Contents"]

_OF_EQUALS_THE_SAME = ("average", "min", "max", "band", "bor")


class Contents:
    def __init__(self, values: Values, groups: Groups) -> None:
        self.values, self.groups = values, groups

    def place(self, group: str) -> int:
        return self.groups.of(group)[1].index(self.groups.rank)

    def value(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """What it has, where that is known: real tensors are their own values."""
        if isinstance(tensor, FakeTensor):
            return self.values.of(tensor)
        return tensor if tensor.device.type == "cpu" else None

    def add_up(self, tensors: list[torch.Tensor], group: str, reduction: str) -> None:
        """The sum of what every rank is taken to have."""
        for tensor in tensors:
            self.put(tensor, self.reduced(self.value(tensor), group, reduction))

    def reduced(self, value: torch.Tensor | None, group: str, reduction: str) -> torch.Tensor | None:
        if reduction == "sum" and value is not None:
            return value * len(self.groups.of(group)[1])
        return value if reduction in _OF_EQUALS_THE_SAME else None

    def put(self, out: torch.Tensor, value: torch.Tensor | None) -> None:
        """What a tensor has after a communication: this, if it is known and has as many elements. Otherwise a fake
        one's is not known, and a real one keeps what it had."""
        fits = value is not None and value.numel() == out.numel()
        kept = value.reshape(out.shape) if fits and value is not None else None
        if isinstance(out, FakeTensor):
            self.values.put(out, None if kept is None else kept.to(out.dtype, copy=True))
        elif kept is not None:
            out.copy_(kept)

    def each(self, outputs: list[torch.Tensor], mine: torch.Tensor) -> None:
        """Each rank is taken to have what this one has."""
        for out in outputs:
            self.put(out, self.value(mine))

    def gathered(self, out: torch.Tensor, mine: torch.Tensor) -> None:
        value = self.value(mine)
        times = out.numel() // max(mine.numel(), 1)
        self.put(out, None if value is None else value.reshape(-1).repeat(times))

    def scattered(self, out: torch.Tensor, given: torch.Tensor, group: str, reduction: str) -> None:
        value, size = self.value(given), len(self.groups.of(group)[1])
        mine = None if value is None or value.numel() % size else value.reshape(size, -1)[self.place(group)]
        self.put(out, self.reduced(mine, group, reduction))

    def exchanged(self, out: torch.Tensor, mine: torch.Tensor, group: str) -> None:
        """What each rank is taken to have, this one's, cut into equal parts: mine of them comes from each."""
        value, size = self.value(mine), len(self.groups.of(group)[1])
        if value is None or out.numel() != mine.numel() or mine.numel() % size:
            self.put(out, None)
            return
        self.put(out, value.reshape(size, -1)[self.place(group)].repeat(size))
