"""The fake device: torch's module for it (`torch.neuron`), and the names by which scripts ask for an accelerator."""

import types
from typing import Any

import torch

from trellis.simulate.world import streams
from trellis.simulate.world.allocations import Allocations
from trellis.simulate.world.errors import CannotRecord
from trellis.simulate.world.recorder import Recorder
from trellis.simulate.world.settings import Settings

__all__ = ["install", "rename"]

_NAME = "neuron"
_kept: list[Any] = []  # C++ has pointers to them


def _properties(settings: Settings) -> Any:
    return types.SimpleNamespace(
        name=_NAME, total_memory=settings.memory, major=9, minor=0, multi_processor_count=1, warp_size=32,
        gcnArchName="", max_threads_per_multi_processor=1, L2_cache_size=0, shared_memory_per_block=0,
        shared_memory_per_multiprocessor=0, regs_per_multiprocessor=0,
    )  # fmt: skip


def _functions(settings: Settings, all_streams: streams.Streams) -> dict[str, Any]:
    """What modules like torch.cuda offer. The state of the generator is one that nobody draws from."""

    def current_stream(device: Any = None) -> streams.Stream:
        return all_streams.current

    def set_stream(stream: streams.Stream) -> None:
        all_streams.current = stream

    def get_rng_state(device: Any = None) -> torch.Tensor:
        return torch.zeros(16, dtype=torch.uint8)

    def nothing(*_: Any, **__: Any) -> None:
        pass

    def zero(*_: Any, **__: Any) -> int:
        return 0

    told: dict[str, Any] = {
        "is_initialized": lambda: True, "is_available": lambda: True, "current_device": lambda: 0,
        "device_count": lambda: settings.local_world, "_is_in_bad_fork": lambda: False,
        "synchronize": lambda device=None: all_streams.recorder.host_waits(-1),
        "current_stream": current_stream, "set_stream": set_stream,
        "default_stream": lambda d=None: all_streams.default,
        "stream": lambda stream: stream if stream is not None else _Nowhere(), "Stream": streams.Stream,
        "Event": streams.Event, "get_rng_state": get_rng_state, "get_rng_state_all": lambda: [get_rng_state()],
        "get_amp_supported_dtype": lambda: [torch.bfloat16, torch.float16], "initial_seed": zero,
        "is_bf16_supported": lambda *_, **__: True, "get_device_name": lambda device=None: _NAME,
        "get_device_capability": lambda device=None: (9, 0),
        "get_device_properties": lambda d=None: _properties(settings),
        "device": _DeviceContext, "utilization": zero, "is_current_stream_capturing": lambda: False,
        **_memory(settings, all_streams.recorder.memory),
    }  # fmt: skip
    for name in ("set_device", "set_rng_state", "set_rng_state_all", "manual_seed", "manual_seed_all", "seed",
                 "seed_all", "init", "_lazy_init", "ipc_collect",
                 "reset_accumulated_memory_stats", "set_per_process_memory_fraction", "_lazy_call"):  # fmt: skip
        told[name] = nothing
    return told


def _memory(settings: Settings, held: Allocations) -> dict[str, Any]:
    """What the tensors of the device would hold, and what torch.cuda's caching allocator would reserve for them."""

    def now(device: Any = None) -> int:
        return held.held

    def most(device: Any = None) -> int:
        return held.most

    def reserved(device: Any = None) -> int:
        return held.caching.reserved

    def most_reserved(device: Any = None) -> int:
        return held.caching.most_reserved

    def stats(device: Any = None) -> dict[str, int]:
        ends = {"current": held.held, "peak": held.most}
        told = {f"{kind}_bytes.all.{end}": n for kind in ("allocated", "active") for end, n in ends.items()}
        return _Stats({**told, "reserved_bytes.all.current": reserved(), "reserved_bytes.all.peak": most_reserved()})

    def summary(*_: Any, **__: Any) -> str:
        return f"{_NAME}: {held.held:,} bytes allocated, {held.most:,} at the peak, of {settings.memory:,}"

    def forget(device: Any = None) -> None:
        held.forget_peak()

    return {
        "memory_allocated": now, "memory_reserved": reserved, "max_memory_allocated": most,
        "max_memory_reserved": most_reserved, "empty_cache": lambda: held.caching.empty(),
        "memory_stats": stats, "memory_summary": summary, "reset_peak_memory_stats": forget,
        "reset_max_memory_allocated": forget,
        "mem_get_info": lambda device=None: (max(settings.memory - reserved(), 0), settings.memory),
    }  # fmt: skip


