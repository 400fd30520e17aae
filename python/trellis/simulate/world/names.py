"""Names of accelerators that scripts say, as names of the fake device; attention as one operation."""

import weakref
from typing import Any

import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensor
from torch.overrides import TorchFunctionMode
from torch.utils._device import DeviceContext

from trellis.simulate.world.errors import CannotRecord
from trellis.simulate.world.recorder import Recorder
from trellis.simulate.world.values import plain, read

__all__ = ["Names", "here", "shared_heads"]

_SET_DATA = torch.Tensor.data.__set__  # type: ignore[attr-defined]
_IS_CUDA = torch.Tensor.is_cuda.__get__  # type: ignore[attr-defined]
_REAL = (torch.Tensor, torch.nn.Parameter)
_NAMES = ("neuron", "cuda", "xla", "hpu", "xpu", "npu")
_FINITE = (torch.isfinite, torch.Tensor.isfinite)
_NO_NUMBER = (torch.isnan, torch.Tensor.isnan)
_INFINITE = (torch.isinf, torch.Tensor.isinf)


def here(device: Any) -> Any:
    """A device, its number or its name, as it is called here: a process has one, whatever number a script gives it."""
    if isinstance(device, torch.device):
        return torch.device("neuron", 0) if device.type in _NAMES else device
    if isinstance(device, str) and device.partition(":")[0] in _NAMES:
        return "neuron"
    return torch.device("neuron", 0) if type(device) is int else device


_Plain = torch.Generator


class _GeneratorKind(type(_Plain)):  # type: ignore[misc]
    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, _Plain)


class _Generator(_Plain, metaclass=_GeneratorKind):
    """One of the device is one of the host that has the device's name."""

    def __new__(cls, device: Any = "cpu") -> "_Generator":
        said = torch.device(here(device))
        made: _Generator = _Plain.__new__(cls, "cpu" if said.type == "neuron" else said)  # type: ignore[call-arg]
        made._said = torch.device("neuron", 0) if said.type == "neuron" else said
        return made

    @property
    def device(self) -> Any:  # type: ignore[override]
        return self._said


def _default_device() -> None:
    """As a mode of its own it lies below the names, and is not asked for its device."""
    begin = DeviceContext.__init__

    def of_device(self: Any, device: Any) -> None:
        begin(self, here(device))

    DeviceContext.__init__ = of_device  # type: ignore[method-assign]


