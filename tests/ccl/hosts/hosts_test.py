"""Collectives across hosts: hosts that die, links that are cut, and networks that delay, lose and reorder. Needs root;
elsewhere it is skipped."""
import pathlib
import re
import signal
import subprocess
import time
import unittest

import relay
from hosts import Hosts
from on_hosts import RANK, TRELLIS, WHY, OnHosts
from relay import RelayedHosts


@unittest.skipIf(WHY, WHY)
class HostsTest(OnHosts):
    """Hosts on a switch."""

    def test_two_hosts_choose_the_transport_themselves(self):
        self.checked(2, 2, "all_reduce_perf", "")
        self.assertIn("hybrid", self.said(0))

    def test_four_hosts(self):
        self.checked(4, 2, "all_to_all_perf", "libfabric")

    def test_eight_hosts_make_a_hierarchy(self):
        self.start(8, 2, "bench", "all_reduce_perf", "-b", "1K", "-e", "1M", "-f", "32", "-n", "2", "-w", "1", "-c", "1",
                   "--show-algorithm", TRELLIS_TRANSPORT="hybrid")
        self.assertEqual(self.ends(range(16)), [0] * 16, "".join(self.said(r) for r in range(16)))
        # Two ranks of a host by one way, eight hosts by another: at each size.
        self.assertEqual(len(re.findall(r"hierarchical levels=\(\w+,\w+\) dims=2x8$", self.said(0), re.MULTILINE)), 3, self.said(0))

    def sent_by(self, places, *words):
        """Bytes that the first of two hosts sends for sums of 2 MiB; its ranks are those with place 0."""
        self.jobs, self.hosts = [], Hosts(2)
        for rank, host in enumerate(places):
            self.rank(rank, len(places), host, "bench", "all_reduce_perf", "-b", "2M", "-e", "2M", "-n", "10", "-w", "1",
                      "-c", "1", *words, LOCAL_RANK=str(places[:rank].count(host)),
                      LOCAL_WORLD_SIZE=str(places.count(host)), TRELLIS_TRANSPORT="hybrid")
        self.assertEqual(self.ends(range(len(places)), 90), [0] * len(places),
                         "".join(self.said(r) for r in range(len(places))))
        sent = self.hosts.sent(0)
        self.hosts.close()
        return sent

    def test_ranks_in_any_order_send_as_little_as_ranks_in_rows(self):
        rows, mixed = self.sent_by([0, 0, 0, 1, 1, 1]), self.sent_by([0, 1, 1, 0, 1, 0])
        ring = self.sent_by([0, 1, 1, 0, 1, 0], "--algorithm", "ring")
        self.assertLess(mixed, 1.2 * rows)
        self.assertGreater(ring, 2 * mixed)

    def test_a_slow_rank_is_waited_for(self):
        """It stands still for half of the timeout, and once more."""
        self.start(3, 1, "bench", "all_reduce_perf", "-b", "256K", "-e", "256K", "-n", "2000", "-c", "1", "-T", "10",
                   TRELLIS_TRANSPORT="libfabric")
        self.measure_for(0)
        self.assertIsNone(self.jobs[1].poll(), self.said(1))
        for _ in range(2):
            self.jobs[1].send_signal(signal.SIGSTOP)
            time.sleep(5)
            self.assertLessEqual({job.poll() for job in self.jobs}, {None, 0}, self.said(0) + self.said(2))
            self.jobs[1].send_signal(signal.SIGCONT)
            time.sleep(0.2)
        self.assertEqual(self.ends(range(3)), [0] * 3, "".join(self.said(r) for r in range(3)))

    def comes_back(self, cut, mend):
        self.start(2, 1, "bench", "all_reduce_perf", "-b", "128M", "-e", "128M", "-n", "1", "-w", "0", "-c", "1", "-T", "8",
                   TRELLIS_TRANSPORT="libfabric")
        self.measure_for(0.5)  # in the middle of the first message, which takes longer
        cut(self.hosts, 1)
        time.sleep(1.5)
        mend(self.hosts, 1)
        self.assertEqual(self.ends((0, 1)), [0, 0], self.said(0) + self.said(1))

    def test_a_link_that_comes_back_in_time_is_waited_for(self):
        self.comes_back(Hosts.cut, Hosts.mend)

    def test_an_interface_that_comes_back_in_time_is_waited_for(self):
        self.comes_back(Hosts.down, Hosts.up)

    def test_a_host_that_dies_is_named_by_its_peers_and_the_doctor(self):
        dumps = f"{self.folder.name}/dumps"
        self.start(2, 2, "bench", "all_reduce_perf", "-b", "4M", "-e", "4M", "-n", "100000", "-c", "0", "-T", "10",
                   TRELLIS_TRANSPORT="hybrid", TRELLIS_DUMP=dumps)
        self.measure_for(1)
        for rank in (2, 3):
            self.jobs[rank].send_signal(signal.SIGKILL)
        self.ends((0, 1))
        self.assertRegex(self.said(0) + self.said(1), r"rank [23] on host host1")
        found = subprocess.run([TRELLIS, "doctor", dumps], capture_output=True, text=True).stdout
        self.assertRegex(found.splitlines()[0], r"rank [23]'s process ended")

    def test_a_process_that_is_killed_is_known_long_before_the_deadline(self):
        """Its kernel closes its sockets, and says so to whoever asks for it."""
        for transport, provider in (("libfabric", ""), ("hybrid", ""), ("libfabric", "tcp;ofi_rxm")):
            with self.subTest(transport=transport, provider=provider):
                self.jobs, self.hosts = [], Hosts(2)
                self.start(2, 1, "bench", "all_reduce_perf", "-b", "4M", "-e", "4M", "-n", "100000", "-c", "0", "-T",
                           "120", TRELLIS_TRANSPORT=transport, TRELLIS_PROVIDER=provider)
                self.measure_for(0.5)
                self.jobs[1].kill()
                self.assertNotEqual(self.ends((0,), within=100), [0])  # before the timeout
                self.assertRegex(self.said(0), r"rank 1 on host host1 (died|is gone: its process has ended)")
                self.hosts.close()

    def test_a_link_that_is_cut_is_noticed_by_the_deadline(self):
        self.start(2, 1, "bench", "all_reduce_perf", "-b", "4M", "-e", "4M", "-n", "100000", "-c", "0", "-T", "10",
                   TRELLIS_TRANSPORT="libfabric")
        self.measure_for(1)
        self.hosts.cut(1)
        self.ends((0, 1))
        self.assertRegex(self.said(0), r"rank 1 on host host1 has not answered for [0-9.]+ s")
        self.assertRegex(self.said(1), r"rank 0 on host host0 has not answered for [0-9.]+ s")

    def test_who_is_cut_off_from_most_names_itself(self):
        self.start(3, 1, "bench", "all_reduce_perf", "-b", "4M", "-e", "4M", "-n", "100000", "-c", "0", "-T", "6",
                   TRELLIS_TRANSPORT="libfabric")
        self.measure_for(1)
        self.hosts.cut(2)
        self.ends((0, 1, 2))
        for other in (0, 1):  # the first that knows it aborts
            self.assertRegex(self.said(other), f"rank 2 on host host2|aborted by rank {1 - other}")
        self.assertIn("rank 2 on host host2, this one, is cut off", self.said(2))

    def test_a_node_whose_link_is_cut_ends_on_both_sides(self):
        self.hosts = Hosts(2)
        for node in range(2):
            self.rank(node, 2, node, "launch", "-n", "1", "--nnodes", "2", "--node-rank", str(node), "--master-addr",
                      "10.9.0.1", "--master-port", "29600", "--", "sh", "-c", "echo here; exec sleep 600")
        for node in range(2):
            self.says(node, "here")
        self.hosts.cut(1)
        self.assertEqual(self.ends((0, 1)), [1, 1], self.said(0) + self.said(1))
        self.assertIn("the launch of node 1 has not been heard for 4 s", self.said(0))
        self.assertRegex(self.said(1), "the launch of node 0 at .* has not answered for 4 s")

    def test_a_cut_of_less_than_half_the_timeout_is_waited_for(self):
        """TCP tries again 6.2 s after it, and then 12.6 s: more than three quarters of the timeout."""
        for _ in range(5):
            self.hosts = Hosts(3)
            lasted = []

            def cut_for_a_while():
                began = time.monotonic()
                self.hosts.cut(1)
                time.sleep(7)
                self.hosts.mend(1)
                lasted.append(time.monotonic() - began)

            try:
                return self.goes_on_after(cut_for_a_while, hosts=3, timeout="16")
            except AssertionError:
                if lasted and lasted[0] < 8:
                    raise
            self.tearDown()  # a busy machine mended it late
            self.jobs, self.hosts = [], None
        self.skipTest("this machine is too busy to cut for 7 s: no cut lasted less than 8 s")

    def test_a_port_that_flaps_is_waited_for(self):
        """A packet that goes while it is down makes the kernel ask for the other host's address, in vain, and again only
        after a second: it would never hear in the moments between."""
        self.hosts = Hosts(2)
        self.hosts.ask_for_neighbours_every(20)

        def flap():
            for _ in range(30):
                self.hosts.cut(1)
                time.sleep(0.2)
                self.hosts.mend(1)
                time.sleep(0.2)

        self.goes_on_after(flap)

    def test_connections_that_are_reset_are_opened_anew(self):
        for provider in ("", "tcp;ofi_rxm"):
            with self.subTest(provider=provider):
                self.jobs, self.hosts = [], Hosts(2)
                if not self.hosts.reset(1):
                    self.skipTest("sockets cannot be closed from outside: no ss -K, or a kernel without it")
                self.goes_on_after(lambda: self.hosts.reset(1), TRELLIS_PROVIDER=provider)
                self.hosts.close()

    def goes_on_after_a_cut(self, transport):
        self.hosts = Hosts(3)
        for rank in range(3):
            self.rank(rank, 3, rank, "--gtest_filter=Hosts.TheOthersGoOn*", program=RANK, TRELLIS_TIMEOUT="10",
                      TRELLIS_TRANSPORT=transport)
        self.measure_for(1, joined="joined")
        self.hosts.cut(2)
        self.assertEqual(self.ends((0, 1)), [0, 0], self.said(0) + self.said(1))

    def test_the_others_shrink_and_go_on_without_a_host_that_is_cut_off(self):
        self.goes_on_after_a_cut("libfabric")

    def test_the_others_shrink_and_go_on_over_hybrid(self):
        self.goes_on_after_a_cut("hybrid")

    def test_messages_are_spread_over_the_interfaces(self):
        """Each takes pieces of them; how many is a matter of how fast each is, which RailLoadBalancer.* tests where time is not real."""
        piece = 128 << 10
        for size in ("256K", "1M", "8M"):
            with self.subTest(size=size):
                self.jobs, self.hosts = [], Hosts(2, interfaces=2)
                self.start(2, 1, "bench", "all_reduce_perf", "-b", size, "-e", size, "-n", "20", "-c", "1",
                           TRELLIS_TRANSPORT="libfabric", TRELLIS_INTERFACE="eth0,eth1", TRELLIS_RAILS="2")
                self.assertEqual(self.ends((0, 1)), [0, 0], self.said(0) + self.said(1))
                sent = [self.hosts.sent(1, interface) for interface in (0, 1)]
                self.hosts.close()
                self.assertGreater(min(sent), piece)

    def test_an_interface_that_is_cut_leaves_the_job_the_other(self):
        for interface in (0, 1):
            with self.subTest(interface=interface):
                self.jobs = []
                self.hosts = Hosts(2, interfaces=2)
                self.start(2, 1, "bench", "all_reduce_perf", "-b", "1M", "-e", "1M", "-n", "300", "-c", "1", "-T", "12",
                           TRELLIS_TRANSPORT="libfabric", TRELLIS_INTERFACE="eth0,eth1", TRELLIS_RAILS="2")
                self.measure_for(0.5)
                self.hosts.cut(1, interface)
                self.assertEqual(self.ends((0, 1)), [0, 0], self.said(0) + self.said(1))
                self.hosts.close()

    def test_a_division_takes_up_the_interface_that_was_left(self):
        self.hosts, mended = Hosts(2, interfaces=2), pathlib.Path(self.folder.name) / "mended"
        for rank in range(2):
            self.rank(rank, 2, rank, "--gtest_filter=Hosts.ADivision*", program=RANK, TRELLIS_TIMEOUT="12",
                      TRELLIS_TRANSPORT="libfabric", TRELLIS_INTERFACE="eth0,eth1", TRELLIS_RAILS="2",
                      TRELLIS_TEST_MENDED=str(mended))
        self.measure_for(0.5, joined="joined")
        self.hosts.cut(1, interface=1)
        time.sleep(4)
        self.hosts.mend(1, interface=1)
        time.sleep(1)
        left = self.hosts.sent(1, interface=1)
        mended.touch()
        self.assertEqual(self.ends((0, 1)), [0, 0], self.said(0) + self.said(1))
        self.assertGreater(self.hosts.sent(1, interface=1), left + (5 << 20))

    def test_messages_take_the_interfaces_that_are_selected(self):
        self.hosts = Hosts(2, interfaces=2)
        self.start(2, 1, "bench", "all_reduce_perf", "-b", "1M", "-e", "1M", "-n", "100", "-c", "1", "-T", "8",
                   TRELLIS_TRANSPORT="libfabric", NCCL_SOCKET_IFNAME="^docker,lo,eth0")
        self.measure_for(0.2)
        self.hosts.cut(1, interface=0)
        self.assertEqual(self.ends((0, 1)), [0, 0], self.said(0) + self.said(1))

    def test_a_rank_with_another_secret_is_kept_out(self):
        self.hosts, words = Hosts(2), ("bench", "all_reduce_perf", "-b", "8", "-e", "8", "-n", "1", "-T", "20")
        self.rank(1, 2, 1, *words, TRELLIS_SECRET="of another")
        self.rank(0, 2, 0, *words)
        self.assertNotIn(0, self.ends((0, 1)))
        self.assertRegex(self.said(0), r"secret")
        self.assertIn("rank 1", self.said(1))


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
        self.assertEqual(self.ends((0, 1)), [0, 0], self.said(0) + self.said(1))
        self.assertGreater(self.hosts.lost, 0)

    def test_a_connection_that_is_half_open_is_noticed_on_both_sides(self):
        self.relayed()
        self.start(2, 1, "bench", "all_reduce_perf", "-b", "1M", "-e", "1M", "-n", "100000", "-c", "0", "-T", "10",
                   TRELLIS_TRANSPORT="libfabric")
        self.measure_for(1)
        self.hosts.closed[1] = True
        self.ends((0, 1))
        # One direction still works, so the side that notices first may tell the other that it aborts.
        self.assertRegex(self.said(0), r"rank 1 on host host1|aborted by rank 1")
        self.assertRegex(self.said(1), r"rank 0 on host host0|aborted by rank 0")


if __name__ == "__main__":
    unittest.main()
