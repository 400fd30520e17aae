"""One rank of an example over gloo; writes what its step communicated: `gloo_rank.py OUTPUT STEP SCRIPT ARGS`.

What torch.distributed is asked for is logged by its own operators, as a dispatch mode sees them, and is then done.
"""

import json
import os
import runpy
import sys

import torch
import torch.distributed as dist
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils._python_dispatch import TorchDispatchMode

KINDS = {
    "allreduce_": "all_reduce", "_allgather_base_": "all_gather", "_reduce_scatter_base_": "reduce_scatter",
    "broadcast_": "broadcast", "all_reduce": "all_reduce", "all_gather_into_tensor": "all_gather",
    "reduce_scatter_tensor": "reduce_scatter", "send": "send", "recv_": "receive", "allgather_": "all_gather",
    "barrier": "barrier",
}  # fmt: skip
LOG: list[list[object]] = []
STEPS = [0]
FIRST: list[int] = []  # the optimizer whose updates end steps


def size(tensors):
    found = tensors if isinstance(tensors, (list, tuple)) else [tensors]
    return sum(size(t) if isinstance(t, (list, tuple)) else t.numel() * t.element_size() for t in found)


class Log(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if any(t not in (torch.Tensor, torch.nn.Parameter) for t in types if "DTensor" in t.__name__ or
               "AsyncCollective" in t.__name__):  # fmt: skip
            return NotImplemented
        done = func(*args, **(kwargs or {}))
        namespace, _, name = func._schema.name.partition("::")
        if namespace in ("c10d", "_c10d_functional") and name in KINDS:
            LOG.append([STEPS[0], KINDS[name], *self.told(namespace, name, args, done)])
        return done

    def told(self, namespace, name, args, done):
        if namespace == "_c10d_functional":
            group = dist.distributed_c10d._resolve_process_group(args[-1])
            larger = max(size(args[0]), size(done))
        else:
            at = 2 if name in ("_allgather_base_", "_reduce_scatter_base_", "allgather_") else 1
            group = dist.ProcessGroup.unbox(args[at])
            larger = 0 if name == "barrier" else max(size(args[0]), size(args[1]) if at == 2 else 0)
        peer = args[2] if name in ("send", "recv_") else -1
        return larger, dist.get_process_group_ranks(group), peer


def updated(optimizer, *_):
    FIRST.append(id(optimizer))
    STEPS[0] += id(optimizer) == FIRST[0]


def main():
    output, script, *arguments = sys.argv[1:]
    register_optimizer_step_post_hook(updated)
    sys.argv = [script, *arguments]
    sys.path[0] = os.path.dirname(script)
    torch.autograd.set_multithreading_enabled(False)
    with Log():
        runpy.run_path(script, run_name="__main__")
    with open(f"{output}.{os.environ['RANK']}", "w") as file:
        json.dump(LOG, file)
    os._exit(0)


if __name__ == "__main__":
    main()
