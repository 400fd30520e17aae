"""How long pricing a training step takes, and how much memory: the cases of docs/step.md, as data.

    python bench/step_speed.py build/release/trellis [-o bench/results/step_speed.json] [--only WORD]

Each case runs alone, and the best of three counts: seconds by the clock, CPU seconds, and the most memory.
"""

import argparse
import json
import os
import pathlib
import platform
import resource
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CONFIG = str(ROOT / "examples/llama3_70b.yaml")


def sets(tensor, pipeline, batch, **more):
    keys = {"distributed_strategy.tensor_model_parallel_size": tensor,
            "distributed_strategy.pipeline_model_parallel_size": pipeline, "data.global_batch_size": batch,
            "data.micro_batch_size": 1, **more}  # fmt: skip
    return [word for key, value in keys.items() for word in ("--set", f"{key}={value}")]


# name: the machine, tensor, pipeline, and micro-batches of each data-parallel rank
CASES = {
    "70B, 512 ranks, 64 micro-batches": ("trn2.48xlarge x 8", 32, 8, 64),
    "70B, 512 ranks, 2,048 micro-batches": ("trn2.48xlarge x 8", 32, 8, 2048),
    "70B, 4,096 ranks, 64 micro-batches": ("trn2.48xlarge x 64", 32, 8, 64),
    "70B, 16,384 ranks, 64 micro-batches": ("trn2.48xlarge x 256", 32, 8, 64),
    "70B, 131,072 ranks, 64 micro-batches": ("trn2.48xlarge x 2048", 32, 8, 64),
}
RANKS_OF_HOST = 64


def run(command):
    """Seconds by the clock, CPU seconds, and bytes at most of one run of the command."""
    before = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 1):
        sys.exit(f"{command}: exit status {child.returncode}")
    return time.monotonic() - before, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("-o", "--output")
    parser.add_argument("--only", default="")
    parser.add_argument("--times", type=int, default=3)
    given = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    out = {"host": platform.node(), "cores": len(os.sched_getaffinity(0)), "load": os.getloadavg()[0],
           "program": subprocess.run([given.program, "--version"], capture_output=True, text=True).stdout.strip(),
           "cases": []}  # fmt: skip
    for name, (machine, tensor, pipeline, micro) in CASES.items():
        if given.only not in name:
            continue
        data = int(machine.split(" x ")[1]) * RANKS_OF_HOST // tensor // pipeline
        command = [given.program, "train", "price", CONFIG, "-m", machine, "--json", *sets(tensor, pipeline, micro * data)]
        best = min((run(command) for _ in range(given.times)), key=lambda each: each[1])
        out["cases"].append({"case": name, "seconds": best[0], "cpu_seconds": best[1], "bytes": best[2]})
        print(f"{name:42} {best[0]:7.2f} s {best[1]:7.2f} s of CPU {best[2] / 1e6:8.0f} MB", flush=True)
    if given.output:
        pathlib.Path(given.output).write_text(json.dumps(out, indent=1) + "\n")


if __name__ == "__main__":
    main()