class Names(TorchFunctionMode):
    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self._recorder = recorder
        self._plain_attention = F.scaled_dot_product_attention

    def install(self) -> None:
        """Attention has torch's name, by which context parallelism puts its own in the place."""

        def scaled_dot_product_attention(*args: Any, **kwargs: Any) -> Any:
            return self.attention(*args, **kwargs)

        F.scaled_dot_product_attention = scaled_dot_product_attention  # type: ignore[assignment]
        torch.Tensor.record_stream = lambda *_: None  # type: ignore[method-assign]  # memory has the program's order
        told: Any = lambda tensor: self._data(torch.Tensor.tolist, (tensor,), {})  # noqa: E731
        FakeTensor.tolist = told  # type: ignore[method-assign]
        torch.Generator = _Generator  # type: ignore[misc]
        _default_device()

        def formatted(tensor: FakeTensor, how: str) -> str:
            """As torch does of its own type alone: a number as its value is formatted."""
            plain = tensor.dim() or tensor.fake_mode is not self._recorder.fake
            return object.__format__(tensor, how) if plain else format(tensor.detach().item(), how)

        FakeTensor.__format__ = formatted  # type: ignore[method-assign,assignment]

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if "device" in kwargs:
            kwargs = {**kwargs, "device": here(kwargs["device"])}
        if func is torch.Tensor.to and len(args) > 1:
            args = (args[0], *(here(a) for a in args[1:]))
        elif func is torch.Tensor.cuda:
            return args[0].to("neuron")
        elif func in (torch.Tensor.tolist, torch.Tensor.numpy, torch.Tensor.__array__):
            return self._data(func, args, kwargs)
        elif func in (torch.tensor, torch.as_tensor) and args and type(args[0]) in (list, tuple):
            args = (plain(self._recorder, args[0]), *args[1:])
        elif func is torch.Tensor.pin_memory:
            return args[0]
        elif func == _IS_CUDA:
            return args[0].device.type == "neuron" and self._recorder.settings.device != "neuron"
        elif func == _SET_DATA and isinstance(args[1] if type(args[1]) not in _REAL else args[0], FakeTensor):
            return self._given(args[0], args[1])
        done = func(*args, **kwargs)
        if func in _FINITE or func in _NO_NUMBER or func in _INFINITE:
            self._finite(done, func)
        elif func is torch._is_all_true:
            self._all_true(done)
        return done

    def _finite(self, told: Any, func: Any) -> None:
        """Numbers that nobody knows are taken as finite. What has several may be a mask, infinite on purpose."""
        local = getattr(told, "_local_tensor", told)
        if not isinstance(local, FakeTensor) or self._recorder.values.of(local) is not None:
            return
        if func not in _INFINITE or local.numel() == 1:
            self._recorder.values.know_alike(local, func in _FINITE)
            self._recorder.assume(f"{self._recorder.places.now()} asks whether what depends on data is finite: it is")

    def _all_true(self, told: Any) -> None:
        """By which torch.distributions checks parameters and samples: those that nobody knows are taken as valid."""
        if isinstance(told, FakeTensor) and self._recorder.values.of(told) is None:
            self._recorder.values.know(told, torch.tensor(True))
            self._recorder.assume(f"{self._recorder.places.now()} checks values that depend on data: they are valid")

    def _data(self, func: Any, args: Any, kwargs: Any) -> Any:
        local = getattr(args[0], "_local_tensor", args[0])
        value = read(self._recorder, local) if isinstance(local, FakeTensor) else args[0]
        return func(value, *args[1:], **kwargs)

    def _given(self, parameter: torch.Tensor, data: torch.Tensor) -> None:
        """`parameter.data = data`: a parameter of the host's becomes one of the device where nobody else holds it."""
        values = self._recorder.values
        value = values.of(data)
        with torch._C.DisableTorchFunction():
            if not isinstance(data, FakeTensor):
                with self._recorder.fake:
                    data = torch.empty_strided(data.shape, data.stride(), dtype=data.dtype, device=data.device)
            if isinstance(parameter.data, FakeTensor) and parameter.device == data.device:
                values.release(parameter)
                parameter.data = data
            else:
                self._swapped(parameter, data)
        if value is not None and isinstance(parameter, FakeTensor):
            values.know(parameter, value)

    def _swapped(self, parameter: torch.Tensor, data: torch.Tensor) -> None:
        if getattr(parameter, "_is_flat_param", False):
            raise CannotRecord(
                self._recorder.places.now(),
                "FullyShardedDataParallel keeps parameters on the host, which is not understood",
                "leave out cpu_offload, or use fully_shard with CPUOffloadPolicy",
            )  # fmt: skip
        new: torch.Tensor = data.detach()
        if isinstance(parameter, torch.nn.Parameter):
            new = torch.nn.Parameter(new, parameter.requires_grad)
        own = dict(parameter.__dict__)
        self._held_by_nobody_here(parameter, new)
        try:
            torch.utils.swap_tensors(parameter, new)
        except RuntimeError as error:
            raise CannotRecord(self._recorder.places.now(), f"a parameter's data is replaced by another device's "
                               f"({error})", "move its module by module.to(device)") from None  # fmt: skip
        for name, told in own.items():
            parameter.__dict__.setdefault(name, told)

    def _held_by_nobody_here(self, *tensors: torch.Tensor) -> None:
        """Weak references of what is known of values, and of torch itself, by which it makes no tensor twice."""
        memo = self._recorder.fake.fake_tensor_converter.tensor_memo
        for tensor in tensors:
            self._recorder.values.release(tensor)
            for ref in weakref.getweakrefs(tensor):
                if isinstance(ref, weakref.KeyedRef) and memo.data.get(ref.key) is ref:
                    del memo[ref.key]

    def attention(self, query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0,
                   is_causal: bool = False, scale: Any = None, enable_gqa: bool = False) -> Any:  # fmt: skip
        local = getattr(query, "_local_tensor", query)
        if not isinstance(local, FakeTensor) or query.dim() != 4:
            return self._plain_attention(query, key, value, attn_mask, dropout_p, is_causal, scale=scale,
                                                  enable_gqa=enable_gqa)  # fmt: skip
        if enable_gqa and key.shape[1] != query.shape[1]:
            times = query.shape[1] // key.shape[1]
            key, value = (shared_heads(t, times) for t in (key, value))
        if attn_mask is None and value.shape[-1] == query.shape[-1]:
            return torch.ops.aten._scaled_dot_product_flash_attention(
                query, key, value, dropout_p, is_causal, scale=scale)[0]  # fmt: skip
        if attn_mask is not None and attn_mask.dtype == torch.bool:
            attn_mask = torch.zeros_like(attn_mask, dtype=query.dtype)
        whole = (query.shape[0], query.shape[1], query.shape[2], key.shape[2])
        mask = attn_mask.expand(whole) if attn_mask is not None else None
        needed = torch.is_grad_enabled() and query.requires_grad
        return torch.ops.aten._scaled_dot_product_efficient_attention(
            query, key, value, mask, needed, dropout_p, is_causal, scale=scale)[0]  # fmt: skip


def shared_heads(tensor: Any, times: int) -> Any:
    """Heads that several queries share, without a copy: what is read stays what it is."""
    batch, heads, rows, width = tensor.shape
    return tensor[:, :, None].expand(batch, heads, times, rows, width).flatten(1, 2)
