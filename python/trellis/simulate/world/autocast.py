"""Automatic mixed precision on the fake device: the same lists of operators as on other accelerators."""

from typing import Any

import torch
from torch.utils._pytree import tree_map

__all__ = ["install"]

_KEY = "AutocastPrivateUse1"
_LOWER = ("mm", "addmm", "bmm", "baddbmm", "matmul", "linear", "conv1d", "conv2d", "conv3d", "_convolution",
          "convolution", "einsum", "addmv", "mv", "chain_matmul", "_scaled_dot_product_flash_attention",
          "_scaled_dot_product_efficient_attention")  # fmt: skip
_FLOAT = ("softmax.int", "log_softmax.int", "layer_norm", "group_norm", "nll_loss", "cross_entropy_loss", "mse_loss",
          "exp", "log", "pow.Tensor_Scalar", "sum", "prod", "cumsum", "rsqrt", "norm.Scalar", "l1_loss",
          "binary_cross_entropy_with_logits", "kl_div", "smooth_l1_loss")  # fmt: skip
_libraries: list[Any] = []


def _kernel(operator: Any, lower: bool) -> Any:
    keys = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, _KEY))

    def run(*args: Any, **kwargs: Any) -> Any:
        kind = torch.get_autocast_dtype("neuron") if lower else torch.float32

        def cast(x: Any) -> Any:
            if isinstance(x, torch.Tensor) and x.is_floating_point() and x.dtype != torch.float64 and x.dtype != kind:
                return x.to(kind)
            return x

        with torch._C._ExcludeDispatchKeyGuard(keys):
            return operator(*tree_map(cast, args), **tree_map(cast, kwargs))

    return run


def install() -> None:
    for every in (torch.library.Library("_", "IMPL"), torch.library.Library("aten", "IMPL")):
        _libraries.append(every)
    _libraries[0].fallback(torch.library.fallthrough_kernel, _KEY)
    for names, lower in ((_LOWER, True), (_FLOAT, False)):
        for name in names:
            packet = getattr(torch.ops.aten, name.partition(".")[0], None)
            overload = name.partition(".")[2] or "default"
            if packet is not None and overload in packet.overloads():
                _libraries[1].impl(name, _kernel(getattr(packet, overload), lower), _KEY)
