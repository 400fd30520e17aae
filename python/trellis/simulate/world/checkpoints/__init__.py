"""Checkpoints of tensors that have no data: counted when they are saved, and loaded as what they were by shape."""

from trellis.simulate.world.checkpoints.saving import install

__all__ = ["install"]
