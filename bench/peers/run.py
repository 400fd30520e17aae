#!/usr/bin/env python3
"""Times our collectives beside those of the MPI libraries and of Gloo, where installed: run.py BUILD [options]

Builds mpi_peer.c with each of mpicc.openmpi and mpicc.mpich that there is, and gloo_peer.cpp, then takes turns: every
round runs each library once with each of its settings (libraries.py) over all sizes, so that what the machine does meanwhile
hits all alike. At each size a library counts with its fastest setting, which is named. Rounds are told apart by how far the
cores are from each other (cores.py).

Beside an all_reduce with a core for each rank stands what bounds it: the time in which as many ranks read and write what
must be read and written, with nobody to wait for (stream_peer.cpp), and the part of it that our time on device memory is.

--readme measures all tables of bench/results/ccl_host.json and prints them as Markdown; on an idle machine it takes about
ten minutes.

Debian: apt install libopenmpi-dev openmpi-bin libmpich-dev mpich libgloo-dev
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import NamedTuple

import libraries
import results
from cores import Cores

HERE = pathlib.Path(__file__).parent
SIZES = [8, 64, 256, 512, 4096, 32 << 10, 256 << 10, 2 << 20, 16 << 20]
FEWER = [8, 64, 512, 4096, 64 << 10, 2 << 20, 16 << 20]
CROWDED = [8, 4096, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20]
BY_BLOCK = ["reduce_scatter", "all_gather", "all_to_all"]  # a size is that of all ranks' blocks
OTHERS = ["reduce_scatter", "all_gather", "broadcast", "all_to_all", "sendrecv"]


class Wish(NamedTuple):
    op: str = "all_reduce"
    ranks: int = 2
    sizes: list = SIZES
    peers: list = ["openmpi", "mpich"]


def sizes_in(text):
    units = {"k": 10, "m": 20, "g": 30}
    return [int(word[:-1]) << units[word[-1].lower()] if word[-1].lower() in units else int(word)
            for word in text.split(",")]


class Failed(Exception):
    pass


def end(started):
    """A launcher ends its ranks when it is asked to, and leaves them when it is killed."""
    for signal_it in (started.terminate, started.kill):
        if started.poll() is None:
            signal_it()
            try:
                started.wait(timeout=20)
            except subprocess.TimeoutExpired:
                pass


def run(words, sizes, environment, placement, seconds=600):
    """size -> (median, 99th percentile, what else the line says)"""
    command = " ".join(map(str, words))
    with subprocess.Popen([*words, *map(str, sizes)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=environment, preexec_fn=lambda: os.sched_setaffinity(0, placement)) as started:
        try:
            out, err = started.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise Failed(f"{command} did not end within {seconds} s") from None
        finally:
            end(started)
    lines = [line.split() for line in out.splitlines()]
    if started.returncode != 0 or [w[0] for w in lines] != list(map(str, sizes)):
        said = [line for line in err.splitlines() if line.strip(" -")] or ["it said nothing"]
        raise Failed(f"{command} ended with {started.returncode}: {said[-1]}")
    return {int(w[0]): (float(w[1]), float(w[2]), w[3] if len(w) > 3 else "") for w in lines}


def bound(folder, wish):
    """A command line without the sizes, where what bounds the operation is memory; none where it is not."""
    if wish.op != "all_reduce" or wish.ranks > len(os.sched_getaffinity(0)):
        return None
    program = folder / "stream_peer"
    subprocess.run(["g++", "-std=c++20", "-O2", "-mavx2", f"-I{HERE.parent.parent}", "-o", program,
                    HERE / "stream_peer.cpp", "-lpthread"], check=True)
    return [str(program), str(wish.ranks)]


def progress(text):
    if sys.stderr.isatty():
        print(f"\r{text:100}", end="" if text else "\r", file=sys.stderr)


class Competition:
    def __init__(self, folder, build, wish, start):
        self.build, self.wish = build, wish
        self.cores = Cores(folder, wish.ranks)
        usable = len(self.cores.usable)
        self.start = start or ("barrier" if wish.ranks > usable else "together")
        self.together = {"TOGETHER": "1"} if self.start == "together" else {}
        self.memory = bound(folder, wish)
        peers = {name: libraries.settings_that_work(subjects, self.trouble)
                 for name, subjects in libraries.installed(folder, build, wish.peers).items()}
        self.peers = {name: subjects for name, subjects in peers.items() if subjects}
        self.subjects = [libraries.ours(build, "malloc"), libraries.ours(build, "device"),
                         *(subject for subjects in self.peers.values() for subject in subjects)]

    def timed(self, subject, sizes, placement, seconds=600):
        words = subject.command(self.wish.ranks, self.wish.op, len(placement))
        return run(words, sizes, libraries.environment_of(subject, self.together), placement, seconds)

    def trouble(self, subject):
        try:
            self.timed(subject, [self.wish.ranks * 4], self.cores.usable, seconds=60)
        except Failed as error:
            return str(error)
        return None

    def round(self, placement, told):
        runs, limit = {}, None
        before = self.cores.mode(placement)
        if self.memory:
            limit = run(self.memory, self.wish.sizes, dict(os.environ), placement)
        for subject in self.subjects:
            progress(f"{told}: {self.wish.op}, {subject.library}, {subject.setting}")
            runs[subject.library, subject.setting] = self.timed(subject, self.wish.sizes, placement)
        progress("")
        return before if before == self.cores.mode(placement) else "changing", runs, limit

    def run(self, rounds):
        found = results.Results(self.wish.op, self.wish.ranks, len(self.cores.usable), self.start, self.wish.sizes,
                                {name: [s.setting for s in subjects] for name, subjects in self.peers.items()})
        placements, changing = self.cores.placements(), []
        counted = [0] * len(placements)
        for number in range(2 * rounds):
            for at, placement in enumerate(placements):
                if counted[at] == rounds:
                    continue
                mode, runs, limit = self.round(placement, f"round {number + 1}")
                if mode == "changing":
                    changing.append((mode, runs, limit))
                else:
                    found.add(mode, runs, limit)
                    counted[at] += 1
        for one in changing if not found.seen else []:
            found.add(*one)
        found.told = self.cores.told()
        return found


def compete(options, wish):
    with tempfile.TemporaryDirectory() as folder:
        competition = Competition(pathlib.Path(folder), options.build, wish, options.start)
        if not competition.peers:
            print("no other library is installed; only our own times", file=sys.stderr)
        return competition.run(options.rounds)


def readme(options):
    first = compete(options, Wish())
    others = [compete(options, Wish(op=op, sizes=FEWER)) for op in OTHERS]
    crowded = [compete(options, Wish(op=op, ranks=8, sizes=CROWDED[op in BY_BLOCK:], peers=["openmpi"]))
               for op in ["all_reduce", *OTHERS[:-1]]]
    for one in (first, *others, *crowded):
        print(one.text(), end="\n\n", file=sys.stderr)
    print(f"<!-- {first.heading()} -->\n{first.table()}\n")
    print(f"<!-- {others[0].heading()} -->\n{results.ratios(others)}\n")
    print(f"<!-- {crowded[0].heading()} -->\n{results.ratios(crowded)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, help="a build folder, best of the release preset")
    parser.add_argument("-n", "--ranks", type=int, default=2)
    parser.add_argument("--op", default="all_reduce", help=f"all_reduce, {', '.join(OTHERS)}")
    parser.add_argument("--sizes", type=sizes_in, default=SIZES, help="such as 8,4K,2M")
    parser.add_argument("--start", choices=["together", "barrier"],
                        help="when a call begins: at one moment for all ranks (unless they outnumber the cores), or as "
                        "each leaves its library's barrier")
    parser.add_argument("--rounds", type=int, default=5, help="of each placement, those between two modes not counted")
    parser.add_argument("--peers", default="gloo,openmpi,mpich", help="those that take part, if installed")
    parser.add_argument("--markdown", action="store_true", help="print a table as Markdown, too")
    parser.add_argument("--readme", action="store_true", help="measure and print the tables of ccl_host.json")
    options = parser.parse_args()
    try:
        if options.readme:
            return readme(options)
        found = compete(options, Wish(options.op, options.ranks, options.sizes, options.peers.split(",")))
    except Failed as error:
        sys.exit(f"run.py: {error}")
    print(found.text())
    if options.markdown:
        print(f"\n{found.table()}")


if __name__ == "__main__":
    main()