class _TensorKind(type):
    """A kind of the device's tensors as torch.cuda names them: FloatTensor(2, 3), FloatTensor([1.0, 2.0])."""

    dtype: torch.dtype

    def __call__(cls, *given: Any) -> torch.Tensor:
        if all(isinstance(size, int) for size in given) or isinstance(given[0], torch.Size):
            return torch.empty(*(given or (0,)), dtype=cls.dtype, device=_NAME)
        return torch.tensor(given[0], dtype=cls.dtype, device=_NAME)

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, torch.Tensor) and x.device.type == _NAME and x.dtype == cls.dtype


def _kinds() -> dict[str, _TensorKind]:
    kinds = {"BFloat16": torch.bfloat16, "Half": torch.half, "Float": torch.float, "Double": torch.double,
             "Bool": torch.bool, "Byte": torch.uint8, "Char": torch.int8, "Short": torch.short, "Int": torch.int,
             "Long": torch.long}  # fmt: skip
    made = {f"{name}Tensor": _TensorKind(f"{name}Tensor", (), {"dtype": kind}) for name, kind in kinds.items()}
    convert, choose = torch.Tensor.type, torch.set_default_tensor_type

    def known(kind: Any) -> Any:
        library, _, name = kind.rpartition(".") if isinstance(kind, str) else ("", "", "")
        return made.get(name, kind) if library in ("torch.cuda", f"torch.{_NAME}") else kind

    def of_type(self: torch.Tensor, dtype: Any = None, non_blocking: bool = False, **more: Any) -> Any:
        kind = known(dtype)
        if isinstance(kind, _TensorKind):
            return self.to(_NAME, kind.dtype, non_blocking=non_blocking)
        return convert(self, dtype, non_blocking, **more)

    def set_default_tensor_type(kind: Any, /) -> None:
        kind = known(kind)
        torch.set_default_device(_NAME if isinstance(kind, _TensorKind) else None)
        if isinstance(kind, _TensorKind):
            torch.set_default_dtype(kind.dtype)
        else:
            choose(kind)

    torch.Tensor.type = of_type  # type: ignore[method-assign,assignment]
    torch.set_default_tensor_type = set_default_tensor_type
    return made


class _Tool:
    """A library beside torch, as NVTX: what it is asked to do is not done, and went well."""

    cudaError = types.SimpleNamespace(success=0)

    def __getattr__(self, _: str) -> Any:
        return lambda *_, **__: 0


