"""Processes that a job does not know, or no longer: ranks that start again at the old addresses, ranks of another job, and
whoever calls at the ports. Needs root; elsewhere it is skipped."""
import signal
import subprocess
import sys
import time
import unittest

from hosts import Hosts
from on_hosts import RANK, WHY, OnHosts

# All the ports of a rank's endpoints, two for each: so a process that starts again has them again.
PORTS = range(31000, 31004)
AT_PORTS = {f"FI_{provider}_PORT_{end}_RANGE": str(port) for provider in ("NET", "TCP")
            for end, port in (("LOW", PORTS[0]), ("HIGH", PORTS[-1]))}
CALLER = """
import socket, sys
held = []
for port in map(int, sys.argv[1:]):
    for said in (b"", b"GET / HTTP/1.0\\r\\n\\r\\n", bytes(range(256)) * 64, b"\\0" * 4096):
        s = socket.create_connection(("10.9.0.1", port))
        s.sendall(said)
        held.append(s)
"""

# Holds connections and says nothing; then leaves the file that it was told of, and stays.
HOLDER = """
import resource, socket, sys, time
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
held = []
for place in sys.argv[2:]:
    host, port = place.split(":")
    held += [socket.create_connection((host, int(port))) for _ in range(300)]
open(sys.argv[1], "w").close()
print("holds", len(held), flush=True)
time.sleep(600)
"""


def summing(size, times, seconds):
    return "bench", "all_reduce_perf", "-b", size, "-e", size, "-n", str(times), "-c", "1", "-T", str(seconds)


