"""Kernels that a job calls. Those of NKI are priced by their shapes on every chip that they fit, and recorded as one
operation each; those of triton are one operation that moves its tensors.

Where neither nki, neuronxcc nor torch_neuronx is installed, a job that imports them gets ours: of torch_neuronx, what
calls kernels.
"""

import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_leaves

from trellis.simulate.record.steps import KernelTime
from trellis.simulate.world.errors import CannotRecord
from trellis.simulate.world.imports import when_imported
from trellis.simulate.world.recorder import Recorder

__all__ = ["install"]

CHIPS = ("trn1", "inf2", "trn2", "trn3")
_JIT = "trellis.nki.kernels.jit"
_TYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64,
          "i8": torch.int8, "u8": torch.uint8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64,
          "f8e4m3": torch.float8_e4m3fn, "f8e4m3fn": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2}  # fmt: skip


class _Calls:
    """What stands in for kernels of NKI in the recorder's world."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def __call__(self, kernel: Any, args: Any, kwargs: Any) -> Any:
        inputs = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        inputs = [getattr(x, "_local_tensor", x) for x in inputs]
        if not any(isinstance(x, FakeTensor) for x in inputs):
            return kernel.launch(args, kwargs)  # data of the host
        self.recorder.on_first()
        price, times = self._priced(kernel, args, kwargs)
        outputs = []
        for shape, kind in price.results:
            if kind not in _TYPES:
                raise CannotRecord(self.recorder.places.now(), f"the kernel {kernel.name} gives a tensor of {kind}, "
                                   "which torch does not have", "return another type")  # fmt: skip
            outputs.append(torch.empty(shape, dtype=_TYPES[kind], device=self.recorder.device))
        self.recorder.kernel(kernel.name, inputs, outputs, int(price.flops), times)
        return tuple(outputs) if len(outputs) > 1 else outputs[0] if outputs else None

    def _priced(self, kernel: Any, args: Any, kwargs: Any) -> tuple[Any, tuple[KernelTime, ...]]:
        from trellis.nki.calls import price_of

        told, refused = {}, {}
        for chip in CHIPS:
            try:
                told[chip] = price_of(kernel, *args, chip=chip, **kwargs)
            except Exception as error:  # noqa: BLE001 (a kernel's own assertions, too)
                refused[chip] = error
        if not told:
            raise CannotRecord(self.recorder.places.now(), f"the kernel {kernel.name} runs on no chip: "
                               f"{refused['trn2']}", "run it alone with python -m trellis.nki")  # fmt: skip
        times = tuple(KernelTime(chip, p.seconds, p.low, p.high) for chip, p in told.items())
        return told.get("trn2") or next(iter(told.values())), times


class _Operator:
    """torch_neuronx.nki_op: a function that calls kernels, as an operator of torch."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name, self._function = name, function
        self._backward: Callable[..., Any] | None = None
        self._setup: Callable[..., Any] | None = None
        self.__doc__, self.__name__ = function.__doc__, getattr(function, "__name__", name)

    def register_autograd(self, backward: Callable[..., Any], /, *, setup_context: Any = None) -> None:
        self._backward, self._setup = backward, setup_context

    def register_fake(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return function  # shapes are those that the kernel gives

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        import inspect

        bound = inspect.signature(self._function).bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            return self._function(*bound.args, **bound.kwargs)
        return _function_of(self).apply(*bound.args)


def _function_of(operator: _Operator) -> type[torch.autograd.Function]:
    class Called(torch.autograd.Function):
        @staticmethod
        def forward(*args: Any) -> Any:
            return operator._function(*args)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            if operator._setup is not None:
                operator._setup(ctx, inputs, output)

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            if operator._backward is None:
                raise RuntimeError(f"{operator.name} has no gradient: expected its register_autograd")
            return operator._backward(ctx, *gradients)

    return Called


def _nki_op(name: str, *, mutates_args: Any = ()) -> Callable[[Callable[..., Any]], _Operator]:
    return lambda function: _Operator(name, function)


def _as_it_is(kernel: Any) -> Any:
    return kernel


def _of_nki() -> dict[str, types.ModuleType]:
    try:
        from trellis.nki.modules.build import everything
    except ImportError:  # ml_dtypes is missing
        return {}
    return everything()


class _Given(importlib.abc.Loader):
    def __init__(self, module: types.ModuleType) -> None:
        self._module = module

    def create_module(self, spec: Any) -> types.ModuleType:
        return self._module

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def _of_torch() -> dict[str, types.ModuleType]:
    """The modules of torch_neuronx that call kernels."""
    told = {}
    for name in ("torch_neuronx", "torch_neuronx.nki_hop"):
        told[name] = module = types.ModuleType(name, "what calls NKI kernels, in a world of trellis simulate")
        module.nki_op, module.wrap_nki = _nki_op, _as_it_is  # type: ignore[attr-defined]
        module.__path__ = []
    told["torch_neuronx"].nki_hop = told["torch_neuronx.nki_hop"]  # type: ignore[attr-defined]
    return told


class _Finder(importlib.abc.MetaPathFinder):
    """Gives what is not installed."""

    def __init__(self, device: str) -> None:
        self._roots = ("nki", "neuronxcc") if device == "cuda" else ("nki", "neuronxcc", "torch_neuronx")
        self._found: dict[str, types.ModuleType] = {}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name in self._roots and not self._found.get(name):
            real = importlib.machinery.PathFinder.find_spec(name, path, target)
            if real is None or real.origin is None:  # a folder without a module of its own is none
                self._found |= _of_torch() if name == "torch_neuronx" else _of_nki()
        if name not in self._found:
            return None
        return importlib.machinery.ModuleSpec(name, _Given(self._found[name]), is_package=True)


def _of_triton(recorder: Recorder) -> None:
    """A kernel of triton's that a job calls with tensors that have no data."""

    def over(launcher: Any) -> None:
        run = launcher.run

        def launched(self: Any, *args: Any, **kwargs: Any) -> Any:
            tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
            if not any(isinstance(t, FakeTensor) for t in tensors):
                return run(self, *args, **kwargs)
            kernel: Any = self
            while not isinstance(getattr(kernel, "__name__", None), str):
                kernel = kernel.fn
            recorder.on_first()
            recorder.assume(f"{recorder.places.now()}: what the triton kernel {kernel.__name__} computes is not known; "
                            "each tensor that it gets is taken to move once")  # fmt: skip
            recorder.launched(kernel.__name__, tensors)

        launcher.run = launched

    when_imported("triton.runtime.jit", lambda module: over(module.JITFunction))  # type: ignore[attr-defined]
    when_imported("triton.runtime.autotuner", lambda module: over(module.Autotuner))  # type: ignore[attr-defined]


def install(recorder: Recorder) -> None:
    calls = _Calls(recorder)

    def stand_in(module: types.ModuleType) -> None:
        module.settings.stand_in = calls

    when_imported(_JIT, stand_in)
    _of_triton(recorder)
    sys.meta_path.insert(0, _Finder(recorder.settings.device))
