"""Links that carry little, for longer than the timeout: what moves is waited for. Needs root; elsewhere it is skipped."""
import pathlib
import time
import unittest

from hosts import Hosts
from on_hosts import RANK, WHY, OnHosts


@unittest.skipIf(WHY, WHY)
class SlowLinksTest(OnHosts):
    def test_a_link_that_is_slow_is_waited_for(self):
        """For longer than the timeout, in which a few pieces arrive."""
        self.hosts = Hosts(2)

        def slow_down():
            self.hosts.slow(1, "1mbit")
            time.sleep(18)
            self.hosts.slow(1, "2gbit")

        self.goes_on_after(slow_down, timeout="12")

    def goes_on_where_slow(self, what, hosts, each, slow, timeout, transport="libfabric"):
        """Ranks that look for the file whether those links are slow now, and stay so."""
        self.hosts, slowed, ranks = Hosts(hosts), pathlib.Path(self.folder.name) / "slowed", range(hosts * each)
        for rank in ranks:
            self.rank(rank, len(ranks), rank // each, f"--gtest_filter=Hosts.{what}*", program=RANK,
                      TRELLIS_TIMEOUT=timeout, TRELLIS_TRANSPORT=transport, TRELLIS_TEST_SLOWED=str(slowed),
                      LOCAL_RANK=str(rank % each), LOCAL_WORLD_SIZE=str(each))
        self.measure_for(0.5, joined="joined")
        for host in slow:
            self.hosts.slow(host, "1mbit")
        slowed.touch()
        self.assertEqual(self.ends(ranks), [0] * len(ranks), "".join(self.said(r) for r in ranks))

    def test_a_link_that_stays_slow_is_waited_for(self):
        """While data move somewhere, also by those that see none of it."""
        self.goes_on_where_slow("ABroadcast", 4, 1, [1], "12")

    def test_slow_links_that_ranks_share_are_waited_for(self):
        """Two on each side, which take turns; some end before the others."""
        for transport in ("libfabric", "hybrid"):
            with self.subTest(transport=transport):
                self.jobs = []
                self.goes_on_where_slow("ABroadcast", 2, 2, [0, 1], "12", transport)
                self.hosts.close()

    def test_who_waits_behind_a_slow_receive_is_served(self):
        self.goes_on_where_slow("WhoWaitsBehind", 3, 1, [0], "6")


if __name__ == "__main__":
    unittest.main()
