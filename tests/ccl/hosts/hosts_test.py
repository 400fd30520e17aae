"""Collectives across hosts: hosts that die, links that are cut, and networks that delay, lose and reorder. Needs root;
elsewhere it is skipped."""
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

import hosts
import relay
from hosts import Hosts
from relay import RelayedHosts

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
        deadline = time.monotonic() + 30
        while joined not in self.said(0) and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(seconds)

    def ends(self, ranks, within):
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
        self.assertEqual(self.ends(ranks, 60), [0] * len(ranks), "".join(self.said(r) for r in ranks))


@unittest.skipIf(WHY, WHY)
class HostsTest(OnHosts):
    """Hosts on a switch."""

    def test_two_hosts_choose_the_transport_themselves(self):
        self.checked(2, 2, "all_reduce_perf", "")
        self.assertIn("hybrid", self.said(0))

    def test_four_hosts(self):
        self.checked(4, 2, "all_to_all_perf", "libfabric")

    def test_a_host_that_dies_is_named_by_its_peers_and_the_doctor(self):
        dumps = f"{self.folder.name}/dumps"
        self.start(2, 2, "bench", "all_reduce_perf", "-b", "4M", "-e", "4M", "-n", "100000", "-c", "0", "-T", "4",
                   TRELLIS_TRANSPORT="hybrid", TRELLIS_DUMP=dumps)
        self.measure_for(1)
        for rank in (2, 3):
            self.jobs[rank].send_signal(signal.SIGKILL)
        self.ends((0, 1), 40)
        self.assertRegex(self.said(0) + self.said(1), r"rank [23] on host host1")
        found = subprocess.run([TRELLIS, "doctor", dumps], capture_output=True, text=True).stdout
        self.assertRegex(found.splitlines()[0], r"rank [23]'s process ended")

    def test_a_link_that_is_cut_is_noticed_by_the_deadline(self):
        self.start(2, 1, "bench", "all_reduce_perf", "-b", "4M", "-e", "4M", "-n", "100000", "-c", "0", "-T", "4",
                   TRELLIS_TRANSPORT="libfabric")
        self.measure_for(1)
        self.hosts.cut(1)
        self.ends((0, 1), 40)
        self.assertRegex(self.said(0), r"rank 1 on host host1")
        self.assertRegex(self.said(1), r"rank 0 on host host0")

    def goes_on_after_a_cut(self, transport):
        self.hosts = Hosts(3)
        for rank in range(3):
            self.rank(rank, 3, rank, "--gtest_filter=Hosts.TheOthersGoOn*", program=RANK, TRELLIS_TIMEOUT="4",
                      TRELLIS_TRANSPORT=transport)
        self.measure_for(1, joined="joined")
        self.hosts.cut(2)
        self.assertEqual(self.ends((0, 1), 40), [0, 0], self.said(0) + self.said(1))

    def test_the_others_shrink_and_go_on_without_a_host_that_is_cut_off(self):
        self.goes_on_after_a_cut("libfabric")

    def test_the_others_shrink_and_go_on_over_hybrid(self):
        self.goes_on_after_a_cut("hybrid")

    def test_an_interface_that_is_cut_leaves_the_job_the_other(self):
        for interface in (0, 1):
            with self.subTest(interface=interface):
                self.jobs = []
                self.hosts = Hosts(2, interfaces=2)
                self.start(2, 1, "bench", "all_reduce_perf", "-b", "1M", "-e", "1M", "-n", "300", "-c", "1", "-T", "12",
                           TRELLIS_TRANSPORT="libfabric", TRELLIS_INTERFACE="eth0,eth1", TRELLIS_RAILS="2")
                self.measure_for(0.5)
                self.hosts.cut(1, interface)
                self.assertEqual(self.ends((0, 1), 90), [0, 0], self.said(0) + self.said(1))
                self.hosts.close()

    def test_messages_take_the_interfaces_that_are_selected(self):
        self.hosts = Hosts(2, interfaces=2)
        self.start(2, 1, "bench", "all_reduce_perf", "-b", "1M", "-e", "1M", "-n", "100", "-c", "1", "-T", "8",
                   TRELLIS_TRANSPORT="libfabric", NCCL_SOCKET_IFNAME="^docker,lo,eth0")
        self.measure_for(0.2)
        self.hosts.cut(1, interface=0)
        self.assertEqual(self.ends((0, 1), 60), [0, 0], self.said(0) + self.said(1))

    def test_a_rank_with_another_secret_is_kept_out(self):
        self.hosts, words = Hosts(2), ("bench", "all_reduce_perf", "-b", "8", "-e", "8", "-n", "1", "-T", "3")
        self.rank(0, 2, 0, *words)
        self.rank(1, 2, 1, *words, TRELLIS_SECRET="of another")
        self.assertNotIn(0, self.ends((0, 1), 30))
        self.assertIn("rank 1", self.said(0))
        self.assertRegex(self.said(1), r"secret")


@unittest.skipIf(WHY or relay.reason_to_skip(), WHY or relay.reason_to_skip())
class RelayedHostsTest(OnHosts):
    """Two hosts with a relay between them that does what networks do at their worst."""

    def relayed(self, **behaviour):
        self.hosts = RelayedHosts()
        for name, value in behaviour.items():
            setattr(self.hosts, name, value)

    def test_delay_loss_and_other_order_change_nothing(self):
        self.relayed(delay=0.001, jitter=0.001, loss=0.003, reorder=0.02)
        self.checked(2, 2, "all_reduce_perf", "hybrid")
        self.assertGreater(self.hosts.lost, 0)
        self.assertGreater(self.hosts.overtaken, 0)

    def test_a_burst_of_loss_is_survived(self):
        self.relayed(delay=0.0005)
        self.start(2, 1, "bench", "all_reduce_perf", "-b", "64K", "-e", "64K", "-n", "300", "-c", "1", "-T", "15",
                   TRELLIS_TRANSPORT="libfabric")
        while self.hosts.passed < 1000 and self.jobs[0].poll() is None:
            time.sleep(0.01)
        self.hosts.loss = 1.0
        time.sleep(1)
        self.hosts.loss = 0.0
        self.assertEqual(self.ends((0, 1), 90), [0, 0], self.said(0) + self.said(1))
        self.assertGreater(self.hosts.lost, 0)

    def test_a_connection_that_is_half_open_is_noticed_on_both_sides(self):
        self.relayed()
        self.start(2, 1, "bench", "all_reduce_perf", "-b", "1M", "-e", "1M", "-n", "100000", "-c", "0", "-T", "4",
                   TRELLIS_TRANSPORT="libfabric")
        self.measure_for(1)
        self.hosts.closed[1] = True
        self.ends((0, 1), 40)
        # One direction still works, so the side that notices first may tell the other that it aborts.
        self.assertRegex(self.said(0), r"rank 1 on host host1|aborted by rank 1")
        self.assertRegex(self.said(1), r"rank 0 on host host0|aborted by rank 0")


if __name__ == "__main__":
    unittest.main()
