"""Two hosts whose only way to each other is a relay of ours, which delays, loses, reorders and cuts what they send: two
network namespaces with a TUN device each. Everything it does follows from a seed."""
import fcntl
import heapq
import os
import random
import select
import struct
import threading
import time

from hosts import must, run

TUN = "/dev/net/tun"
TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 1, 0x1000
BYTES = 9000  # of a packet, at most
QUEUED = 20000  # packets; a full queue loses what comes, as a router does


def reason_to_skip():
    return "" if os.path.exists(TUN) else f"there is no {TUN}"


class RelayedHosts:
    """The same as Hosts(2), with 10.9.0.1 and 10.9.0.2; what happens between them is set at any time."""

    def __init__(self, seed=1):
        self.random = random.Random(seed)
        self.delay, self.jitter = 0.0, 0.0  # seconds
        self.loss, self.reorder = 0.0, 0.0  # of the packets; one that is reordered waits ten times as long
        self.closed = [False, False]  # nothing from this host passes
        self.passed = self.lost = self.overtaken = 0
        tag = f"tr{os.getpid()}"
        self.names = [f"{tag}h0", f"{tag}h1"]
        self.made, self.ends = [], []
        self.over = False
        self.thread = threading.Thread(target=self.move, daemon=True)
        try:
            for i, name in enumerate(self.names):
                self.add(i, name, f"{tag}t{i}")
        except Exception:
            self.close()
            raise
        self.thread.start()

    def add(self, i, name, device):
        must("ip", "netns", "add", name)
        self.made.append(name)
        end = os.open(TUN, os.O_RDWR | os.O_NONBLOCK)
        self.ends.append(end)
        fcntl.ioctl(end, TUNSETIFF, struct.pack("16sH", device.encode(), IFF_TUN | IFF_NO_PI))
        must("ip", "link", "set", device, "netns", name, "name", "eth0")
        must("ip", "-n", name, "addr", "add", f"10.9.0.{i + 1}", "peer", f"10.9.0.{2 - i}", "dev", "eth0")
        must("ip", "-n", name, "link", "set", "eth0", "up", "mtu", str(BYTES))
        must("ip", "-n", name, "link", "set", "lo", "up")

    def cut(self, host):
        self.closed = [True, True]

    def move(self):
        waiting, number = [], 0
        while not self.over:
            now = time.monotonic()
            while waiting and waiting[0][0] <= now:
                _, serial, to, packet = heapq.heappop(waiting)
                self.overtaken += serial < self.passed
                self.passed = max(self.passed, serial)
                try:
                    os.write(to, packet)
                except OSError:  # it has no room, or its host is gone
                    self.lost += 1
            wait = min(0.02, max(0.0, waiting[0][0] - now)) if waiting else 0.02
            for end in select.select(self.ends, [], [], wait)[0]:
                host = self.ends.index(end)
                for _ in range(64):
                    try:
                        packet = os.read(end, BYTES + 64)
                    except OSError:
                        break
                    if self.closed[host] or len(waiting) >= QUEUED or self.random.random() < self.loss:
                        self.lost += 1
                        continue
                    late = self.delay + self.jitter * self.random.random()
                    if self.random.random() < self.reorder:
                        late = 10 * late + 0.001
                    number += 1
                    heapq.heappush(waiting, (time.monotonic() + late, number, self.ends[1 - host], packet))

    def close(self):
        self.over = True
        if self.thread.is_alive():
            self.thread.join()
        for end in self.ends:
            os.close(end)
        for name in self.made:
            run("ip", "netns", "del", name)
