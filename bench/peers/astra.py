"""ASTRA-sim and trellis sim beside each other, on the same Chakra traces and the same network: what each says a step
takes, its own seconds, and its memory; trellis sim by the fastest algorithm of each collective, and by rings alone as
ASTRA-sim is told to. Builds nothing: takes the path of an ASTRA-sim binary with the analytical network.

    python bench/peers/astra.py build/release/trellis .../AstraSim_Analytical_Congestion_Unaware -o bench/results/astra.json
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import subprocess
import tempfile

CONFIG = "examples/llama3_70b.yaml"
TENSOR, PIPELINE, MICRO_BATCHES, LAYERS = 8, 2, 4, 8
# Within a group of 16 a ring, and a switch between groups; GB/s and ns. Read by both.
NETWORK = {"topology": ["Ring", "Switch"], "bandwidth": [100, 25], "latency": [1000, 5000]}
INNER = 16
TFLOPS, MEMORY = 80, 700  # of a rank: TFLOP/s, GB/s
RING = ["ring", "ring"]
SYSTEM = {"scheduling-policy": "LIFO", "endpoint-delay": 10, "active-chunks-per-dimension": 1, "preferred-dataset-splits": 4,
          "all-reduce-implementation": RING, "all-gather-implementation": RING, "reduce-scatter-implementation": RING,
          "all-to-all-implementation": RING, "collective-optimization": "localBWAware", "local-mem-bw": MEMORY,
          "boost-mode": 0, "roofline-enabled": 1, "peak-perf": TFLOPS}  # fmt: skip


def write_inputs(folder, trellis, ranks):
    keys = {"distributed_strategy.tensor_model_parallel_size": TENSOR,
            "distributed_strategy.pipeline_model_parallel_size": PIPELINE, "model.num_layers": LAYERS,
            "data.micro_batch_size": 1, "data.global_batch_size": MICRO_BATCHES * ranks // TENSOR // PIPELINE}  # fmt: skip
    sets = [word for key, value in keys.items() for word in ("--set", f"{key}={value}")]
    subprocess.run([trellis, "train", "export", CONFIG, "--ranks", str(ranks), *sets, "--chakra", folder / "step"], check=True)
    counts = [INNER, ranks // INNER]
    lines = [f"{key}: [ {', '.join(map(str, value))} ]" for key, value in {"npus_count": counts, **NETWORK}.items()]
    (folder / "network.yml").write_text("\n".join(lines) + "\n")
    (folder / "system.json").write_text(json.dumps(SYSTEM))
    (folder / "memory.json").write_text('{"memory-type": "NO_MEMORY_EXPANSION"}')


def run(words, folder, limit):
    """What it printed, its seconds of CPU and by the clock, and its most memory in bytes."""
    with open(folder / "output", "w+b") as output:
        begin = datetime.datetime.now()
        job = subprocess.Popen(words, stdout=output, stderr=subprocess.STDOUT, cwd=folder,
                               preexec_fn=lambda: os.sched_setaffinity(0, os.sched_getaffinity(0)))  # fmt: skip
        timer = subprocess.Popen(["sleep", str(limit)])
        while True:
            pid, status, used = os.wait3(0)
            if pid == job.pid:
                timer.kill(), timer.wait()
                break
            job.kill()
        seconds = (datetime.datetime.now() - begin).total_seconds()
        output.seek(0)
        text = output.read().decode(errors="replace")
    if status != 0:
        raise RuntimeError(f"{words[0]} ended with status {status}: {text[-500:]}")
    return text, used.ru_utime + used.ru_stime, seconds, used.ru_maxrss * 1024


def step_of_ours(text):
    """Four digits of it, of the interval's lower end: this network's figures are not uncertain."""
    value, unit = re.search(r"^  between +([\d.]+) (s|ms|us) and \1 \2,", text, re.M).groups()
    return float(value) * {"s": 1, "ms": 1e-3, "us": 1e-6}[unit]


def step_of_astra(text):
    """Its clock counts ns; the last rank to finish says how long the step was."""
    ticks = [int(each) for each in re.findall(r"finished, (\d+) cycles", text)]
    if not ticks:
        raise RuntimeError("ASTRA-sim says of no rank when it finished: " + text[-500:])
    return max(ticks) * 1e-9, len(ticks)


def of_run(step, used):
    return {"step_s": step, "cpu_s": used[0], "seconds": used[1], "bytes": used[2]}


def compared(trellis, astra, ranks, limit):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_inputs(folder, trellis, ranks)
        size = sum(path.stat().st_size for path in folder.glob("step.*.et"))
        command = [trellis, "sim", "step.0.et", "-m", "network.yml", "--tflops", str(TFLOPS), "--memory", f"{MEMORY}GB/s"]
        ours, *own = run(command, folder, limit)
        rings, *by_rings = run([*command, "-a", "ring"], folder, limit)
        theirs, *other = run([astra, "--workload-configuration=step", "--comm-group-configuration=step.groups.json",
                              "--system-configuration=system.json", "--remote-memory-configuration=memory.json",
                              "--network-configuration=network.yml"], folder, limit)  # fmt: skip
        at, finished = step_of_astra(theirs)
        return {"ranks": ranks, "trace_bytes": size, "ranks_finished": finished,
                "trellis": of_run(step_of_ours(ours), own),
                "trellis_by_rings": of_run(step_of_ours(rings), by_rings),
                "astra": of_run(at, other)}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trellis")
    parser.add_argument("astra")
    parser.add_argument("--ranks", default="64,128,256,512")
    parser.add_argument("--limit", type=int, default=900, help="seconds that a run may take")
    parser.add_argument("--preset", default="release", help="of our build, for the file")
    parser.add_argument("-o", "--output")
    given = parser.parse_args()
    trellis, astra = (str(pathlib.Path(path).resolve()) for path in (given.trellis, given.astra))
    load, rows = os.getloadavg()[0], []
    print("| ranks | traces | step: trellis | rings | ASTRA-sim | CPU: trellis | rings | ASTRA-sim | memory: trellis | rings "
          "| ASTRA-sim |")  # fmt: skip
    print("|" + "---|" * 11)
    for ranks in map(int, given.ranks.split(",")):
        row = compared(trellis, astra, ranks, given.limit)
        rows.append(row)
        of = [row[name] for name in ("trellis", "trellis_by_rings", "astra")]
        print(f"| {ranks} | {row['trace_bytes'] / 1e6:.1f} MB | " + " | ".join(
            [f"{each['step_s']:.3f} s" for each in of] + [f"{each['cpu_s']:.2f} s" for each in of]
            + [f"{each['bytes'] / 1e6:.0f} MB" for each in of]) + " |", flush=True)  # fmt: skip
    if given.output:
        out = {"what": "ASTRA-sim beside trellis sim on the same Chakra traces",
               "machine": {"kind": "a virtual machine", "cores": f"{len(os.sched_getaffinity(0))} cores"},
               "made": {"date": datetime.date.today().isoformat(), "preset": given.preset,
                        "how": f"bench/peers/astra.py, load {load:.0f} at its start: seconds of CPU are what to go by"},
               "rows": rows}  # fmt: skip
        pathlib.Path(given.output).write_text(json.dumps(out, indent=1) + "\n")


if __name__ == "__main__":
    main()
