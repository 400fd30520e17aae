"""How a simulation ends when one of its processes is killed: without a traceback, and with nothing left behind."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

import pytest

pytest.importorskip("numpy")

from trellis.simulate.ranks.coordinator import Coordinator, RankFailed  # noqa: E402
from trellis.simulate.ranks.line import Line  # noqa: E402

WORDS = [sys.executable, "-m", "trellis.simulate", "--world", "4", "--", "torchrun", "train.py"]


IMPORTED = """
import pathlib, time
(pathlib.Path(__file__).parent / "importing").touch()
while not (pathlib.Path(__file__).parent / "go").exists():
    time.sleep(0.01)
"""


@pytest.fixture
def temporary():
    """The command's: where its socket is, whose path is short whatever the tests' own is."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield pathlib.Path(folder)


@pytest.fixture
def torch(tmp_path):
    """What is imported as torch: it takes until there is a file "go" in it."""
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text(IMPORTED)
    yield tmp_path / "torch"
    (tmp_path / "torch" / "go").touch()


@pytest.fixture
def begun(tmp_path, torch, temporary):
    """(the command, the process that forks ranks) while the latter imports torch."""
    path = f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell starts in the background ignores it
    command = subprocess.Popen(WORDS, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**os.environ, "PYTHONPATH": path, "TMPDIR": str(temporary)})  # fmt: skip
    while not (torch / "importing").exists():
        assert command.poll() is None
        time.sleep(0.1)
    children = pathlib.Path(f"/proc/{command.pid}/task/{command.pid}/children").read_text().split()
    assert len(children) == 1
    yield command, int(children[0])
    command.kill()
    command.wait()


def said(command):
    """All that it and its processes say, which ends when they do."""
    return command.communicate(timeout=60)[1]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_command_is_killed_while_torch_is_imported(begun, torch, temporary, how):
    command, _ = begun
    os.kill(command.pid, how)
    command.wait(60)
    (torch / "go").touch()
    assert said(command) == ""
    assert command.returncode == {signal.SIGKILL: -9, signal.SIGTERM: 143, signal.SIGINT: 130}[how]
    assert how == signal.SIGKILL or not list(temporary.iterdir())


def test_the_process_that_forks_ranks_is_killed(begun):
    command, nursery = begun
    os.kill(nursery, signal.SIGKILL)
    told = said(command)
    assert "no rank can be started" in told and "Traceback" not in told and command.returncode == 1


class Ended:
    """A process that is over."""

    returncode = 1

    def poll(self):
        return 1

    def wait(self):
        pass


@pytest.mark.parametrize("says", ["it has no script", ""])
def test_what_a_process_says_before_it_ends_is_read(says):
    """Half a second after it has ended; of one that says nothing its status is told."""

    def start(rank, address, key):
        def speak():
            time.sleep(0.5)
            Line(address, key, rank).tell("failed", says)

        if says:
            threading.Thread(target=speak).start()
        return Ended()

    coordinator = Coordinator(start)
    try:
        with pytest.raises(RankFailed, match=says or "rank 0 ended with status 1 before its step was recorded"):
            coordinator.run([0])
    finally:
        coordinator.close()
