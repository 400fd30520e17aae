"""What torch.compile asks when it reorders collectives, answered by a simulated machine.

Inductor asks a process group itself for its estimate only where the group has a part for cuda. For others there is a
setting of its own, which takes what `runtime_estimation` gives:

    settings = torch._inductor.config.aten_distributed_optimizations
    settings.enable_overlap_scheduling = True
    settings.custom_runtime_estimation = runtime_estimation("trn2.48xlarge")
"""

import functools
import importlib
import os
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

from trellis import sim
from trellis.simulate.price.rates import Rates
from trellis.simulate.price.rules import rule_of
from trellis.simulate.record import Operation

__all__ = ["runtime_estimation"]

_KINDS = {"all_reduce": "all_reduce", "all_gather_into_tensor": "all_gather", "reduce_scatter_tensor": "reduce_scatter",
          "all_to_all_single": "all_to_all", "broadcast": "broadcast"}  # fmt: skip


def _bytes(value: Any) -> int:
    tensors = value if isinstance(value, (list, tuple)) else [value]
    return sum(_bytes(t) if isinstance(t, (list, tuple)) else int(t.numel()) * t.element_size() for t in tensors)


def _instead_of_a_gpu(simulated: sim.Machine) -> None:
    """torch's own estimates ask for a GPU's rates: where there is none, they get those of a rank's memory and
    engines."""
    asked: Any = importlib.import_module("torch.utils._runtime_estimation")
    if not torch.cuda.is_available():
        memory = simulated.figures["hbm.rate"].value * simulated.chips / simulated.ranks * 1e-9
        asked.get_gpu_dram_gbps = lambda: memory
        asked.get_device_tflops = lambda dtype: simulated.rank_flops * 1e-12


def _product(node: Any, rates: Rates) -> float | None:
    """Seconds of a product or of attention; what else is computed, a compiler fuses with it."""
    tensors = [
        x.meta.get("val") for x in torch.utils._pytree.tree_leaves((node.args, node.kwargs)) if hasattr(x, "meta")
    ]
    made = torch.utils._pytree.tree_leaves(node.meta.get("val"))
    inputs, outputs = ([t for t in each if isinstance(t, torch.Tensor)] for each in (tensors, made))
    if not inputs or not outputs:
        return None
    shapes = [tuple(tuple(int(n) for n in t.shape) for t in each) for each in (inputs, outputs)]
    name = node.target.name().replace("::", ".")
    kind = str(outputs[0].dtype).removeprefix("torch.")
    operation = Operation(name, shapes[0], shapes[1], kind, 0, _bytes(inputs), _bytes(outputs))
    rule = rule_of(operation)
    return rates.time(rule) if rule.kind in ("product", "attention", "attention_gradient") else None


def runtime_estimation(machine: str = "", world: int = 0) -> Callable[..., float | None]:
    """Answers for a node of a compiled graph: milliseconds of a collective, a product, or attention on the machine,
    which TRELLIS_SIMULATE names by itself; None, and so torch's own estimate, of everything else. `world`: ranks of the
    job, as many as the process group has."""
    name = machine or os.environ.get("TRELLIS_SIMULATE", "")
    if not name:
        raise ValueError("a machine: expected its name, as in runtime_estimation('trn2.48xlarge'), or TRELLIS_SIMULATE")
    simulated = sim.Machine(name)
    rates = Rates(simulated, [])
    _instead_of_a_gpu(simulated)

    @functools.cache
    def seconds(kind: str, size: int, ranks: tuple[int, ...]) -> float:
        text = (f"ranks {max(world or dist.get_world_size(), max(ranks) + 1)}\ngroup g {','.join(map(str, ranks))}\n"
                f"{kind} c {max(size, 1)}B on g" + (" root 0" if kind == "broadcast" else "") + "\n")  # fmt: skip
        return sim.play(text, simulated).time

    def estimate(node: Any, override_size: int | None = None) -> float | None:
        target = node.target
        if getattr(target, "namespace", "") == "aten":
            time = _product(node, rates)
            return None if time is None else 1e3 * time
        if getattr(target, "namespace", "") != "_c10d_functional":
            return None
        kind = _KINDS.get(
            target._schema.name.partition("::")[2].removesuffix("_out").removesuffix("_coalesced").rstrip("_")
        )
        if kind is None:
            return None
        given = dict(zip((a.name for a in target._schema.arguments), node.args, strict=False)) | dict(node.kwargs)
        groups: Any = dist.distributed_c10d
        members = dist.get_process_group_ranks(groups._resolve_process_group(given["group_name"]))
        if len(members) < 2:
            return 0.0
        size = override_size
        if size is None:
            inputs = torch.utils._pytree.tree_leaves(given.get("inputs") or given.get("input"))
            size = max(_bytes(node.meta["val"]), _bytes([one.meta["val"] for one in inputs]))
        return 1e3 * seconds(kind, size, tuple(members))

    return estimate
