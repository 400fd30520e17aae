#!/usr/bin/env python3
"""How near collectives between hosts on slow links come to what their algorithm can reach: fabric_bound.py BUILD [options]

Hosts are network namespaces of this machine, each with one interface of a given rate both ways (tc tbf). The bound of an
algorithm that does `steps` messages one after the other and sends `bytes` from each host is steps * alpha + bytes * beta:
alpha is the time of a message of 8 B, measured here, beta follows from the rate, of which Ethernet's, IP's and TCP's headers
take 4%. Needs root.
"""
import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE / "peers"), str(HERE.parent / "tests" / "ccl" / "hosts")]
from hosts import Hosts, reason_to_skip  # noqa: E402
from results import markdown, number, size_text  # noqa: E402

PAYLOAD = 1448 / 1514
SIZES = [1 << 20, 4 << 20, 16 << 20]
OPS = ["all_reduce", "all_gather", "reduce_scatter", "all_to_all"]


def work(op, algorithm, hosts):
    """(steps one after the other, part of the larger buffer that each host sends); None: not known of this algorithm."""
    name = algorithm.split("*")[0].split("/")[0]
    share, log = (hosts - 1) / hosts, math.log2(hosts)
    if op == "all_reduce":
        return {"ring": (2 * (hosts - 1), 2 * share), "kangaring": (2 * (hosts - 1), 2 * share), "direct": (1, hosts - 1),
                "recursive_doubling": (log, log), "halving_doubling": (2 * log, 2 * share), "rdh": (2 * log, 2 * share),
                "mesh": (2, 2 * share)}.get(name)
    steps = {"ring": hosts - 1, "kangaring": hosts - 1, "direct": 1, "mesh": 1, "pairwise": hosts - 1,
             "halving_doubling": log, "recursive_doubling": log, "rdh": log}.get(name)
    return None if steps is None else (steps, share)


class Measured:
    def __init__(self, trellis, hosts, environment):
        self.trellis, self.hosts, self.environment = trellis, hosts, environment

    def bench(self, op, least, most, factor, *more):
        """The results of trellis bench with a rank on each host."""
        ranks = len(self.hosts.names)
        with tempfile.TemporaryDirectory() as folder:
            jobs = []
            for rank, name in enumerate(self.hosts.names):
                env = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1",
                       "MASTER_ADDR": "10.9.0.1", "MASTER_PORT": "29610", "TRELLIS_SECRET": "bound",
                       "TRELLIS_HOST": f"host{rank}", **self.environment}
                words = [self.trellis, "bench", op, "-b", str(least), "-e", str(most), "-f", str(factor), "--style", "nccom", "-c", "0", "--show-algorithm",
                         *more, "--json", f"{folder}/{rank}"]
                jobs.append(subprocess.Popen(["ip", "netns", "exec", name, *words], env=env, stdout=subprocess.DEVNULL))
            try:
                ended = [job.wait(timeout=220) for job in jobs]
            finally:
                for job in jobs:
                    if job.poll() is None:
                        job.kill()
            if any(ended):
                sys.exit(f"fabric_bound.py: trellis bench {op} ended with {ended}")
            return json.loads(pathlib.Path(folder, "0").read_text())["results"]


def row(result, alpha, beta, hosts):
    known = work(result["op"], result["algorithm"], hosts)
    cells = [result["op"], size_text(result["bytes"]), result["algorithm"], number(result["p50_us"] / 1000)]
    if known is None:
        return [*cells, "-", "-"]
    bound = known[0] * alpha + known[1] * result["bytes"] * beta
    return [*cells, number(bound / 1000), f"{result['p50_us'] / bound:.2f}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, help="a build folder")
    parser.add_argument("-n", "--hosts", type=int, default=4)
    parser.add_argument("--mbit", type=int, default=1000, help="the rate of each host's interface")
    parser.add_argument("--algorithm", help="one for all, instead of the table's")
    parser.add_argument("--op", nargs="+", default=OPS)
    options = parser.parse_args()
    why = reason_to_skip()
    if why:
        sys.exit(f"fabric_bound.py: {why}")
    environment = {"TRELLIS_ALGORITHM": options.algorithm} if options.algorithm else {}
    hosts = Hosts(options.hosts, f"{options.mbit}mbit", burst="70k")
    try:
        measured = Measured(str((options.build / "trellis").absolute()), hosts, environment)
        alpha = measured.bench("sendrecv", 8, 8, 2, "-n", "200")[0]["p50_us"]
        beta = 8 / (options.mbit * PAYLOAD)  # us a byte
        rows = []
        for op in options.op:
            for result in measured.bench(op, SIZES[0], SIZES[-1], 4, "-n", "7", "-w", "2"):
                rows.append(row(result, alpha, beta, options.hosts))
    finally:
        hosts.close()
    print(f"{options.hosts} hosts at {options.mbit} Mb/s; alpha {alpha:.0f} us\n")
    print(markdown(["", "larger buffer", "algorithm", "ms", "bound, ms", "times the bound"], rows))


if __name__ == "__main__":
    main()
