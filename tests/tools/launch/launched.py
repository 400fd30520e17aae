"""Runs trellis launch, and looks at the processes that it leaves."""
import pathlib
import time

from program import trellis

PATIENCE = 240  # seconds; whatever takes longer hangs


def launch(*arguments, **how):
    return trellis("launch", *arguments, timeout=PATIENCE, **how)


def alive(pid):
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def wait_until(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True
