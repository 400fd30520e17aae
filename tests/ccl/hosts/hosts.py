"""Hosts as network namespaces of this machine, each with an interface of a given rate. Needs root."""
import json
import os
import shutil
import subprocess


def run(*words):
    return subprocess.run(words, capture_output=True, text=True)


def must(*words):
    said = run(*words)
    if said.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {said.stderr.strip()}")


def reason_to_skip():
    if os.geteuid() != 0:
        return "network namespaces need root"
    for tool in ("ip", "tc"):
        if shutil.which(tool) is None:
            return f"there is no {tool} (Debian: iproute2)"
    try:
        Hosts(1).close()
    except RuntimeError as error:  # a kernel may have no namespaces, or neither bridges nor such queues
        return f"no host can be made: {error}"
    return ""


class Hosts:
    """Namespaces with interfaces eth0, eth1, ..., each on a bridge of its number in a namespace of its own. Addresses:
    10.9.INTERFACE.HOST, from 10.9.0.1 on."""

    def __init__(self, count, rate="2gbit", burst="256k", interfaces=1):
        tag = f"tr{os.getpid()}"
        self.rate, self.burst, self.interfaces = rate, burst, interfaces
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
        for name in self.names:
            self.add(name)
            must("ip", "-n", name, "link", "set", "lo", "up")
        for number in range(self.interfaces):
            self.make_network(number)

    def make_network(self, number):
        bridge, interface = f"br{number}", f"eth{number}"
        must("ip", "-n", self.switch, "link", "add", bridge, "type", "bridge")
        must("ip", "-n", self.switch, "link", "set", bridge, "up")
        for i, name in enumerate(self.names):
            port = self.port(i, number)
            must("ip", "link", "add", interface, "netns", name, "type", "veth", "peer", "name", port, "netns",
                 self.switch)
            must("ip", "-n", self.switch, "link", "set", port, "master", bridge, "up")
            must("ip", "-n", name, "addr", "add", f"10.9.{number}.{i + 1}/24", "dev", interface)
            must("ip", "-n", name, "link", "set", interface, "up")
            self.limit(name, interface, self.rate, self.burst, "50ms")
            self.limit(self.switch, port, self.rate, self.burst, "5ms")  # shallow, as a switch: it drops what it does not hold

    @staticmethod
    def limit(name, interface, rate, burst, latency):
        must("tc", "-n", name, "qdisc", "add", "dev", interface, "root", "tbf", "rate", rate, "burst", burst, "latency",
             latency)

    @staticmethod
    def port(host, interface):
        return f"port{host}" if interface == 0 else f"port{host}.{interface}"

    def add(self, name):
        must("ip", "netns", "add", name)
        self.made.append(name)

    def cut(self, host, interface=0):
        must("ip", "-n", self.switch, "link", "set", self.port(host, interface), "down")

    def mend(self, host, interface=0):
        must("ip", "-n", self.switch, "link", "set", self.port(host, interface), "up")

    def down(self, host):
        """As its own administrator does it: no packet has a route then."""
        must("ip", "-n", self.names[host], "link", "set", "eth0", "down")

    def up(self, host):
        must("ip", "-n", self.names[host], "link", "set", "eth0", "up")

    def ask_for_neighbours_every(self, milliseconds):
        """How often a kernel asks for the hardware address of a host that it has lost; a second, if not told."""
        for name in self.names:
            must("ip", "netns", "exec", name, "sh", "-c",
                 f"echo {milliseconds} > /proc/sys/net/ipv4/neigh/eth0/retrans_time_ms")

    def reset(self, host):
        """Its connections. Whether that can be done."""
        if shutil.which("ss") is None:
            return False
        said = run("ip", "netns", "exec", self.names[host], "ss", "-K", "dst", "10.9.0.0/16")
        return said.returncode == 0 and "not supported" not in said.stderr

    def slow(self, host, rate):
        """Both ways. By a new queue: a packet in the old one that is larger than the new burst would never be sent."""
        burst = self.burst if rate == self.rate else "16k"
        for name, interface in ((self.names[host], "eth0"), (self.switch, self.port(host, 0))):
            must("tc", "-n", name, "qdisc", "del", "dev", interface, "root")
            self.limit(name, interface, rate, burst, "200ms")

    def sent(self, host, interface=0):
        """The bytes that an interface of it has sent."""
        told = json.loads(run("ip", "-n", self.names[host], "-s", "-j", "link", "show", f"eth{interface}").stdout)
        return told[0]["stats64"]["tx"]["bytes"]

    def close(self):
        for name in self.made:
            run("ip", "netns", "del", name)
