"""Jobs whose ranks are on hosts of this machine: a rank for each place, what it says, how it ends."""
import os
import pathlib
import subprocess
import tempfile
import time
import unittest

import hosts
from hosts import Hosts

TRELLIS = os.environ["TRELLIS"]
RANK = os.environ["TRELLIS_BINARY_DIR"] + "/tests/test_ccl_hosts"
ABSENT = ("libfabric.so.1 ", "without libfabric's headers")


def fabric_absent():
    """Why libfabric is not there. Whatever else is wrong is for the tests to find."""
    probe = subprocess.run([TRELLIS, "bench", "all_reduce_perf", "-b", "8", "-e", "8", "-n", "1"],
                           capture_output=True, text=True, env={**os.environ, "TRELLIS_TRANSPORT": "libfabric"})
    said = probe.stderr.strip()
    return said if probe.returncode != 0 and any(text in said for text in ABSENT) else ""


WHY = hosts.reason_to_skip() or fabric_absent()


class OnHosts(unittest.TestCase):
    """Jobs on hosts; each test makes its own."""

    def setUp(self):
        self.jobs = []
        self.hosts = None
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def tearDown(self):
        for job in self.jobs:
            if job.poll() is None:
                job.kill()
            job.wait()
        if self.hosts is not None:
            self.hosts.close()

    def start(self, count, each, *words, **variables):
        """A rank for every place."""
        self.hosts = self.hosts or Hosts(count)
        for rank in range(count * each):
            self.rank(rank, count * each, rank // each, *words, LOCAL_RANK=str(rank % each), LOCAL_WORLD_SIZE=str(each),
                      **variables)

    def rank(self, rank, ranks, host, *words, program=TRELLIS, **variables):
        """Its output goes to a file."""
        env = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1",
               "MASTER_ADDR": "10.9.0.1", "MASTER_PORT": "29600", "TRELLIS_SECRET": "of this test",
               "TRELLIS_HOST": f"host{host}", **variables}
        with open(f"{self.folder.name}/{len(self.jobs)}", "w") as out:
            self.jobs.append(subprocess.Popen(["ip", "netns", "exec", self.hosts.names[host], program, *words],
                                              env=env, stdout=out, stderr=subprocess.STDOUT))

    def said(self, job):
        return pathlib.Path(f"{self.folder.name}/{job}").read_text()

    def measure_for(self, seconds, joined="out-of-place"):
        """Until the ranks have joined, and for so long more."""
        self.says(0, joined)
        time.sleep(seconds)

    def says(self, job, what):
        """Waits until it does."""
        deadline = time.monotonic() + 120
        while what not in self.said(job) and time.monotonic() < deadline:
            time.sleep(0.05)

    def ends(self, ranks, within=300):
        """How they end. The time that they have ends a hang; it is no promise."""
        deadline = time.monotonic() + within
        for rank in ranks:
            try:
                self.jobs[rank].wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.fail(f"rank {rank} has not ended within {within} s: {self.said(rank)}")
        return [self.jobs[rank].returncode for rank in ranks]

    def checked(self, count, each, operation, transport, **variables):
        self.start(count, each, "bench", operation, "-b", "1K", "-e", "1M", "-f", "32", "-n", "3", "-w", "1", "-c", "1",
                   TRELLIS_TRANSPORT=transport, **variables)
        ranks = range(count * each)
        self.assertEqual(self.ends(ranks), [0] * len(ranks), "".join(self.said(r) for r in ranks))

    def goes_on_after(self, disturb, hosts=2, timeout="30", **variables):
        """With sums that are checked, which take longer than what happens meanwhile."""
        self.start(hosts, 1, "bench", "all_reduce_perf", "-b", "1M", "-e", "1M", "-n", "400", "-c", "1", "-T", timeout,
                   TRELLIS_TRANSPORT="libfabric", **variables)
        self.measure_for(0.3)
        disturb()
        self.assertEqual(self.ends(range(hosts)), [0] * hosts, "".join(self.said(r) for r in range(hosts)))
