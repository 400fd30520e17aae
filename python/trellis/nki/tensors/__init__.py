"""Tensors of a kernel: memory, strides, indices, views, registers, types."""

from trellis.nki.tensors.types import to_dtype, trellis_name

__all__ = ["to_dtype", "trellis_name"]
