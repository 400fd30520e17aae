"""The program under test, and what tests of it have in common."""
import os
import pathlib
import subprocess
import tempfile
import unittest

TRELLIS = os.environ["TRELLIS"]


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


def remote_shell(folder, script='[ "$1" = away ] && exit 255\n'):
    """A script that takes a host and a command, as ssh does, and runs the command here; no host answers as `away`."""
    shell = pathlib.Path(folder) / "shell"
    shell.write_text(f'#!/bin/sh\n{script}shift\nexec sh -c "$*"\n')
    shell.chmod(0o755)
    return shell


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
