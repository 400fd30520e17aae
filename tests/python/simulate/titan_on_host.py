"""torchtitan on the host's CPUs, with gloo: `titan_on_host.py ARGS`. It looks for an accelerator; here it is told that
"cpu" is one, and where triton is not installed, that the kernels for experts are there, which none of these jobs
calls."""

import importlib.util
import os
import runpy
import sys
import types

import torch


def main():
    if importlib.util.find_spec("triton") is None:
        kernels = types.ModuleType("torchtitan.models.moe.kernels")
        kernels.generate_permute_indices = None
        sys.modules[kernels.__name__] = kernels
    torch._utils._get_available_device_type = lambda: "cpu"
    properties = types.SimpleNamespace(total_memory=1 << 34, name="cpu")
    told = {
        "set_device": lambda *_: None, "current_device": lambda: 0, "get_device_name": lambda *_: "cpu",
        "get_device_properties": lambda *_: properties, "reset_peak_memory_stats": lambda *_: None,
        "empty_cache": lambda: None, "synchronize": lambda *_: None,
        "memory_stats": lambda *_: dict.fromkeys(
            ("active_bytes.all.peak", "reserved_bytes.all.peak", "num_alloc_retries", "num_ooms"), 0),
    }  # fmt: skip
    for name, value in told.items():
        setattr(torch.cpu, name, value)
    os.environ["LOCAL_RANK"] = "0"
    # gloo has no sum that scales; what is scaled is not what is sent.
    from torch.distributed.fsdp import FSDPModule

    divide = FSDPModule.set_gradient_divide_factor

    def divided(self, factor):
        self.set_force_sum_reduction_for_comms(True)
        divide(self, factor)

    FSDPModule.set_gradient_divide_factor = divided
    barrier = torch.distributed.barrier
    torch.distributed.barrier = lambda group=None, **_: barrier(group)
    runpy.run_module("torchtitan.train", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
