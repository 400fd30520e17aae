"""The program under test, and what tests of it have in common."""
import contextlib
import os
import pathlib
import re
import socket
import subprocess
import tempfile
import time
import unittest

TRELLIS = os.environ["TRELLIS"]
os.environ["TRELLIS_PROGRESS"] = "0"  # a slow host says nothing on standard error
os.environ["SOURCE_DATE_EPOCH"] = "0"  # the same command writes the same bytes, at any time and on any host


def trellis(*words, **how):
    """Runs it with these words. Names in capitals are variables of its environment; the rest is for subprocess.run."""
    variables = {name: how.pop(name) for name in list(how) if name.isupper()}
    usual = {"capture_output": True, "text": True, "env": os.environ | variables}
    return subprocess.run([TRELLIS, *map(str, words)], **usual | how)


def ended(*words, status=0, **how):
    """The same, and it must end with this status."""
    ran = trellis(*words, **how)
    assert ran.returncode == status, (words, ran.returncode, ran.stdout, ran.stderr)
    return ran


def without_origin(text):
    """Of a picture or a table: without the lines that say what made it."""
    text = re.sub(r"<metadata>\n.*?</metadata>\n", "", text, flags=re.S)
    return re.sub(r"^# +(program|command|host|date|machine|figures|rests on|era|seed|chip): .*\n", "", text, flags=re.M)


def await_handler(process, number, patience=120):
    """Until this running program handles the signal or asks for it itself, instead of being ended by it."""
    end = time.monotonic() + patience
    while process.poll() is None:
        status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        if any(int(mask, 16) >> (number - 1) & 1 for mask in re.findall(r"^Sig(?:Cgt|Blk):\s+(\w+)$", status, re.M)):
            return
        assert time.monotonic() < end, f"it does not handle signal {number}"
        time.sleep(0.01)


def children(pid):
    """The processes that this one has started, also where the kernel keeps no list of them."""
    found = []
    for file in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if int(file.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(file.parent.name))
    return found


def await_children(process, count, patience=120):
    """Until this running program has started so many others."""
    end = time.monotonic() + patience
    while process.poll() is None:
        if len(children(process.pid)) >= count:
            return
        assert time.monotonic() < end, f"it has not started {count} processes"
        time.sleep(0.01)


def remote_shell(folder, script='[ "$1" = away ] && exit 255\n'):
    """A script that takes a host and a command, as ssh does, and runs the command here; no host answers as `away`."""
    if " " in str(folder):  # where --rsh is split into words
        folder = f"/proc/{os.getpid()}/fd/{os.open(folder, os.O_PATH)}"
    shell = pathlib.Path(folder) / "shell"
    shell.write_text(f'#!/bin/sh\n{script}shift\nexec sh -c "$*"\n')
    shell.chmod(0o755)
    return shell


def free_port():
    """A port of this host at which nobody listens, nor at the eighth after it, where launches of several nodes meet.
    Both are below those that the system gives out by itself, and processes beside this one begin at others."""
    for place in range(800):
        port = 2_000 + (os.getpid() + place * 17) % 800 * 10
        with socket.socket() as first, socket.socket() as second:
            try:
                first.bind(("127.0.0.1", port))
                second.bind(("127.0.0.1", port + 8))
            except OSError:
                continue
        return port
    raise OSError("no free port from 2000 on")


class Case(unittest.TestCase):
    trellis = staticmethod(trellis)  # what the words below are for

    def printed(self, *words, **how):
        ran = self.trellis(*words, **how)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""), ran.stdout)
        return ran.stdout

    def assert_fails(self, status, said, *words, **how):
        """It ends so, prints nothing, and says this in one line."""
        ran = self.trellis(*words, **how)
        self.assertEqual((ran.returncode, ran.stdout), (status, ""), ran.stderr)
        self.assertRegex(ran.stderr, r"^trellis: [^\n]+\n$")
        self.assertIn(said, ran.stderr)

    def new_folder(self):
        """It is gone when the test is over."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return pathlib.Path(folder.name)
