"""How long pricing a training step and searching layouts take, and how much memory: the cases of docs/step.md, as data.

    python bench/step_speed.py build/release/trellis [-o bench/results/step_speed.json] [--only WORD] [--times 3]

Each case runs alone, and the best of several counts, by CPU time. A run that was interrupted, or that printed less than
a whole answer, is no measurement. bench/tables.py prints the file.
"""

import argparse
import datetime
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CONFIG = str(ROOT / "examples/llama3_70b.yaml")
RANKS_OF_HOST = 64

# hosts, micro-batches of each data-parallel rank, and the goal in seconds
PRICES = [(8, 64, "1"), (8, 2048, ""), (64, 64, ""), (256, 64, "5"), (2048, 64, "30, of 100,000")]
# configuration, machine, sequences a step
SEARCHES = [(CONFIG, "trn2.48xlarge x 8", 1024), (CONFIG, "trn2.48xlarge x 64", 1024)]


def price_words(hosts, micro):
    tensor, pipeline = 32, 8
    data = hosts * RANKS_OF_HOST // tensor // pipeline
    keys = {"distributed_strategy.tensor_model_parallel_size": tensor,
            "distributed_strategy.pipeline_model_parallel_size": pipeline, "data.global_batch_size": micro * data,
            "data.micro_batch_size": 1}  # fmt: skip
    sets = [word for key, value in keys.items() for word in ("--set", f"{key}={value}")]
    return ["train", "price", CONFIG, "-m", f"trn2.48xlarge x {hosts}", "--json", *sets]


def run(command):
    """Of one run: its answer, seconds by the clock, CPU seconds, and bytes at most."""
    with tempfile.TemporaryFile() as printed:
        before = time.monotonic()
        child = subprocess.Popen(command, stdout=printed)
        _, status, used = os.wait4(child.pid, 0)
        seconds = time.monotonic() - before
        child.returncode = os.waitstatus_to_exitcode(status)
        printed.seek(0)
        text = printed.read()
    try:  # 1: a step that does not fit is priced as well
        answer = json.loads(text) if child.returncode in (0, 1) else None
    except json.JSONDecodeError:
        answer = None
    if answer is None or any(each.get("stopped") for each in (answer if isinstance(answer, list) else [answer])):
        sys.exit(f"{' '.join(command)}: exit status {child.returncode} and no whole answer: not measured")
    return answer, seconds, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024


def rounded(value):
    return float(f"{value:.3g}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("-o", "--output")
    parser.add_argument("--only", default="", help="the cases whose name has this word")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--preset", default="release", help="of the build, for the file")
    given = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    load = os.getloadavg()[0]

    def best(words):
        return min((run([given.program, *words]) for _ in range(given.times)), key=lambda each: each[2])

    prices, searches = [], []
    for hosts, micro, goal in PRICES:
        name = f"70B, {hosts * RANKS_OF_HOST:,} ranks, {micro:,} micro-batches"
        if given.only in name:
            _, seconds, cpu, most = best(price_words(hosts, micro))
            prices.append([name, rounded(seconds), rounded(cpu), round(most / 1e6), goal])
            print(f"{name:44} {seconds:7.2f} s {cpu:7.2f} s of CPU {most / 1e6:8.0f} MB", flush=True)
    for config, machine, batch in SEARCHES:
        name = f"search of {pathlib.Path(config).stem} on {machine}"
        if given.only in name:
            answer, seconds, cpu, most = best(["train", "search", config, "-m", machine, "-g", str(batch), "--json"])
            found = answer[0] if isinstance(answer, list) else answer
            layouts, priced = found["layouts_possible"], found["priced"]
            searches.append([name, layouts, priced, rounded(seconds), rounded(cpu), round(layouts / cpu * 60), round(most / 1e6)])
            print(f"{name:44} {seconds:7.2f} s {cpu:7.2f} s of CPU {layouts} layouts, {priced} priced", flush=True)
    if given.output:
        out = {"what": "Training steps priced and layouts searched",
               "machine": {"kind": "a virtual machine", "cores": f"{len(os.sched_getaffinity(0))} cores"},
               "made": {"date": datetime.date.today().isoformat(), "preset": given.preset,
                        "how": f"bench/step_speed.py, the best of {given.times} by CPU time; load {load:.1f} before."},
               "tables": [{"title": "trellis train price", "rows": prices,
                           "columns": ["a step", "seconds", "seconds of CPU", "MB", "goal in seconds"]},
                          {"title": "trellis train search, 1,024 sequences a step", "rows": searches,
                           "columns": ["a search", "layouts", "priced", "seconds", "seconds of CPU",
                                       "layouts a minute of CPU", "MB"]}]}  # fmt: skip
        pathlib.Path(given.output).write_text(json.dumps(out, indent=1) + "\n")


if __name__ == "__main__":
    main()
