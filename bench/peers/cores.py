"""Where ranks run, for run.py: cores that are near to each other or far, by the time that a cache line takes between them.

Where there are more cores than ranks, the nearest pair and the farthest are taken by turns. Where there are as many, a
virtual machine decides, and changes its mind: the distance is measured before and after each round, which counts for the
mode that both say; a round between two modes is done again.
"""
import itertools
import os
import pathlib
import statistics
import subprocess

HERE = pathlib.Path(__file__).parent
FAR_NS = 60  # one way; 10 to 40 within one cache, 80 and more between caches or sockets
MOST_PAIRS = 200


class Cores:
    def __init__(self, folder, ranks):
        self.usable = sorted(os.sched_getaffinity(0))
        self.ranks = ranks
        self.program = folder / "core_distance"
        subprocess.run(["g++", "-std=c++20", "-O2", "-o", self.program, HERE / "core_distance.cpp", "-lpthread"], check=True)
        self.distances = []

    def distance(self, pair):
        done = subprocess.run([self.program, *map(str, pair)], capture_output=True, text=True, timeout=60, check=True)
        self.distances.append(float(done.stdout))
        return self.distances[-1]

    def placements(self):
        """Lists of cores that ranks are kept on, by turns."""
        if len(self.usable) <= self.ranks or self.ranks != 2:
            return [self.usable]
        pairs = list(itertools.combinations(self.usable, 2))
        pairs = pairs[::-(-len(pairs) // MOST_PAIRS)]
        by_distance = sorted((self.distance(pair), pair) for pair in pairs)
        return [list(by_distance[0][1]), list(by_distance[-1][1])]

    def mode(self, placement):
        """near, far, or that there is but one core."""
        if len(placement) < 2:
            return "one core"
        return "far" if self.distance(placement[:2]) > FAR_NS else "near"

    def told(self):
        if not self.distances:
            return ""
        return (f"a cache line took {min(self.distances):.0f} to {max(self.distances):.0f} ns from core to core, "
                f"{statistics.median(self.distances):.0f} in the middle")
