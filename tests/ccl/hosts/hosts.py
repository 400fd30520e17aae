"""Hosts as network namespaces of this machine, each with an interface of a given rate. Needs root."""
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
    for tool in ("ip", "tc", "unshare"):
        if shutil.which(tool) is None:
            return f"there is no {tool} (Debian: iproute2, util-linux)"
    probe = run("unshare", "-n", "true")
    return "" if probe.returncode == 0 else f"network namespaces cannot be made: {probe.stderr.strip()}"


class Hosts:
    """Namespaces with one interface each, on a bridge in a namespace of its own. Addresses: 10.9.0.1, 10.9.0.2, ..."""

    def __init__(self, count, rate="2gbit", burst="256k"):
        tag = f"tr{os.getpid()}"
        self.rate, self.burst = rate, burst
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
            must("tc", "-n", name, "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", self.rate, "burst", self.burst,
                 "latency", "50ms")

    def add(self, name):
        must("ip", "netns", "add", name)
        self.made.append(name)

    def cut(self, host):
        must("ip", "-n", self.switch, "link", "set", f"port{host}", "down")

    def close(self):
        for name in self.made:
            run("ip", "netns", "del", name)
