"""AdamW by the library's kernels: parameters in bf16 with stochastic rounding, or in f32.

>>> import torch
>>> from trellis.torch import AdamW
>>> w = torch.nn.Parameter(torch.ones(4, dtype=torch.bfloat16))
>>> optimizer = AdamW([w], lr=1e-4, stochastic_rounding=True)
>>> w.grad = torch.ones_like(w)
>>> optimizer.step()
"""

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any, cast

import torch
from torch.optim import Optimizer

from trellis import _native

__all__ = ["AdamW", "number_parameters"]

_TYPES = {torch.float32: "f32", torch.bfloat16: "bf16"}
_NAMES = {str(kind).removeprefix("torch."): kind for kind in _TYPES}
_MOMENTS = ("exp_avg", "exp_avg_sq")


def _local(tensor: torch.Tensor) -> torch.Tensor:
    """Of a DTensor, this rank's part."""
    return cast(torch.Tensor, getattr(tensor, "_local_tensor", tensor))


def _name_moments(group: dict[str, Any]) -> None:
    """Groups keep a type by its name: torch's checkpoints take numbers and text there, and no types."""
    if "moments" in group:
        name = str(group["moments"]).removeprefix("torch.")
        if name not in _NAMES:
            raise ValueError(f"moments in {group['moments']}: expected torch.float32 or torch.bfloat16")
        group["moments"] = name


def _gradient(parameter: torch.Tensor, number: int) -> torch.Tensor:
    """This rank's part of the gradient, placed as the parameter is: sums are made, and wholes are divided."""
    gradient = cast(torch.Tensor, parameter.grad)
    placements = getattr(parameter, "placements", None)
    if placements is not None:
        given = getattr(gradient, "placements", None)
        if given is None:
            raise ValueError(f"parameter {number} is a DTensor and its gradient is not: expected a DTensor")
        if given != placements:
            gradient = gradient.redistribute(parameter.device_mesh, placements)  # type: ignore[attr-defined]
    return _local(gradient).contiguous()


def _first_element(parameter: torch.Tensor) -> int:
    """Where a shard begins in the whole tensor: its random bits are those of the whole."""
    placements = getattr(parameter, "placements", None)
    if placements is None:
        return 0
    from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

    sharded = [p.dim for p in placements if p.is_shard()]
    if any(dim != 0 for dim in sharded):
        raise ValueError(
            f"stochastic_rounding takes parameters that are sharded by their first dimension, not {placements}"
        )
    _, offset = compute_local_shape_and_global_offset(parameter.shape, parameter.device_mesh, placements)  # type: ignore[attr-defined]
    row = parameter.numel() // parameter.shape[0] if parameter.dim() and parameter.shape[0] else 1
    return int(offset[0]) * row if offset else 0


