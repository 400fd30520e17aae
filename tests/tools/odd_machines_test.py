"""Machines that are not here, described to hwloc, and processes that may have little: each command works, or says in one
line what is missing."""
import os
import resource
import unittest

import program
from program import trellis

# In hwloc's words: how many of what is in each of the one before.
MACHINES = {
    "one thread": ("pu:1", 1),
    "one core of four threads": ("package:1 core:1 pu:4", 1),
    "no caches are told": ("package:1 core:4 pu:2", 4),
    "no packages": ("core:3 pu:1", 3),
    "no cores": ("pu:6", 6),
    "an L3 of 300 MB": ("package:2 l3:1(size=314572800) l2:8(size=2097152) l1d:1(size=49152) core:1 pu:2", 16),
    "caches of no size": ("package:1 l3:1(size=0) l2:2(size=0) l1d:1(size=0) core:1 pu:1", 2),
    "an L2 and no L3": ("package:1 l2:4(size=1048576) core:2 pu:1", 8),
    "256 cores": ("package:2 numa:4 l3:4(size=33554432) l2:8 l1d:1 core:1 pu:2", 256),
    "three levels of groups": ("package:2 die:2 group:2 core:2 pu:1", 16),
    "memory behind each core": ("package:1 core:4 numa:1 pu:1", 4),
    "little memory": ("package:1 [numa(memory=4194304)] core:2 pu:1", 2),
}


class Described(program.Case):
    def test_they_are_shown_and_drawn_with_ranks_on_all_cores(self):
        for name, (words, cores) in MACHINES.items():
            for more in ([], ["--json"], ["-n", 1], ["-n", cores], ["-n", cores + 1], ["-n", 1, "--equal"]):
                for verb in ("show", "draw"):
                    if verb == "draw" and "--json" in more:
                        continue
                    with self.subTest(name, verb=verb, more=more):
                        self.assertTrue(self.printed("topo", verb, *more, HWLOC_SYNTHETIC=words))

    def test_ranks_are_started_and_sum(self):
        for name, (words, _) in MACHINES.items():
            with self.subTest(name):
                ran = trellis("launch", "-n", 2, "--", "true", HWLOC_SYNTHETIC=words)
                self.assertEqual((ran.returncode, ran.stderr), (0, ""))
                self.printed("bench", "all_reduce", "--ranks", 2, "-b", 8, "-e", 8, "-n", 1, "--check",
                             HWLOC_SYNTHETIC=words)


class Limited(program.Case):
    """What the process may have is set after the fork."""

    def limited(self, *words, **limits):
        def set_limits():
            for name, most in limits.items():
                resource.setrlimit(getattr(resource, "RLIMIT_" + name), (most, most))
        return trellis(*words, preexec_fn=set_limits, timeout=300)

    def assert_told(self, ran, *said):
        """It goes well, or in one line it says one of these."""
        if ran.returncode == 0:
            return
        self.assertIn(ran.returncode, (1, 2), ran.stderr)
        self.assertTrue(any(words in ran.stderr for words in said), ran.stderr)

    def test_64_descriptors(self):
        for transport in ("shared_memory", "libfabric"):
            ran = self.limited("bench", "all_reduce", "--ranks", 2, "--transport", transport, "-b", 8, "-e", 64, "-n", 1,
                               NOFILE=64)
            self.assert_told(ran, "descriptors", "Too many open files")
        for words in (["sim", "all_reduce", "-m", "ring:4"], ["topo", "show"], ["kernels"], ["schedule", "list"]):
            self.assertEqual(self.limited(*words, NOFILE=64).returncode, 0, words)

    def test_little_address_space(self):
        for mib, cache in ((400, []), (1000, []), (4000, ["--last-cache", "32MiB"])):
            for words in (["bench", "all_reduce", "--ranks", 2, "-b", 8, "-e", 64, "-n", 1],
                          ["kernels", "squares.bf16", "--speed", *cache], ["sim", "all_reduce", "-m", "ring:4"]):
                self.assert_told(self.limited(*words, AS=mib << 20), "memory", "allocate", "mmap",
                                 "temporarily unavailable")  # a thread that has no room for its stack

    def test_one_core(self):
        core = {min(os.sched_getaffinity(0))}
        for words in (["bench", "all_reduce", "--ranks", 3, "-b", 8, "-e", 64, "-n", 1, "--check"],
                      ["sim", "all_reduce", "-m", "ring:4"], ["topo", "show", "-n", 2], ["kernels"],
                      ["machine", "tune", "ring:4", "--collectives", "all_reduce", "--sizes", "8..1KB"]):
            ran = trellis(*words, preexec_fn=lambda: os.sched_setaffinity(0, core), timeout=300)
            self.assertEqual((ran.returncode, ran.stderr), (0, ""), words)


if __name__ == "__main__":
    unittest.main()