@unittest.skipIf(WHY, WHY)
class StrangersTest(OnHosts):
    def one(self, rank, ranks, *words, **variables):
        """A rank on the host of its number. Returns the number of the process."""
        self.hosts = self.hosts or Hosts(3)
        self.rank(rank, ranks, rank, *words, TRELLIS_TRANSPORT="libfabric", **variables)
        return len(self.jobs) - 1

    def kill(self, job):
        self.jobs[job].send_signal(signal.SIGKILL)
        self.jobs[job].wait()

    def ports(self, host):
        """On which somebody listens."""
        said = subprocess.run(["ip", "netns", "exec", self.hosts.names[host], "ss", "-tlnH"], capture_output=True,
                              text=True).stdout
        return {int(line.split()[3].rsplit(":", 1)[1]) for line in said.splitlines()}

    def connected(self, host):
        """Whether another host's process has called at the store there."""
        said = subprocess.run(["ip", "netns", "exec", self.hosts.names[host], "ss", "-tnH", "sport", "=", ":29600"],
                              capture_output=True, text=True).stdout
        return "10.9.0.2" in said

    def wait_for(self, what):
        deadline = time.monotonic() + 120
        while not what() and time.monotonic() < deadline:
            time.sleep(0.02)
        self.assertTrue(what(), "".join(self.said(j) for j in range(len(self.jobs))))

    def joined(self, job):
        self.wait_for(lambda: "out-of-place" in self.said(job))

    def test_a_job_that_starts_again_at_the_old_addresses_is_not_taken_for_the_former(self):
        """Of three ranks one lives on, stopped while the others are replaced: then it goes on with what it was sending."""
        for rank in range(3):
            self.one(rank, 3, *summing("16M", 100000, 10), **AT_PORTS)
        self.joined(0)
        self.wait_for(lambda: set(PORTS) <= self.ports(0))
        self.jobs[2].send_signal(signal.SIGSTOP)
        self.kill(0)
        self.kill(1)
        anew = [self.one(rank, 2, *summing("16M", 200, 30), **AT_PORTS) for rank in range(2)]  # it is to run when looked at
        self.joined(anew[0])
        self.assertLessEqual(set(PORTS), self.ports(0))
        self.jobs[2].send_signal(signal.SIGCONT)
        self.assertEqual(self.ends([2]), [1], self.said(2))
        self.assertRegex(self.said(2), r"rank [01] on host host[01]")
        self.assertEqual(self.ends(anew), [0, 0], self.said(anew[0]) + self.said(anew[1]))

    def test_a_rank_that_starts_again_while_the_job_runs_is_lost(self):
        """Why is open: it may have been in an operation, and may listen at its port again before anybody is refused there."""
        first = [self.one(rank, 2, *summing("64K", 100000, 10), **AT_PORTS) for rank in range(2)]
        self.joined(0)
        self.kill(first[1])
        again = self.one(1, 2, *summing("64K", 10, 10), **AT_PORTS)
        self.assertEqual(self.ends([first[0], again]), [1, 1])
        self.assertRegex(self.said(first[0]),
                         r"rank 1 on host host1 (died|is gone: its process has ended|has not answered for [0-9.]+ s)")
        self.assertRegex(self.said(again), r"rank 0 did not join in time|rank 0's store at 10.9.0.1:29600")

    def test_a_rank_that_starts_again_while_the_others_join_is_refused(self):
        first = [self.one(rank, 3, *summing("64K", 10, 20)) for rank in range(2)]
        self.wait_for(lambda: 29600 in self.ports(0))
        self.wait_for(lambda: self.connected(0))
        time.sleep(5)  # it says there who it is
        self.kill(first[1])
        again = self.one(1, 3, *summing("64K", 10, 20))
        self.assertEqual(self.ends([again]), [2])
        self.assertIn("rank 1 has joined already", self.said(again))
        last = self.one(2, 3, *summing("64K", 10, 20))
        self.assertNotIn(0, self.ends([first[0], last]))
        self.assertIn("rank 1 did not join in time", self.said(first[0]))

    def test_jobs_at_the_same_address_keep_apart_by_their_secrets(self):
        jobs = [self.one(rank, 2, *summing("64K", 10, 10), TRELLIS_SECRET=secret)
                for secret in ("of one", "of the other") for rank in range(2)]
        self.assertEqual(self.ends(jobs), [0] * 4, "".join(self.said(j) for j in jobs))

    def test_a_rank_of_another_job_with_the_same_secret_is_refused_by_both(self):
        for told, sentence in (({}, "rank [01] was told of [23] ranks over libfabric, and rank [01] of [23] ranks"),
                               ({"TRELLIS_TAGGED": "1"}, "rank 1 on host1 speaks .*: expected the same")):
            with self.subTest(told=told):
                words = summing("64K", 10, 20)
                both = [self.one(0, 2, *words), self.one(1, 2 if told else 3, *words, **told)]
                self.assertEqual(self.ends(both), [2, 2], self.said(both[0]) + self.said(both[1]))
                for job in both:
                    self.assertRegex(self.said(job), sentence)

    def held(self, **variables):
        """A job of two ranks that is under way, for as long as rank 1 stands still."""
        job = [self.one(rank, 2, *summing("64K", 2000, 60), **variables) for rank in range(2)]
        self.joined(0)
        self.jobs[job[1]].send_signal(signal.SIGSTOP)
        return job

    def goes_on(self, job):
        self.jobs[job[1]].send_signal(signal.SIGCONT)
        self.assertEqual(self.ends(job), [0, 0], self.said(0) + self.said(1))

    def test_another_job_with_the_same_address_and_secret_changes_nothing(self):
        job = self.held()
        others = [self.one(rank, 2, *summing("64K", 10, 6)) for rank in range(2)]
        self.assertNotIn(0, self.ends(others))
        self.assertIn("another job with the same address and secret keeps its store", self.said(others[0]))
        self.assertRegex(self.said(others[1]), "rank 0's store at 10.9.0.1:29600|rank 0 did not join in time")
        self.goes_on(job)

    def test_who_holds_connections_and_says_nothing_takes_no_descriptors(self):
        """Of a process that may have 256."""
        held = self.folder.name + "/held"
        run = f"ulimit -n 256 && exec {RANK} --gtest_filter=Hosts.StrangersAtThePortsTakeNoDescriptors"
        job = [self.one(rank, 2, "-c", run, program="bash", TRELLIS_TEST_HELD=held, **AT_PORTS) for rank in range(2)]
        self.wait_for(lambda: all("joined" in self.said(j) for j in job))
        places = [f"10.9.0.{host + 1}:{port}" for host in range(2) for port in self.ports(host) & set(PORTS)]
        self.assertGreaterEqual(len(places), 4)
        self.rank(0, 1, 2, "-c", HOLDER, held, *places, program=sys.executable)
        self.assertEqual(self.ends(job), [0, 0], self.said(0) + self.said(1) + self.said(2))
        self.assertIn(f"holds {300 * len(places)}", self.said(2))

    def test_whoever_calls_at_the_ports_of_a_job_changes_nothing(self):
        job = self.held(**AT_PORTS)
        self.rank(0, 1, 2, "-c", CALLER, *map(str, [29600, *PORTS]), program=sys.executable)
        self.assertEqual(self.ends([2]), [0], self.said(2))
        self.goes_on(job)


if __name__ == "__main__":
    unittest.main()
