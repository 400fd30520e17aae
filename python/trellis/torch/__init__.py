"""PyTorch trains on Trellis: `import trellis.torch`, then ``torch.distributed.init_process_group("trellis")``.

Where the package is installed, torch finds the backend by itself, and the import is not needed. The part in C++ is
compiled for a version of torch: a wheel brings it for some, `prepare` compiles it for others: see
`trellis.torch.compiling`.
"""

import os
import pickle
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

try:
    import torch
    import torch.distributed as dist
except ImportError as missing:
    raise ImportError("trellis.torch needs PyTorch: pip install trellis[torch]") from missing

from trellis.torch.compiling import prepare, process_group_module

if TYPE_CHECKING:
    from trellis.torch.estimates import runtime_estimation
    from trellis.torch.hooks import Bf16Wire, bf16_stochastic_hook
    from trellis.torch.optimizer import AdamW, number_parameters

__all__ = [
    "AdamW", "Bf16Wire", "allocator", "bf16_stochastic_hook", "empty", "flight_record", "flight_trace",
    "number_parameters", "prepare", "runtime_estimation",
]  # fmt: skip

_LATER = {
    "AdamW": "trellis.torch.optimizer",
    "Bf16Wire": "trellis.torch.hooks",
    "bf16_stochastic_hook": "trellis.torch.hooks",
    "number_parameters": "trellis.torch.optimizer",
    "runtime_estimation": "trellis.torch.estimates",
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        import importlib

        return getattr(importlib.import_module(_LATER[name]), name)
    raise AttributeError(f"module 'trellis.torch' has no attribute {name!r}")


_made_default_group = 0  # the process that did; 0: none yet, or another backend's


def _create(options: Any, wished: Any) -> Any:
    global _made_default_group
    if not dist.is_initialized():
        _made_default_group = os.getpid()
    elif _made_default_group not in (0, os.getpid()):
        raise dist.DistBackendError(
            "trellis: a new group: this process was forked from the one that made the process group, whose place it "
            "would take in the store: make it in that process, or destroy_process_group() and begin anew here"
        )
    module = process_group_module()
    rank, ranks = (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (-1, 0)
    module.record_to(os.environ.get("TRELLIS_RECORD", ""), rank, ranks)
    return module.create(options, wished)


def _register() -> None:
    if not dist.is_available():
        raise ImportError(f"torch {torch.__version__} was built without torch.distributed")
    if "TRELLIS" not in dist.Backend._plugins:
        dist.Backend.register_backend("trellis", _create, extended_api=True, devices=["cpu"])
    wish = os.environ.get("TRELLIS_AS_DEFAULT", "0")
    if wish not in ("", "0", "1"):
        raise ValueError(f"TRELLIS_AS_DEFAULT={wish}: expected 0 or 1")
    if wish == "1":
        dist.Backend.default_device_backend_map["cpu"] = "trellis"


_allocators = 0  # entered and not left yet
_allocators_lock = threading.Lock()


def _enter_allocators(change: int) -> None:
    global _allocators
    module = process_group_module()
    with _allocators_lock:
        _allocators += change
        module.use_window_for_tensors(_allocators > 0)


@contextmanager
def allocator() -> Iterator[None]:
    """Within it, new CPU tensors of 64 KiB and more are in memory that peers read directly: fewer copies.

    It holds for all threads, until the last of those that are within it leaves. The tensors keep their memory
    afterwards.

    >>> with allocator():
    ...     model = torch.nn.Linear(256, 256)
    """
    _enter_allocators(+1)
    try:
        yield
    finally:
        _enter_allocators(-1)


def empty(*size: Any, dtype: torch.dtype | None = None) -> torch.Tensor:
    """A tensor in memory that peers read directly, whatever its size.

    >>> empty(2, 3, dtype=torch.bfloat16).shape
    torch.Size([2, 3])
    """
    like = torch.empty(*size, dtype=dtype, device="meta")
    tensor: torch.Tensor = process_group_module().empty(like.shape, like.dtype)
    return tensor


def _backend(group: Any) -> Any:
    """Trellis's part of a group. TORCH_DISTRIBUTED_DEBUG=DETAIL wraps it."""
    backend: Any = (group or dist.distributed_c10d._get_default_group())._get_backend(torch.device("cpu"))
    while not hasattr(backend, "dump") and hasattr(backend, "wrapped_pg"):
        backend = backend.wrapped_pg
    if not hasattr(backend, "dump"):
        raise ValueError(f"the group's backend for CPU tensors is {backend.name()}, which keeps no record: not trellis")
    return backend


def flight_record(group: Any = None) -> str:
    """The last operations of a group's rank, as JSON: what `trellis doctor` reads.

    >>> dist.init_process_group("trellis", store=dist.HashStore(), rank=0, world_size=1)
    >>> dist.all_reduce(torch.ones(4))
    >>> "all_reduce" in flight_record()
    True
    >>> dist.destroy_process_group()
    """
    return str(_backend(group).dump())


def flight_trace() -> dict[str, Any]:
    """The last operations of this process, as torch's flight recorder has them: what `torchfrtrace` reads when pickled.

    It is kept when TORCH_FR_BUFFER_SIZE (or TORCH_NCCL_TRACE_BUFFER_SIZE) says of how many operations.

    >>> flight_trace()
    Traceback (most recent call last):
    RuntimeError: no flights are recorded: set TORCH_FR_BUFFER_SIZE to the number of operations to keep
    """
    trace: bytes = process_group_module().flight_trace()
    if not trace:
        raise RuntimeError("no flights are recorded: set TORCH_FR_BUFFER_SIZE to the number of operations to keep")
    whole: dict[str, Any] = pickle.loads(trace)
    return whole


_register()
