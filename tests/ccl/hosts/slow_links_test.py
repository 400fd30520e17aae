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

    def test_a_link_that_stays_slow_is_waited_for(self):
        """While data move somewhere, also by those that see none of it."""
        self.hosts, slowed = Hosts(4), pathlib.Path(self.folder.name) / "slowed"
        for rank in range(4):
            self.rank(rank, 4, rank, "--gtest_filter=Hosts.ABroadcast*", program=RANK, TRELLIS_TIMEOUT="6",
                      TRELLIS_TRANSPORT="libfabric", TRELLIS_TEST_SLOWED=str(slowed))
        self.measure_for(0.5, joined="joined")
        self.hosts.slow(1, "1mbit")
        slowed.touch()
        self.assertEqual(self.ends(range(4), 150), [0] * 4, "".join(self.said(r) for r in range(4)))


if __name__ == "__main__":
    unittest.main()
