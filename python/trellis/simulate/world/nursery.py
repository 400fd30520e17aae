"""Imports torch once, and forks a process for each rank that it is told of: `python -m trellis.simulate.world.nursery`.

A line on the standard input is a rank's settings. On the descriptor that is its argument it answers with a line for
each process that begins ("began PID") and ends ("ended PID STATUS"). It ends when the input does.
"""

import contextlib
import os
import select
import signal
import sys
from typing import NoReturn

from trellis.simulate.world.settings import Settings

__all__ = ["main"]

# What most jobs import, and what torch imports when it is first used.
_MODULES = ("torch", "torch.distributed", "torch.distributed.fsdp", "torch.distributed.tensor.parallel",
            "torch.distributed.checkpoint", "torch._dynamo", "trellis.simulate.world.session")  # fmt: skip


def _import() -> None:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for name in _MODULES:
        with contextlib.suppress(ImportError):  # the job says what it misses
            __import__(name)


def _rank(line: str) -> NoReturn:
    from trellis.simulate.world import job

    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    job.main(Settings.of_line(line))
    os._exit(0)


def _end(alive: set[int]) -> NoReturn:
    for pid in alive:
        os.kill(pid, signal.SIGKILL)
    os._exit(0)  # the exit handlers of imported modules are skipped


def _tell(told: int, what: str, alive: set[int]) -> None:
    try:
        os.write(told, f"{what}\n".encode())
    except BrokenPipeError:  # the process that started this one was killed
        _end(alive)


def _ended(told: int, alive: set[int]) -> None:
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            alive.discard(pid)
            _tell(told, f"ended {pid} {os.waitstatus_to_exitcode(status)}", alive)


def main() -> NoReturn:
    told = int(sys.argv[1])
    os.set_inheritable(told, False)
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal: the process that started this one ends it
    _import()
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(woken)
    rest = b""
    alive: set[int] = set()
    while True:
        for ready in select.select([0, wake], [], [])[0]:
            data = os.read(ready, 1 << 16)
            if ready == wake:
                _ended(told, alive)
                continue
            if not data:
                _end(alive)
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                sys.stdout.flush()
                pid = os.fork()
                if pid == 0:
                    signal.set_wakeup_fd(-1)
                    for one in (signal.SIGCHLD, signal.SIGINT):
                        signal.signal(one, signal.SIG_DFL)
                    for descriptor in (told, wake, woken):
                        os.close(descriptor)
                    _rank(line.decode())
                alive.add(pid)
                _tell(told, f"began {pid}", alive)


if __name__ == "__main__":
    main()
