#!/usr/bin/env python3
"""Times our collectives beside those of the MPI libraries and of Gloo, where installed: run.py BUILD [options]

Builds mpi_peer.c with each of mpicc.openmpi and mpicc.mpich that there is, and gloo_peer.cpp, then takes turns: every
round runs each library once over all sizes, so that what the machine does meanwhile hits all alike. Prints the median over
the rounds of each run's median, the 99th percentile likewise, and how many times faster we are than the best of the others.

Beside an all_reduce with a core for each rank stands what bounds it: the time in which as many ranks read and write what
must be read and written, with nobody to wait for (stream_peer.cpp), and the part of it that our time on device memory is.

Debian: apt install libopenmpi-dev openmpi-bin libmpich-dev mpich libgloo-dev
"""
import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
SIZES = [8, 64, 512, 4096, 32 << 10, 256 << 10, 2 << 20, 16 << 20]


def sizes_in(text):
    units = {"k": 10, "m": 20, "g": 30}
    return [int(word[:-1]) << units[word[-1].lower()] if word[-1].lower() in units else int(word)
            for word in text.split(",")]


def peers(folder, build):
    """name -> function from (ranks, op) to a command line without the sizes."""
    found = {}
    if pathlib.Path("/usr/include/gloo").exists():
        program = folder / "gloo_peer"
        subprocess.run(["g++", "-O2", "-o", program, HERE / "gloo_peer.cpp", "-lgloo", "-lpthread"], check=True)

        def gloo(ranks, op, program=program):
            # Its ranks meet in a folder, which must be new each time. Each has a second thread, so none is pinned.
            return [*launched(build, ranks, pinned=False), str(program), tempfile.mkdtemp(dir=folder), op]
        found["gloo"] = gloo
    for name in ("openmpi", "mpich"):
        compiler, launcher = shutil.which(f"mpicc.{name}"), shutil.which(f"mpirun.{name}")
        if not compiler or not launcher:
            continue
        program = folder / f"mpi_peer.{name}"
        if subprocess.run([compiler, "-O2", "-o", program, HERE / "mpi_peer.c"], capture_output=True).returncode != 0:
            print(f"{name} is left out: mpicc.{name} can't compile (its headers are in lib{name}-dev)", file=sys.stderr)
            continue

        def command(ranks, op, name=name, launcher=launcher, program=program):
            crowded = ranks > len(os.sched_getaffinity(0))
            words = [launcher, "-n", str(ranks)]
            if name == "openmpi":
                words += ["--allow-run-as-root"]
                words += ["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"] if crowded else ["--bind-to", "core"]
            elif not crowded:
                words += ["-bind-to", "core"]
            return [*words, str(program), op]
        found[name] = command
    return found


def launched(build, ranks, pinned=True):
    pin = ["--pin"] if pinned and ranks <= len(os.sched_getaffinity(0)) else []
    return [str(build / "trellis"), "launch", "--raw", "-n", str(ranks), *pin, "--"]


def bound(folder, options):
    """A command line without the sizes, where what bounds the operation is memory; none where it is not."""
    if options.op != "all_reduce" or options.ranks > len(os.sched_getaffinity(0)):
        return None
    program = folder / "stream_peer"
    subprocess.run(["g++", "-std=c++20", "-O2", "-mavx2", f"-I{HERE.parent.parent}", "-o", program,
                    HERE / "stream_peer.cpp", "-lpthread"], check=True)
    return [str(program), str(options.ranks)]


def ours(build, memory):
    def command(ranks, op):
        return [*launched(build, ranks), str(build / "bench" / "ccl_peer"), op, memory]
    return command


def run(command, sizes, together):
    """size -> (median, 99th percentile, what else the line says)"""
    env = dict(os.environ, **together, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    done = subprocess.run([*command, *map(str, sizes)], capture_output=True, text=True, timeout=600, env=env)
    if done.returncode != 0:
        sys.exit(f"run.py: {' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
    lines = [line.split() for line in done.stdout.splitlines()]
    return {int(w[0]): (float(w[1]), float(w[2]), w[3] if len(w) > 3 else "") for w in lines}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, help="a build folder, best of the release preset")
    parser.add_argument("-n", "--ranks", type=int, default=2)
    parser.add_argument("--op", default="all_reduce",
                        help="all_reduce, reduce_scatter, all_gather, all_to_all, broadcast or sendrecv")
    parser.add_argument("--sizes", type=sizes_in, default=SIZES, help="such as 8,4K,2M")
    parser.add_argument("--start", choices=["together", "barrier"],
                        help="when a call begins: at one moment for all ranks (unless they outnumber the cores), or as "
                        "each leaves its library's barrier")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peers", default="gloo,openmpi,mpich", help="those that take part, if installed")
    options = parser.parse_args()
    options.start = options.start or ("barrier" if options.ranks > len(os.sched_getaffinity(0)) else "together")
    together = {"TOGETHER": "1"} if options.start == "together" else {}
    with tempfile.TemporaryDirectory() as folder:
        others = {name: command for name, command in peers(pathlib.Path(folder), options.build).items()
                  if name in options.peers.split(",")}
        if not others:
            print("neither an MPI library nor Gloo is installed; only our own times", file=sys.stderr)
        subjects = {"ours": ours(options.build, "malloc"), "ours, device memory": ours(options.build, "device"), **others}
        seen = {name: [] for name in subjects}
        memory, limit = bound(pathlib.Path(folder), options), []
        for number in range(options.rounds):
            if memory:
                limit.append(run(memory, options.sizes, {}))
            for name, command in subjects.items():
                if sys.stderr.isatty():
                    print(f"\rround {number + 1} of {options.rounds}: {name:24}", end="", file=sys.stderr)
                seen[name].append(run(command(options.ranks, options.op), options.sizes, together))
    if sys.stderr.isatty():
        print(file=sys.stderr)
    show(options, seen, list(others), limit)


def show(options, seen, others, limit):
    print(f"{options.op} of f32, {options.ranks} ranks on {len(os.sched_getaffinity(0))} cores; "
          f"start: {options.start}; us, median and 99th percentile, medians of {options.rounds} rounds")
    print(f"{'bytes':>10}" + "".join(f"  {name:>21}" for name in seen) + f"  {'times faster':>12}  {'device':>7}"
          + (f"  {'memory':>8}  {'of it':>5}" if limit else "") + "  algorithm")
    for size in options.sizes:
        middle = {name: statistics.median(r[size][0] for r in runs) for name, runs in seen.items()}
        tail = {name: statistics.median(r[size][1] for r in runs) for name, runs in seen.items()}
        best = min((middle[name] for name in others), default=float("nan"))
        print(f"{size:>10}" + "".join(f"  {middle[name]:>10.2f} {tail[name]:>10.2f}" for name in seen)
              + f"  {best / middle['ours']:>12.2f}  {best / middle['ours, device memory']:>7.2f}"
              + bound_text(size, middle["ours, device memory"], limit) + f"  {seen['ours'][0][size][2]}")


# Of what is small enough for a message to be its own bound, nothing is said.
def bound_text(size, device, limit):
    if not limit:
        return ""
    if size < 1 << 20:
        return f"  {'':>8}  {'':>5}"
    least = statistics.median(r[size][0] for r in limit)
    return f"  {least:>8.0f}  {least / device:>5.0%}"


if __name__ == "__main__":
    main()