def _of_cuda(settings: Settings, recorder: Recorder, told: dict[str, Any]) -> dict[str, Any]:
    """What torch.cuda alone has."""

    class CUDAGraph:
        def __init__(self, *_: Any, **__: Any) -> None:
            raise CannotRecord(recorder.places.now(), "what a CUDAGraph replays is not seen here",
                               "run the same operations without it: no launch takes time here")  # fmt: skip

    def nothing(*_: Any, **__: Any) -> None:
        pass

    def graphed(callables: Any, *_: Any, **__: Any) -> Any:
        return callables

    cuda = torch.cuda
    cuda.nvtx._nvtx = _Tool()  # type: ignore[assignment]
    cuda.nccl.version = lambda: (2, 27, 0)  # for programs that ask what it can do
    torch.version.cuda = torch.version.cuda or "12.8"
    graphs = {"CUDAGraph": CUDAGraph, "make_graphed_callables": graphed}
    for name, value in graphs.items():
        setattr(cuda.graphs, name, value)
    for name in ("get_rng_state", "get_rng_state_all", "set_rng_state", "set_rng_state_all", "manual_seed",
                 "manual_seed_all", "seed", "seed_all", "initial_seed"):  # fmt: skip
        setattr(cuda.random, name, told[name])
    history = dict.fromkeys(("_record_memory_history", "_dump_snapshot", "_set_allocator_settings"), nothing)
    for name, value in {**_memory(settings, recorder.memory), **history, "memory_snapshot": lambda *_, **__: [],
                        "_snapshot": lambda *_, **__: {"segments": [], "device_traces": []}}.items():  # fmt: skip
        setattr(cuda.memory, name, value)
    return {
        **graphs, **_kinds(), "_cudart": _Tool(),
        "default_generators": (torch.default_generator,) * settings.local_world,
        "device_of": told["device"], "StreamContext": told["stream"], "set_sync_debug_mode": nothing,
        "memory_snapshot": cuda.memory.memory_snapshot, "memory_cached": told["memory_reserved"],
        "max_memory_cached": told["max_memory_reserved"], "can_device_access_peer": lambda *_: True,
        **dict.fromkeys(("get_sync_debug_mode", "memory_usage", "temperature", "power_draw", "clock_rate"),
                        told["utilization"]),
    }  # fmt: skip


class _Stats(dict[str, int]):
    """Of an allocator's retries, segments and blocks nothing is told."""

    def __missing__(self, _: str) -> int:
        return 0


class _Nowhere:
    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


class _DeviceContext(_Nowhere):
    def __init__(self, *_: Any) -> None:
        pass


def rename() -> None:
    """After it, torch knows the device's name."""
    torch.utils.rename_privateuse1_backend("neuron")


def install(settings: Settings, all_streams: streams.Streams) -> None:
    """After it, device="neuron" is a device of torch; torch.cuda says that it is there, unless it is to be absent."""
    streams.use(all_streams)
    told = _functions(settings, all_streams)
    module = types.ModuleType("torch.neuron")
    for name, value in told.items():
        setattr(module, name, value)
    from torch.utils import backend_registration

    guard, hook = backend_registration._DummyDeviceGuard(), backend_registration._DummyPrivateUse1Hook()
    _kept.extend((guard, hook))
    backend_registration._setup_privateuseone_for_python_backend("neuron", module, hook, guard)
    torch._C._set_only_lift_cpu_tensors(True)  # type: ignore[attr-defined]
    if settings.device != "neuron":
        for name, value in {**told, **_of_cuda(settings, all_streams.recorder, told)}.items():
            setattr(torch.cuda, name, value)
    accelerator = torch.accelerator
    device = torch.device("neuron")
    changes = {
        "device_count": told["device_count"], "is_available": told["is_available"], "current_stream": current_of(told),
        "current_accelerator": lambda check_available=False: device, "current_device_index": told["current_device"],
        "set_device_index": told["set_device"], "set_stream": told["set_stream"], "synchronize": told["synchronize"],
        "current_device_idx": told["current_device"], "set_device_idx": told["set_device"],
    }  # fmt: skip
    for name in ("max_memory_allocated", "memory_allocated", "empty_cache", "memory_reserved", "max_memory_reserved",
                 "reset_peak_memory_stats", "memory_stats", "reset_accumulated_memory_stats"):  # fmt: skip
        changes[name] = told[name]
    changes["get_memory_info"] = told["mem_get_info"]
    for name, value in changes.items():
        setattr(accelerator, name, value)
    torch.Stream = streams.Stream  # type: ignore[misc,assignment]
    torch.Event = streams.Event  # type: ignore[misc,assignment]


def current_of(told: dict[str, Any]) -> Any:
    return lambda device=None: told["current_stream"]()
