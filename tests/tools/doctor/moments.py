"""What the ranks of situations.py wait for, so that none depends on how fast the machine is."""
import ctypes
import os
import pathlib
import threading
import time

FAR = 60         # seconds, for what comes much earlier


def sleep():
    ctypes.CDLL(None).sleep(FAR)  # C's, which a signal ends early


def compute():
    until = time.time() + FAR
    while time.time() < until:
        pass


def wait_until(happened):
    until = time.time() + FAR
    while not happened() and time.time() < until:
        time.sleep(0.01)


def within(comm, what):
    """Does it once the third operation has begun."""
    def later():
        wait_until(lambda: comm.operations() >= 3)
        what()
    threading.Thread(target=later, daemon=True).start()


def in_the_third(meeting):
    return list(pathlib.Path(meeting).glob("in the third*"))


def tell_the_third(rank, comm):
    within(comm, lambda: (pathlib.Path(os.environ["MEETING"]) / f"in the third, {rank}").touch())


def come_last(rank, comm, last):
    """That one goes on when all others are in the third operation."""
    if rank == last:
        wait_until(lambda: len(in_the_third(os.environ["MEETING"])) == 3)
    else:
        tell_the_third(rank, comm)


def state_of(rank):
    """T: its process is stopped; Z or none: it has ended."""
    try:
        process = (pathlib.Path(os.environ["MEETING"]) / str(rank)).read_text()
        return pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return ""
