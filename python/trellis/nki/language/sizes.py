"""nl.tile_size, and objects that kernels make."""

from typing import Any

from trellis.nki.kernels.jit import chip_for
from trellis.nki.kernels.session import active, session
from trellis.nki.rules.chips import PARTITIONS, ChipLimits, limits_of

__all__ = ["NKIObject"]


def _limits() -> ChipLimits:
    return session().limits if active() else limits_of(chip_for())


class TileSize:
    """What a tile may be on the chip that the kernel is for."""

    pmax = PARTITIONS
    gemm_stationary_fmax = 128
    bn_stats_fmax = 512
    psum_min_align = 4
    sbuf_min_align = 1

    @property
    def psum_fmax(self) -> int:
        return _limits().bank_bytes // 4

    psum_bank_fmax = psum_fmax

    @property
    def gemm_moving_fmax(self) -> int:
        return min(_limits().moving, 512)

    @property
    def psum_bank_fmax_bytes(self) -> int:
        return _limits().bank_bytes

    @property
    def psum_num_banks(self) -> int:
        return _limits().psum_banks

    @property
    def sbuf_size_bytes(self) -> int:
        return _limits().sbuf_bytes * PARTITIONS

    @property
    def sbuf_fmax_bytes(self) -> int:
        return _limits().sbuf_bytes

    total_available_sbuf_size = sbuf_fmax_bytes

    @property
    def sbuf_fmax(self) -> int:
        return _limits().sbuf_bytes // 4


class FieldsMayLack(type):
    """Makes an object even where a dataclass lacks a field's value: kernels set such fields later."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().__call__(*args, **kwargs)
        except TypeError as e:
            if "missing" not in str(e) or "__init__" not in str(e) or "__dataclass_fields__" not in cls.__dict__:
                raise
            made: Any = object.__new__(cls)  # type: ignore[arg-type]
            by_fields(made, *args, **kwargs)
            return made


class NKIObject(metaclass=FieldsMayLack):
    """What kernels derive their own types from: annotations are its fields, with or without defaults."""

    _nki_object = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        by_fields(self, *args, **kwargs)


def by_fields(self: Any, *args: Any, **kwargs: Any) -> None:
    """Sets the fields that annotations name, as a dataclass would; those without a value are None."""
    names: list[str] = []
    for cls in reversed(type(self).__mro__):
        names += [n for n in cls.__dict__.get("__annotations__", {}) if n not in names]
    if len(args) > len(names):
        raise TypeError(f"{type(self).__name__}: {len(args)} arguments; expected at most {len(names)}")
    values = dict(zip(names, args, strict=False)) | kwargs
    for name in names:
        if name not in values and not hasattr(type(self), name):
            values[name] = None
    for name, value in values.items():
        object.__setattr__(self, name, value)
    after = getattr(self, "__post_init__", None)
    if after is not None:
        after()
