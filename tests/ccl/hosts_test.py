"""Hosts as network namespaces of this machine, on links of a given rate: collectives across them, hosts that die, and
links that are cut. Needs root; elsewhere it is skipped."""
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

TRELLIS = os.environ["TRELLIS"]
RATE = "2gbit"


def run(*words):
    return subprocess.run(words, capture_output=True, text=True)


def must(*words):
    said = run(*words)
    if said.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {said.stderr.strip()}")


class Hosts:
    """Namespaces with one interface each, on a bridge in a namespace of its own."""

    def __init__(self, count):
        tag = f"tr{os.getpid()}"
        self.switch = f"{tag}s"
        self.names = [f"{tag}h{i}" for i in range(count)]
        self.made = []
        try:
            self.make()
        except Exception:
            self.close()
            raise

    def make(self):
        self.add(self.switch)
        must("ip", "-n", self.switch, "link", "add", "br0", "type", "bridge")
        must("ip", "-n", self.switch, "link", "set", "br0", "up")
        for i, name in enumerate(self.names):
            self.add(name)
            must("ip", "link", "add", "eth0", "netns", name, "type", "veth", "peer", "name", f"port{i}", "netns",
                 self.switch)
            must("ip", "-n", self.switch, "link", "set", f"port{i}", "master", "br0", "up")
            must("ip", "-n", name, "addr", "add", f"10.9.0.{i + 1}/24", "dev", "eth0")
            must("ip", "-n", name, "link", "set", "eth0", "up")
            must("ip", "-n", name, "link", "set", "lo", "up")
            must("tc", "-n", name, "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", RATE, "burst", "256k",
                 "latency", "50ms")

    def add(self, name):
        must("ip", "netns", "add", name)
        self.made.append(name)

    def cut(self, host):
        must("ip", "-n", self.switch, "link", "set", f"port{host}", "down")

    def close(self):
        for name in self.made:
            run("ip", "netns", "del", name)


def reason_to_skip():
    if os.geteuid() != 0:
        return "network namespaces need root"
    for tool in ("ip", "tc", "unshare"):
        if shutil.which(tool) is None:
            return f"there is no {tool} (Debian: iproute2, util-linux)"
    probe = run("unshare", "-n", "true")
    if probe.returncode != 0:
        return f"network namespaces cannot be made: {probe.stderr.strip()}"
    probe = subprocess.run([TRELLIS, "bench", "all_reduce_perf", "-b", "8", "-e", "8", "-n", "1"],
                           capture_output=True, text=True, env={**os.environ, "TRELLIS_TRANSPORT": "libfabric"})
    return "" if probe.returncode == 0 else probe.stderr.strip()


WHY = reason_to_skip()


@unittest.skipIf(WHY, WHY)
class HostsTest(unittest.TestCase):
    def setUp(self):
        self.jobs = []
        self.hosts = None

    def tearDown(self):
        for job in self.jobs:
            if job.poll() is None:
                job.kill()
            job.wait()
        if self.hosts is not None:
            self.hosts.close()

    def start(self, hosts, each, *words, **variables):
        """A rank for every place; their outputs go to files."""
        self.hosts = Hosts(hosts)
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        for rank in range(hosts * each):
            host = rank // each
            env = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(hosts * each), "LOCAL_RANK": str(rank % each),
                   "LOCAL_WORLD_SIZE": str(each), "MASTER_ADDR": "10.9.0.1", "MASTER_PORT": "29600",
                   "TRELLIS_SECRET": "of this test", "TRELLIS_HOST": f"host{host}", **variables}
            with open(f"{self.folder.name}/{rank}", "w") as out:
                self.jobs.append(subprocess.Popen(["ip", "netns", "exec", self.hosts.names[host], TRELLIS, *words],
                                                  env=env, stdout=out, stderr=subprocess.STDOUT))

    def said(self, rank):
        return pathlib.Path(f"{self.folder.name}/{rank}").read_text()

    def ends(self, ranks, within):
        deadline = time.monotonic() + within
        for rank in ranks:
            try:
                self.jobs[rank].wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.fail(f"rank {rank} has not ended within {within} s: {self.said(rank)}")
        return [self.jobs[rank].returncode for rank in ranks]

    def checked(self, hosts, each, operation, transport, **variables):
        self.start(hosts, each, "bench", operation, "-b", "1K", "-e", "1M", "-f", "32", "-n", "3", "-w", "1", "-c", "1",
                   TRELLIS_TRANSPORT=transport, **variables)
        ranks = range(hosts * each)
        self.assertEqual(self.ends(ranks, 60), [0] * len(ranks), "".join(self.said(r) for r in ranks))

    def test_two_hosts_choose_the_transport_themselves(self):
        self.checked(2, 2, "all_reduce_perf", "")
        self.assertIn("hybrid", self.said(0))

    def test_four_hosts(self):
        self.checked(4, 2, "all_to_all_perf", "libfabric")

    def test_a_host_that_dies_is_named(self):
        self.start(2, 2, "bench", "all_reduce_perf", "-b", "4M", "-e", "4M", "-n", "100000", "-c", "0", "-T", "4",
                   TRELLIS_TRANSPORT="hybrid")
        time.sleep(2)
        for rank in (2, 3):
            self.jobs[rank].send_signal(signal.SIGKILL)
        self.ends((0, 1), 15)
        self.assertRegex(self.said(0) + self.said(1), r"rank [23] on host host1")

    def test_a_link_that_is_cut_is_noticed_by_the_deadline(self):
        self.start(2, 1, "bench", "all_reduce_perf", "-b", "4M", "-e", "4M", "-n", "100000", "-c", "0", "-T", "4",
                   TRELLIS_TRANSPORT="libfabric")
        time.sleep(2)
        self.hosts.cut(1)
        self.ends((0, 1), 20)
        self.assertRegex(self.said(0), r"rank 1 on host host1")
        self.assertRegex(self.said(1), r"rank 0 on host host0")


if __name__ == "__main__":
    unittest.main()