def number_parameters(parameters: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    """The parameters, each with its place as its number, which AdamW takes its random bits from wherever it is.

    An optimizer that gets all parameters numbers them so by itself. One that gets a part of them cannot, such as those
    that ZeroRedundancyOptimizer makes and that of a pipeline's stage:

    >>> model = torch.nn.Linear(8, 4)
    >>> parameters = number_parameters(model.parameters())
    >>> [parameter.trellis_number for parameter in parameters]
    [0, 1]

    then ``ZeroRedundancyOptimizer(parameters, AdamW, stochastic_rounding=True)``. The number is an attribute of the
    tensor: `fully_shard` makes other tensors, so number them after it.
    """
    numbered = list(parameters)
    for number, parameter in enumerate(numbered):
        parameter.trellis_number = number  # type: ignore[attr-defined]
    return numbered


class AdamW(Optimizer):
    """As torch.optim.AdamW, by `kernels/optimizers/adamw.h`, bit for bit.

    With `stochastic_rounding`, bf16 parameters are rounded so that they are exact on average and need no f32 copy.
    The random bits depend on the seed, the step, the parameter's number and the element's place in the whole tensor; so
    sharding changes nothing, and is by the first dimension there. The number is the parameter's place in the list;
    where the list is a part of the model's, `number_parameters` gives it. `moments` is the type in which the moments
    are kept, and loaded.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
        *,
        stochastic_rounding: bool = False,
        moments: torch.dtype = torch.float32,
        seed: int = 0,
    ) -> None:
        if lr < 0 or eps < 0 or weight_decay < 0 or not all(0 <= b < 1 for b in betas):
            raise ValueError(
                f"lr {lr}, eps {eps}, weight_decay {weight_decay}: expected 0 or more; betas {betas}: in [0, 1)"
            )
        defaults: dict[str, Any] = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "stochastic_rounding": stochastic_rounding, "moments": moments, "seed": seed,
        }  # fmt: skip
        _name_moments(defaults)
        super().__init__(params, defaults)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        _name_moments(param_group)
        super().add_param_group(param_group)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Also what load_state_dict gives, of which older ones have a type for `moments`."""
        super().__setstate__(state)
        for group in (self.defaults, *self.param_groups):
            _name_moments(group)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        number = 0
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(group, parameter, getattr(parameter, "trellis_number", number))
                number += 1
        return loss

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """As torch's, which gives the moments the type of their parameter; here they get the type of `moments`."""
        given: dict[str, Any] = {}
        last = self.register_load_state_dict_pre_hook(lambda _, state: given.update(state))
        try:
            super().load_state_dict(state_dict)
        finally:
            last.remove()
        keys = chain.from_iterable(group["params"] for group in given["param_groups"])
        for group in self.param_groups:
            for parameter, key in zip(group["params"], keys, strict=False):
                for name in _MOMENTS:
                    moment = given["state"].get(key, {}).get(name)
                    if moment is not None:
                        self.state[parameter][name] = moment.to(parameter.device, _NAMES[group["moments"]])

    def _update(self, group: dict[str, Any], parameter: torch.Tensor, number: int) -> None:
        weights, gradient = _local(parameter), _gradient(parameter, number)
        if weights.dtype not in _TYPES or gradient.dtype not in _TYPES:
            raise ValueError(
                f"parameter {number} is {weights.dtype}, its gradient {gradient.dtype}: expected float32 or bfloat16"
            )
        if not weights.is_contiguous() or weights.device.type != "cpu":
            raise ValueError(f"parameter {number} is not one piece of CPU memory")
        state = self.state[parameter]
        if not state:
            state["step"] = 0
            for name in _MOMENTS:
                state[name] = torch.zeros_like(parameter, dtype=_NAMES[group["moments"]])
        first, second = (_local(state[name]) for name in _MOMENTS)
        for name, part in (("gradient", gradient), *zip(_MOMENTS, (first, second), strict=True)):
            if part.numel() != weights.numel() or not part.is_contiguous():
                raise ValueError(
                    f"parameter {number}: its {name} is {tuple(part.shape)}, its weights {tuple(weights.shape)}: "
                    "expected as many elements, in one piece"
                )
        if first.dtype != second.dtype or first.dtype not in _TYPES:
            raise ValueError(
                f"parameter {number}: its moments are {first.dtype} and {second.dtype}: "
                "expected one type, float32 or bfloat16"
            )
        state["step"] = int(state["step"]) + 1
        call = _native.AdamWCall()
        call.keep = "f32" if weights.dtype == torch.float32 else (
            "bf16_stochastic" if group["stochastic_rounding"] else "bf16_nearest"
        )
        call.gradient_type, call.moment_type = _TYPES[gradient.dtype], _TYPES[first.dtype]
        call.weights, call.gradient = weights.data_ptr(), gradient.data_ptr()
        call.first, call.second = first.data_ptr(), second.data_ptr()
        call.count = weights.numel()
        call.learning_rate, call.epsilon, call.weight_decay = float(group["lr"]), group["eps"], group["weight_decay"]
        call.beta1, call.beta2 = group["betas"]
        call.step, call.seed, call.tensor = state["step"], group["seed"], number
        if call.keep == "bf16_stochastic":
            call.offset = _first_element(parameter)
        call.threads = torch.get_num_threads()
        call.run()
