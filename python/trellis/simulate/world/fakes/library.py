"""Gives torch's own operators implementations that say shapes alone."""

from collections.abc import Callable, Mapping
from typing import Any

import torch

__all__ = ["give"]

_libraries: list[torch.library.Library] = []  # an implementation lasts as long as its library


def give(implementations: Mapping[str, Callable[..., Any]]) -> None:
    """Those of names of aten that torch has none for."""
    _libraries.append(library := torch.library.Library("aten", "IMPL"))
    for name, made in implementations.items():
        if not torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", "Meta"):
            library.impl(name, made, "Meta")
