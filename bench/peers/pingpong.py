#!/usr/bin/env python3
"""libfabric's own fi_pingpong between two processes here: pingpong.py PROVIDER BYTES...

What its endpoints take for a message with nothing above them: a floor for send and receive. Prints a line for each size:
bytes, then half of a round trip in microseconds, twice. Debian: apt install libfabric-bin
"""
import os
import shutil
import socket
import subprocess
import sys
import time

MOST = 16 << 20  # bytes; with larger ones it fails over some providers


def absent():
    return "" if shutil.which("fi_pingpong") else "there is no fi_pingpong, so no floor is shown (Debian: libfabric-bin)"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def pinned(side):
    """Each side on a core of its own, where there are two."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[side % len(cores)]})


def listens(port):
    wanted = f":{port:04X}"
    with open("/proc/net/tcp") as table:
        return any(line.split()[1].endswith(wanted) and line.split()[3] == "0A" for line in list(table)[1:])


def half_round_trip(provider, size):
    times = 2000 if size < 65536 else 200 if size < 4 << 20 else 15
    port = free_port()
    words = ["fi_pingpong", "-e", "rdm", "-p", provider, "-I", str(times), "-S", str(size)]
    server = subprocess.Popen([*words, "-B", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                              preexec_fn=lambda: pinned(0))
    try:
        while server.poll() is None and not listens(port):
            time.sleep(0.01)
        client = subprocess.run([*words, "-P", str(port), "127.0.0.1"], capture_output=True, text=True, timeout=60,
                                preexec_fn=lambda: pinned(1))
    finally:
        server.kill()
        _, complaint = server.communicate()
    rows = [line.split() for line in client.stdout.splitlines()]
    if client.returncode != 0 or len(rows) != 2 or rows[0][6] != "usec/xfer":
        sys.exit(f"fi_pingpong over {provider}, {size} bytes: {(client.stderr or complaint).strip()}")
    return float(rows[1][6])


def main():
    if len(sys.argv) < 3:
        sys.exit("usage: pingpong.py PROVIDER BYTES...")
    if absent():
        sys.exit(absent())
    for size in map(int, sys.argv[2:]):
        took = half_round_trip(sys.argv[1], size)
        print(size, took, took, flush=True)


if __name__ == "__main__":
    main()
